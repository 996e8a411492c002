#include <algorithm>
#include <cmath>
#include <optional>

#include "model_loader/graph/operators.h"
#include "model_loader/graph/rewriter.h"
#include "model_loader/passes/passes.h"
#include "model_loader/semantics/epilogues.h"
#include "model_loader/semantics/functions.h"

namespace swizzle {
namespace {

// input * scale + shift, the same for all channels.
struct Line {
  int input = kNoValue;
  float scale = 1.0f;
  float shift = 0.0f;
};

// clamp(line, 0, high)
struct Ramp {
  Line line;
  float high = 0.0f;
};

class FunctionRecogniser {
 public:
  explicit FunctionRecogniser(Graph& graph) : rewriter_(graph) {}

  int Run() {
    int count = 0;
    for (int i = 0; i < rewriter_.node_count(); ++i) {
      const Node& node = rewriter_.node(i);
      if (Is(node, "Affine") && (RecogniseHardSigmoid(i) || RecogniseScaledProduct(i))) ++count;
      if (Is(node, "Multiply") && (RecogniseGate(i) || RecogniseRamp(i))) ++count;
    }
    rewriter_.Finish();
    return count;
  }

 private:
  const Node* ProducerOf(int value, const char* op) {
    const int producer = rewriter_.Producer(value);
    return producer >= 0 && Is(rewriter_.node(producer), op) ? &rewriter_.node(producer) : nullptr;
  }

  std::optional<float> Uniform(int constant) {
    const auto numbers = std::as_const(*rewriter_.graph().values[constant].constant).floats();
    const bool equal = std::all_of(numbers.begin(), numbers.end(), [&](float x) { return x == numbers[0]; });
    return equal && !numbers.empty() ? std::optional(numbers[0]) : std::nullopt;
  }

  std::optional<Line> AsLine(const Node& affine) {
    const auto scale = Uniform(affine.inputs[1]), shift = Uniform(affine.inputs[2]);
    if (!scale || !shift) return std::nullopt;
    return Line{affine.inputs[0], *scale, *shift};
  }

  // What `value` is of something else; itself where an Affine does not make it.
  Line LineOf(int value) {
    const Node* affine = ProducerOf(value, "Affine");
    const auto line = affine != nullptr ? AsLine(*affine) : std::nullopt;
    return line.value_or(Line{value, 1.0f, 0.0f});
  }

  std::optional<Ramp> RampOf(int value) {
    const Node* clamp = ProducerOf(value, "Clamp");
    if (clamp == nullptr) return std::nullopt;
    const Epilogue bounds = EpilogueOf(*clamp);
    if (bounds.low != 0.0f || !(bounds.high > 0.0f) || !std::isfinite(bounds.high)) return std::nullopt;
    return Ramp{LineOf(clamp->inputs[0]), bounds.high};
  }

  // Whether `scale` takes the ramp to [0, 1], but for its rounding.
  static bool TakesToOne(const Ramp& ramp, float scale) {
    constexpr float kRounding = 1e-6f;
    return std::abs(ramp.high * scale - 1.0f) <= kRounding;
  }

  bool Become(int index, int input, const Function& function) {
    Node& node = rewriter_.node(index);
    node.op = "Function";
    node.attributes = FunctionAttributes(function);
    rewriter_.SetInputs(index, {input});
    return true;
  }

  bool BecomeScaledRamp(int index, FunctionKind kind, const Ramp& ramp, float scale) {
    return Become(index, ramp.line.input, {kind, ramp.line.scale * scale, ramp.line.shift * scale});
  }

  // clamp(x + 3, 0, 6) / 6
  bool RecogniseHardSigmoid(int index) {
    const auto outer = AsLine(rewriter_.node(index));
    const auto ramp = outer && outer->shift == 0.0f ? RampOf(outer->input) : std::nullopt;
    return ramp && TakesToOne(*ramp, outer->scale) &&
           BecomeScaledRamp(index, FunctionKind::kHardSigmoid, *ramp, outer->scale);
  }

  // (x * clamp(x + 3, 0, 6)) / 6
  bool RecogniseScaledProduct(int index) {
    const auto outer = AsLine(rewriter_.node(index));
    const Node* product = outer && outer->shift == 0.0f ? ProducerOf(outer->input, "Multiply") : nullptr;
    if (product == nullptr) return false;
    for (size_t i : {0, 1}) {
      const auto ramp = RampOf(product->inputs[1 - i]);
      if (ramp && ramp->line.input == product->inputs[i] && TakesToOne(*ramp, outer->scale)) {
        return BecomeScaledRamp(index, FunctionKind::kHardSwish, *ramp, outer->scale);
      }
    }
    return false;
  }

  // (x / 6) * clamp(x + 3, 0, 6)
  bool RecogniseRamp(int index) {
    const Node& product = rewriter_.node(index);
    for (size_t i : {0, 1}) {
      const Line line = LineOf(product.inputs[i]);
      const auto ramp = RampOf(product.inputs[1 - i]);
      if (ramp && line.shift == 0.0f && ramp->line.input == line.input && TakesToOne(*ramp, line.scale)) {
        return BecomeScaledRamp(index, FunctionKind::kHardSwish, *ramp, line.scale);
      }
    }
    return false;
  }

  // x * HardSigmoid(x), x * Sigmoid(x), where nothing is rounded in between
  bool RecogniseGate(int index) {
    const Node& product = rewriter_.node(index);
    for (size_t i : {0, 1}) {
      const Node* gate = ProducerOf(product.inputs[1 - i], "Function");
      if (gate == nullptr || gate->inputs[0] != product.inputs[i]) continue;
      if (rewriter_.graph().values[product.inputs[1 - i]].wholes) continue;
      Function function = FunctionOf(*gate);
      if (function.kind != FunctionKind::kSigmoid && function.kind != FunctionKind::kHardSigmoid) continue;
      const bool hard = function.kind == FunctionKind::kHardSigmoid;
      function.kind = hard ? FunctionKind::kHardSwish : FunctionKind::kSilu;
      return Become(index, product.inputs[i], function);
    }
    return false;
  }

  Rewriter rewriter_;
};

}  // namespace

StatusOr<int> RecogniseFunctions(Graph& graph) { return FunctionRecogniser(graph).Run(); }

}  // namespace swizzle

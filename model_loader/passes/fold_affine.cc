#include <algorithm>
#include <cmath>

#include "model_loader/graph/operators.h"
#include "model_loader/graph/rewriter.h"
#include "model_loader/passes/passes.h"
#include "model_loader/semantics/epilogues.h"
#include "model_loader/semantics/integer_products.h"
#include "model_loader/semantics/windows.h"

namespace swizzle {
namespace {

constexpr size_t kWeight = 1, kBias = 2;  // inputs of Conv and DepthwiseConv
constexpr size_t kScale = 1, kShift = 2;  // inputs of Affine

bool AreOnes(std::span<const float> scale) {
  return std::ranges::all_of(scale, [](float number) { return number == 1.0f; });
}

bool IsConvolution(const Node& node) { return Is(node, "Conv") || Is(node, "DepthwiseConv"); }

class AffineFolder {
 public:
  explicit AffineFolder(Graph& graph) : graph_(graph), rewriter_(graph) {}

  int Run() {
    int count = 0;
    for (int i = 0; i < rewriter_.node_count(); ++i) {
      if (!rewriter_.IsErased(i) && Is(rewriter_.node(i), "Affine")) count += Fold(i);
    }
    rewriter_.Finish();
    return count;
  }

 private:
  int Fold(int affine) {
    int count = 0;
    if (Vanishes(affine)) return 1;
    const int before = rewriter_.Producer(rewriter_.node(affine).inputs[0]);
    if (before >= 0 && rewriter_.SoleReader(rewriter_.node(affine).inputs[0]) == affine) {
      if (IsConvolution(rewriter_.node(before)) && !EpilogueOf(rewriter_.node(before)).Clamps()) {
        FoldIntoPrevious(affine, before);
        return 1;
      }
      const bool embeds = Is(rewriter_.node(before), "Embedding");
      if (embeds && rewriter_.SoleReader(rewriter_.node(before).inputs[kWeight]) == before) {
        FoldIntoTable(affine, before);
        return 1;
      }
      if (Is(rewriter_.node(before), "Affine")) {
        Compose(affine, before);
        ++count;
      }
    }
    const int after = rewriter_.SoleReader(rewriter_.node(affine).outputs[0]);
    if (after >= 0 && IsConvolution(rewriter_.node(after)) && PaddingAllows(affine, after) &&
        WholesAllow(affine, after)) {
      FoldIntoNext(affine, after);
      ++count;
    }
    return count;
  }

  std::span<const float> Floats(int node, size_t input) const {
    return std::as_const(*graph_.values[graph_.nodes[node].inputs[input]].constant).floats();
  }

  // REQUIRES: Own(node, input).
  std::span<float> OwnFloats(int node, size_t input) {
    return graph_.values[graph_.nodes[node].inputs[input]].constant->floats();
  }

  // Makes the constant input this node's alone.
  void Own(int node, size_t input) {
    const int value = rewriter_.node(node).inputs[input];
    if (rewriter_.SoleReader(value) == node) return;
    Tensor copy = *graph_.values[value].constant;
    std::optional<WholeNumbers> wholes = graph_.values[value].wholes;
    std::vector<int> inputs = rewriter_.node(node).inputs;
    inputs[input] = graph_.AddConstant(graph_.values[value].name, std::move(copy));
    graph_.values[inputs[input]].wholes = std::move(wholes);
    rewriter_.SetInputs(node, std::move(inputs));
  }

  // Makes the convolution's bias, zeros where it has none, its own.
  void OwnBias(int conv) {
    const Node& node = rewriter_.node(conv);
    if (node.Input(kBias) == kNoValue) {
      const std::vector<float> zeros(graph_.ShapeOf(node.inputs[kWeight])[0]);
      std::vector<int> inputs = node.inputs;
      inputs.resize(std::max(inputs.size(), kBias + 1), kNoValue);
      inputs[kBias] =
          graph_.AddConstant(node.name + ".bias", Tensor::Floats({static_cast<int64_t>(zeros.size())}, zeros));
      rewriter_.SetInputs(conv, std::move(inputs));
    }
    Own(conv, kBias);
  }

  void ScaleWeight(int affine, int conv) {
    Own(conv, kWeight);
    const std::span<float> weight = OwnFloats(conv, kWeight);
    const auto scale = Floats(affine, kScale);
    const size_t row = weight.size() / scale.size();
    const std::vector<float> before(weight.begin(), weight.end());
    for (size_t i = 0; i < weight.size(); ++i) weight[i] *= scale[i / row];
    ScaleWholes(conv, scale, before);
  }

  bool Vanishes(int affine) {
    const auto scale = Floats(affine, kScale), shift = Floats(affine, kShift);
    const auto is = [](float number) { return [number](float other) { return other == number; }; };
    if (!std::all_of(scale.begin(), scale.end(), is(1.0f)) || !std::all_of(shift.begin(), shift.end(), is(0.0f))) {
      return false;
    }
    rewriter_.ReplaceReads(rewriter_.node(affine).outputs[0], rewriter_.node(affine).inputs[0]);
    rewriter_.Erase(affine);
    return true;
  }

  // (W x + b) s + t: every row of W and b times its s, plus t.
  void FoldIntoPrevious(int affine, int conv) {
    OwnBias(conv);
    if (!AreOnes(Floats(affine, kScale))) ScaleWeight(affine, conv);
    const std::span<float> bias = OwnFloats(conv, kBias);
    const auto scale = Floats(affine, kScale), shift = Floats(affine, kShift);
    for (size_t m = 0; m < bias.size(); ++m) bias[m] = bias[m] * scale[m] + shift[m];
    rewriter_.TakeOutput(conv, affine);
  }

  // Whole numbers that rows of the convolution's weight stand for stay what they are, or become their negatives, in
  // other steps: the weight is then exactly what these say. A negative that is none of the type's takes them all away.
  // unscaled: the weight as it was.
  void ScaleWholes(int conv, std::span<const float> scale, std::span<const float> unscaled) {
    std::optional<WholeNumbers>& wholes = graph_.values[rewriter_.node(conv).inputs[kWeight]].wholes;
    if (!wholes || AreOnes(scale)) return;
    const Quantisation before = wholes->quantisation;
    if (!before.per_tensor() && wholes->axis != 0) return wholes.reset();
    Quantisation& after = wholes->quantisation;
    after.scales.clear();
    after.zero_points.clear();
    wholes->axis = 0;
    for (size_t row = 0; row < scale.size(); ++row) {
      const Quantised of_row = before.Of(static_cast<int64_t>(row));
      const float factor = scale[row] == 0 ? 1.0f : std::abs(scale[row]);  // zeros have any steps
      after.scales.push_back(of_row.scale * factor);
      after.zero_points.push_back(of_row.zero_point);
    }
    if (!after.Validate(static_cast<int64_t>(scale.size())).ok()) return wholes.reset();
    const std::span<float> weight = OwnFloats(conv, kWeight);
    const size_t row_elements = weight.size() / scale.size();
    const int32_t least = before.dtype == DType::kInt8 ? -128 : 0;
    for (size_t i = 0; i < weight.size(); ++i) {
      const size_t row = i / row_elements;
      const Quantised of_row = before.Of(static_cast<int64_t>(row));
      const float sign = scale[row] < 0 ? -1.0f : 1.0f;
      const float whole = scale[row] == 0 ? 0.0f : sign * std::nearbyint(unscaled[i] / of_row.scale);
      const float stored = whole + static_cast<float>(of_row.zero_point);
      if (stored < static_cast<float>(least) || stored > static_cast<float>(least + 255)) return wholes.reset();
      weight[i] = whole * after.scales[row];
    }
  }

  // Whole numbers that the convolution's weight stood for are no longer what it is once its columns are scaled.
  void ForgetWholesUnlessOnes(int conv, std::span<const float> scale) {
    if (!AreOnes(scale)) graph_.values[rewriter_.node(conv).inputs[kWeight]].wholes.reset();
  }

  // Every row of the table times s, plus t.
  void FoldIntoTable(int affine, int embedding) {
    const std::span<float> table = OwnFloats(embedding, kWeight);
    const auto scale = Floats(affine, kScale), shift = Floats(affine, kShift);
    const size_t channels = scale.size();
    for (size_t i = 0; i < table.size(); ++i) table[i] = table[i] * scale[i % channels] + shift[i % channels];
    graph_.values[rewriter_.node(embedding).inputs[kWeight]].wholes.reset();
    rewriter_.TakeOutput(embedding, affine);
  }

  // (x s1 + t1) s2 + t2
  void Compose(int affine, int before) {
    Own(affine, kScale);
    Own(affine, kShift);
    const std::span<float> scale = OwnFloats(affine, kScale), shift = OwnFloats(affine, kShift);
    const auto first_scale = Floats(before, kScale), first_shift = Floats(before, kShift);
    for (size_t c = 0; c < scale.size(); ++c) {
      shift[c] += first_shift[c] * scale[c];
      scale[c] *= first_scale[c];
    }
    Skip(affine, before);
  }

  // `node` reads what the affine `skipped` read, in place of its output; nobody else does.
  void Skip(int node, int skipped) {
    std::vector<int> inputs = rewriter_.node(node).inputs;
    inputs[0] = rewriter_.node(skipped).inputs[0];
    rewriter_.SetInputs(node, std::move(inputs));
    rewriter_.Erase(skipped);
  }

  // Padding comes after the affine, so it must stay zero: scaling keeps it, a shift does not.
  bool PaddingAllows(int affine, int conv) const {
    const Window window = WindowOf(graph_.nodes[conv]);
    if (window.pad_top + window.pad_left + window.pad_bottom + window.pad_right == 0) return true;
    const auto shift = Floats(affine, kShift);
    return std::all_of(shift.begin(), shift.end(), [](float number) { return number == 0.0f; });
  }

  // What is quantised when it runs stays so: whole numbers do not outlive scales of columns.
  bool WholesAllow(int affine, int conv) const {
    return !graph_.nodes[conv].attributes.contains(kByPosition) || AreOnes(Floats(affine, kScale));
  }

  // W (x s + t) + b: every column of W times its s, and W t goes to b.
  void FoldIntoNext(int affine, int conv) {
    OwnBias(conv);
    Own(conv, kWeight);
    const std::span<float> weight = OwnFloats(conv, kWeight), bias = OwnFloats(conv, kBias);
    const auto scale = Floats(affine, kScale), shift = Floats(affine, kShift);
    const Shape shape = graph_.ShapeOf(graph_.nodes[conv].inputs[kWeight]);
    const bool depthwise = Is(graph_.nodes[conv], "DepthwiseConv");
    const size_t taps = static_cast<size_t>(shape[2] * shape[3]), row = static_cast<size_t>(shape[1]) * taps;
    for (size_t m = 0; m < bias.size(); ++m) {
      double sum = 0.0;
      for (size_t k = 0; k < row; ++k) {
        const size_t channel = depthwise ? m : k / taps;
        sum += double{weight[m * row + k]} * shift[channel];
        weight[m * row + k] *= scale[channel];
      }
      bias[m] += static_cast<float>(sum);
    }
    ForgetWholesUnlessOnes(conv, scale);
    Skip(conv, affine);
  }

  Graph& graph_;
  Rewriter rewriter_;
};

}  // namespace

StatusOr<int> FoldAffine(Graph& graph) { return AffineFolder(graph).Run(); }

}  // namespace swizzle

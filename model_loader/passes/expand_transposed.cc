// Along an axis of stride s, output position s * q + r gets tap t of input position q + e where s * e = r + pad - t. So
// a window over the input that takes in all such e computes the s phases r as channels of their own.
//
// One that makes a block of each position alone may stand before the blocks that another made: then both make blocks of
// blocks at the end, of fewer numbers.
#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "model_loader/graph/rewriter.h"
#include "model_loader/passes/passes.h"
#include "model_loader/semantics/axes.h"
#include "model_loader/semantics/window_axis.h"

namespace swizzle {
namespace {

// What reads one element, or one channel, at a time. The first may have one number for each channel.
constexpr std::array<std::string_view, 7> kElementwise = {
    "BatchNormalization", "HardSigmoid", "HardSwish", "LeakyRelu", "Relu", "Sigmoid", "Tanh"};

// One dimension of the plane.
struct TransposedAxis {
  int64_t kernel = 1, stride = 1, before = 0, after = 0, added = 0;
  // Of the window that computes all phases: its first place beside a position of the input, and its length.
  int64_t first = 0, window = 1;

  // Output positions beyond stride * input, which have to be a whole number of strides.
  int64_t surplus() const { return kernel - before - after + added - stride; }
  int64_t pad_after() const { return surplus() / stride + first + window - 1; }
  // The tap that phase `r` takes at place `e` of the window; none where that is outside of [0, kernel).
  int64_t Tap(int64_t r, int64_t e) const { return r + before - stride * (first + e); }

  // Whether each position becomes a block of its own.
  bool IsAlone() const { return first == 0 && window == 1 && surplus() == 0; }

  // Whether a window can compute it.
  bool MakeWindow() {
    constexpr int64_t kMost = 1 << 8;
    const auto in_range = [](int64_t number, int64_t least) { return number >= least && number <= kMost; };
    if (!in_range(kernel, 1) || !in_range(stride, 1) || !in_range(before, 0) || !in_range(after, 0)) return false;
    if (!in_range(added, 0) || surplus() % stride != 0) return false;
    const auto down = [](int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); };
    first = std::min<int64_t>(down(before - kernel + stride, stride), 0);
    const int64_t last = std::max(down(stride - 1 + before, stride), -surplus() / stride);
    window = last - first + 1;
    return true;
  }
};

using PlaneAxes = std::array<TransposedAxis, 2>;

constexpr int64_t kMostSteps = 1 << 8;  // of one block, in each direction

class Expansion {
 public:
  explicit Expansion(Graph& graph) : graph_(graph), rewriter_(graph) {}

  int Run() {
    const int given = rewriter_.node_count();
    for (int i = 0; i < given; ++i) {
      const Node& node = rewriter_.node(i);
      if (!node.domain.empty()) continue;
      if (node.op == "ConvTranspose") {
        const auto axes = AxesOf(node);
        if (!axes) continue;
        Expand(i, *axes);
      } else if (std::ranges::find(kElementwise, node.op) != kElementwise.end() && expanded_ > 0) {
        Hoist(i);
      }
    }
    if (expanded_ > 0) rewriter_.Finish();
    return expanded_;
  }

 private:
  const Tensor* Floats(int value) const {
    if (!graph_.IsConstant(value)) return nullptr;
    const Tensor& tensor = *graph_.values[value].constant;
    return tensor.dtype == DType::kFloat32 ? &tensor : nullptr;
  }

  // Nothing where a convolution and DepthToSpace are not what the node does, or its weight would be too large.
  std::optional<PlaneAxes> AxesOf(const Node& node) {
    const auto auto_pad = AutoPadOf(node);
    const auto strides = IntsAttribute(node, "strides", {1, 1}), pads = IntsAttribute(node, "pads", {0, 0, 0, 0});
    const auto added = IntsAttribute(node, "output_padding", {0, 0});
    const auto dilations = IntsAttribute(node, "dilations", {1, 1});
    const auto group = IntAttribute(node, "group", 1);
    if (!auto_pad.ok() || !strides.ok() || !pads.ok() || !added.ok() || !dilations.ok() || !group.ok()) return {};
    const Tensor* const weight = Floats(node.Input(1));
    if (weight == nullptr || weight->shape.size() != 4 || weight->elements() == 0 || *group != 1) return {};
    if (*auto_pad != AutoPad::kExplicit || node.attributes.contains("output_shape")) return {};
    if (strides->size() != 2 || pads->size() != 4 || added->size() != 2 || *dilations != std::vector<int64_t>{1, 1}) {
      return {};
    }
    if (node.Input(2) != kNoValue) {
      const Tensor* const bias = Floats(node.Input(2));
      if (bias == nullptr || bias->shape != Shape{weight->shape[1]}) return {};
    }
    PlaneAxes axes;
    for (size_t i = 0; i < 2; ++i) {
      axes[i] = {weight->shape[i + 2], (*strides)[i], (*pads)[i], (*pads)[i + 2], (*added)[i]};
      if (!axes[i].MakeWindow()) return {};
    }
    constexpr int64_t kMostElements = int64_t{1} << 24;
    const int64_t places = axes[0].window * axes[1].window * axes[0].stride * axes[1].stride;
    if (axes[0].stride != axes[1].stride || axes[0].stride == 1) return {};
    const int64_t most = std::min(kMostElements, left_) / places;
    if (weight->elements() > most) return {};
    left_ -= weight->elements() * places;
    return axes;
  }

  // The convolution's weight, [M * steps, C, window], of [C, M, kernel].
  static Tensor PhasesOf(const Tensor& weight, const PlaneAxes& axes) {
    const auto& [rows, columns] = axes;
    const int64_t inputs = weight.shape[0], outputs = weight.shape[1], steps = rows.stride * columns.stride;
    const Shape shape = {outputs * steps, inputs, rows.window, columns.window};
    std::vector<float> phases(static_cast<size_t>(shape[0] * shape[1] * shape[2] * shape[3]));
    float* to = phases.data();
    for (int64_t m = 0; m < shape[0]; ++m) {
      const int64_t down = m / columns.stride % rows.stride, across = m % columns.stride;
      for (int64_t c = 0; c < inputs; ++c) {
        const float* const from = weight.floats().data() + (c * outputs + m / steps) * rows.kernel * columns.kernel;
        for (int64_t i = 0; i < rows.window * columns.window; ++i, ++to) {
          const int64_t y = rows.Tap(down, i / columns.window), x = columns.Tap(across, i % columns.window);
          const bool inside = y >= 0 && y < rows.kernel && x >= 0 && x < columns.kernel;
          if (inside) *to = from[y * columns.kernel + x];
        }
      }
    }
    return Tensor::Floats(shape, phases);
  }

  // One number a channel, as many times as there are positions in a block.
  int Repeated(int value, int64_t times) {
    std::vector<float> repeated;
    for (const float number : Floats(value)->floats()) {
      repeated.insert(repeated.end(), static_cast<size_t>(times), number);
    }
    return graph_.AddConstant(graph_.values[value].name + ".repeated",
                              Tensor::Floats({std::ssize(repeated)}, repeated));
  }

  // The DepthToSpace that the transposed convolution may stand before: one that no other node reads, of more numbers
  // than the convolution computes. -1: none.
  int BlocksBefore(int index, const PlaneAxes& axes) {
    const Node& node = rewriter_.node(index);
    const int mover = rewriter_.Producer(node.inputs[0]);
    if (!blocks_.contains(mover) || rewriter_.SoleReader(node.inputs[0]) != index) return -1;
    const Shape& weight = Floats(node.inputs[1])->shape;
    const int64_t steps = axes[0].stride * axes[1].stride, block = BlockOf(mover), places = block * block;
    if (!axes[0].IsAlone() || !axes[1].IsAlone() || weight[1] * steps > weight[0]) return -1;
    if (block * axes[0].stride > kMostSteps) return -1;
    if (weight[0] * weight[1] * steps > left_ / (places * places)) return -1;
    left_ -= weight[0] * weight[1] * steps * places * places;
    return mover;
  }

  int64_t BlockOf(int mover) { return std::get<int64_t>(rewriter_.node(mover).attributes.at("blocksize")); }

  // Of a weight for positions, [M * inner^2, C, 1, 1], the one for blocks of outer^2 positions, [M * (outer * inner)^2,
  // C * outer^2, 1, 1]: each position has its own inputs and outputs.
  static Tensor OnBlocks(const Tensor& phases, int64_t outer, int64_t inner) {
    const int64_t both = outer * inner, places = outer * outer, inputs = phases.shape[1];
    const Shape shape = {phases.shape[0] * places, inputs * places, 1, 1};
    std::vector<float> values(static_cast<size_t>(shape[0] * shape[1]));
    for (int64_t row = 0; row < shape[0]; ++row) {
      const int64_t output = row / (both * both), y = row / both % both, x = row % both;
      const int64_t place = y / inner * outer + x / inner, phase = y % inner * inner + x % inner;
      const float* const from = phases.floats().data() + (output * inner * inner + phase) * inputs;
      for (int64_t c = 0; c < inputs; ++c) values[row * shape[1] + c * places + place] = from[c];
    }
    return Tensor::Floats(shape, values);
  }

  void Expand(int index, const PlaneAxes& axes) {
    const Node node = rewriter_.node(index);
    const int64_t step = axes[0].stride;
    Tensor phases = PhasesOf(*Floats(node.inputs[1]), axes);
    const int before = BlocksBefore(index, axes);
    const int64_t outer = before == -1 ? 1 : BlockOf(before);
    if (before != -1) phases = OnBlocks(phases, outer, step);
    const int weight = graph_.AddConstant(node.name + ".phases", std::move(phases));
    std::vector<int> inputs = {before == -1 ? node.inputs[0] : rewriter_.node(before).inputs[0], weight};
    if (node.Input(2) != kNoValue) inputs.push_back(Repeated(node.inputs[2], outer * step * outer * step));
    Value computed;
    computed.name = node.name + ".channels";
    graph_.values.push_back(std::move(computed));
    const int channels = static_cast<int>(graph_.values.size()) - 1;
    const auto& [rows, columns] = axes;
    const std::vector<int64_t> kernel = {rows.window, columns.window};
    const std::vector<int64_t> pads = {-rows.first, -columns.first, rows.pad_after(), columns.pad_after()};
    rewriter_.InsertBefore(
        index, Node{"Conv", "", node.name, std::move(inputs), {channels}, {{"kernel_shape", kernel}, {"pads", pads}}});
    Node& blocks = rewriter_.node(index);
    blocks.op = "DepthToSpace";
    blocks.name = node.name + ".blocks";
    blocks.attributes = {{"blocksize", outer * step}, {"mode", std::string("CRD")}};
    rewriter_.SetInputs(index, {channels});
    if (before != -1) {
      blocks_.erase(before);
      rewriter_.Erase(before);
    }
    blocks_.insert(index);
    ++expanded_;
  }

  // f(DepthToSpace(x)) becomes DepthToSpace(f(x)).
  void Hoist(int index) {
    const Node function = rewriter_.node(index);
    const int between = function.inputs[0], mover = rewriter_.Producer(between);
    const bool moves = blocks_.contains(mover) && rewriter_.SoleReader(between) == index;
    if (!moves || function.outputs.size() != 1) return;
    for (size_t i = 1; i < function.inputs.size(); ++i) {
      const Tensor* const numbers = Floats(function.inputs[i]);
      if (numbers == nullptr || numbers->shape.size() != 1) return;
    }
    const int64_t size = BlockOf(mover);
    std::vector<int> inputs = {rewriter_.node(mover).inputs[0]};
    for (size_t i = 1; i < function.inputs.size(); ++i) inputs.push_back(Repeated(function.inputs[i], size * size));
    Node &first = rewriter_.node(mover), &second = rewriter_.node(index);
    std::swap(first.op, second.op);
    std::swap(first.name, second.name);
    std::swap(first.attributes, second.attributes);
    rewriter_.SetInputs(mover, std::move(inputs));
    rewriter_.SetInputs(index, {between});
    blocks_.erase(mover);
    blocks_.insert(index);
  }

  Graph& graph_;
  Rewriter rewriter_;
  int expanded_ = 0;      // transposed convolutions that were expanded
  std::set<int> blocks_;  // their DepthToSpaces
  // Elements that weights may still become: nodes may share one, and a file have any number of them.
  int64_t left_ = int64_t{1} << 25;
};

}  // namespace

StatusOr<int> ExpandTransposed(Graph& graph) { return Expansion(graph).Run(); }

}  // namespace swizzle

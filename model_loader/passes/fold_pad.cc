#include <algorithm>

#include "model_loader/graph/operators.h"
#include "model_loader/graph/rewriter.h"
#include "model_loader/passes/passes.h"
#include "model_loader/semantics/epilogues.h"
#include "model_loader/semantics/windows.h"

namespace swizzle {
namespace {

constexpr int32_t kMaxPad = 1 << 15;

struct Padding {
  int32_t top, left, bottom, right;
  float value;
};

Padding PaddingOf(const Node& pad) {
  const auto& pads = std::get<std::vector<int64_t>>(pad.attributes.at("pads"));
  const auto at = [&](size_t i) { return static_cast<int32_t>(pads[i]); };
  return {at(0), at(1), at(2), at(3), std::get<float>(pad.attributes.at("value"))};
}

Window Padded(Window window, const Padding& padding) {
  window.pad_top += padding.top;
  window.pad_left += padding.left;
  window.pad_bottom += padding.bottom;
  window.pad_right += padding.right;
  return window;
}

bool HasNoPadding(const Window& window) {
  return window.pad_top + window.pad_left + window.pad_bottom + window.pad_right == 0;
}

bool IsWithinLimits(const Window& window) {
  return std::max({window.pad_top, window.pad_left, window.pad_bottom, window.pad_right}) <= kMaxPad;
}

// Whether every place of the window covers some of the plane, whatever the plane.
bool AlwaysTouchesPlane(const Window& window) {
  return window.dilation_h == 1 && window.dilation_w == 1 &&
         std::max(window.pad_top, window.pad_bottom) < window.kernel_h &&
         std::max(window.pad_left, window.pad_right) < window.kernel_w;
}

// Whether no element of the value can be below 0, as far as a few nodes before it tell.
bool IsNonNegative(Rewriter& rewriter, int value) {
  constexpr int kMaxNodes = 8;
  for (int i = 0; i < kMaxNodes; ++i) {
    const int producer = rewriter.Producer(value);
    if (producer < 0) return false;
    const Node& node = rewriter.node(producer);
    if (EpilogueOf(node).low >= 0.0f) return true;
    if (!Is(node, "MaxPool") && !Is(node, "AveragePool") && !Is(node, "Reshape")) return false;
    value = node.inputs[0];
  }
  return false;
}

// A pool ignores its own padding, so the Pad's must not have been the maximum.
bool MaxPoolAbsorbs(Rewriter& rewriter, int unpadded, const Window& window, const Padding& padding) {
  const bool never_wins = padding.value <= std::numeric_limits<float>::lowest() ||
                          (padding.value <= 0.0f && IsNonNegative(rewriter, unpadded));
  return never_wins && AlwaysTouchesPlane(Padded(window, padding));
}

// Whether `reader` of a padded value gives the same with the padding in its own window; then that is done.
bool Absorb(Rewriter& rewriter, int reader, int unpadded, const Padding& padding) {
  Node& node = rewriter.node(reader);
  const bool convolution = Is(node, "Conv") || Is(node, "DepthwiseConv");
  if (!convolution && !Is(node, "AveragePool") && !Is(node, "MaxPool")) return false;
  const Window window = WindowOf(node);
  Window padded = Padded(window, padding);
  if (!IsWithinLimits(padded)) return false;
  if (Is(node, "MaxPool")) {
    if (!MaxPoolAbsorbs(rewriter, unpadded, window, padding)) return false;
  } else if (padding.value != 0.0f) {
    return false;
  } else if (Is(node, "AveragePool")) {
    if (!HasNoPadding(window) && !window.count_include_pad) return false;
    if (!AlwaysTouchesPlane(padded)) return false;
    padded.count_include_pad = true;
  }
  SetWindow(node, padded);
  std::vector<int> inputs = node.inputs;
  inputs[0] = unpadded;
  rewriter.SetInputs(reader, std::move(inputs));
  return true;
}

// What nobody absorbs is a 1x1 convolution by 1 whose window reaches into the padding.
Status BecomeConvolution(Rewriter& rewriter, int index, const Padding& padding) {
  constexpr int64_t kMaxChannels = 1 << 14;
  Graph& graph = rewriter.graph();
  Node& node = rewriter.node(index);
  const int64_t channels = graph.ShapeOf(node.inputs[0])[1];
  if (padding.value != 0.0f || channels > kMaxChannels) {
    return Unimplemented(Describe(node), ": padding by ", padding.value, " of ", channels,
                         " channels is supported only where the convolution or pool behind it can take it over");
  }
  node.op = "DepthwiseConv";
  node.attributes.clear();
  SetWindow(node, Padded(Window{}, padding));
  const std::vector<float> ones(channels, 1.0f);
  const int weight = graph.AddConstant(node.name + ".weight", Tensor::Floats({channels, 1, 1, 1}, ones));
  rewriter.SetInputs(index, {node.inputs[0], weight});
  return {};
}

}  // namespace

StatusOr<int> FoldPad(Graph& graph) {
  Rewriter rewriter(graph);
  int count = 0;
  for (int i = 0; i < rewriter.node_count(); ++i) {
    if (!Is(rewriter.node(i), "Pad")) continue;
    const Padding padding = PaddingOf(rewriter.node(i));
    const int unpadded = rewriter.node(i).inputs[0];
    const int padded = rewriter.node(i).outputs[0];
    const std::vector<int> readers = rewriter.Readers(padded);
    for (int reader : readers) count += Absorb(rewriter, reader, unpadded, padding) ? 1 : 0;
    if (!rewriter.Readers(padded).empty() || rewriter.IsGraphOutput(padded)) {
      SWIZZLE_RETURN_IF_ERROR(BecomeConvolution(rewriter, i, padding));
    }
  }
  rewriter.Finish();
  return count;
}

}  // namespace swizzle

#include "model_loader/passes/moves.h"

#include <algorithm>
#include <vector>

#include "kernels/operator/attributes.h"
#include "model_loader/semantics/windows.h"

namespace swizzle {
namespace {

constexpr int64_t kHeight = 2, kWidth = 3;

std::map<std::string, Attribute> WindowAttributes(const Window& window) {
  Node node;
  SetWindow(node, window);
  return std::move(node.attributes);
}

// A constant [outputs, inputs, window].
StatusOr<int> AddWeight(const NodeRewrite& rewrite, const char* suffix, const Shape& shape,
                        const std::vector<float>& values) {
  SWIZZLE_RETURN_IF_ERROR(rewrite.Spend(static_cast<int64_t>(values.size())));
  return rewrite.graph().AddConstant(rewrite.node().name + suffix, Tensor::Floats(shape, values));
}

// A 1x1 convolution with a weight of this shape.
StatusOr<int> PrecedePointwise(NodeRewrite& rewrite, const char* suffix, int value, const Shape& weight,
                               const std::vector<float>& values) {
  SWIZZLE_ASSIGN_OR_RETURN(const int constant, AddWeight(rewrite, suffix, weight, values));
  Shape shape = rewrite.graph().ShapeOf(value);
  shape[1] = weight[0];
  auto attributes = WindowAttributes({});
  attributes["group"] = int64_t{1};
  Node conv{"Conv", {}, {}, {value, constant}, {}, std::move(attributes)};
  return rewrite.Precede(suffix, std::move(conv), kNoValue, std::move(shape));
}

// Window and stride along a dimension of `size` that take the places of a range, and the tap that does.
struct Picked {
  int64_t kernel, stride, tap;
};

Picked PickedBy(const SliceRange& range, int64_t size) {
  return {std::max(range.start + 1, size - range.count * range.step + 1), range.step, range.start};
}

}  // namespace

StatusOr<int> PrecedeShuffle(NodeRewrite& rewrite, int value, int64_t groups) {
  constexpr int64_t kMostChannels = 1 << 12;
  const int64_t channels = rewrite.graph().ShapeOf(value)[1], size = channels / groups;
  if (channels > kMostChannels) {
    return Unimplemented(Describe(rewrite.node()), " shuffles ", channels, " channels, more than ", kMostChannels);
  }
  std::vector<float> ones(static_cast<size_t>(channels * channels));
  for (int64_t c = 0; c < channels; ++c) ones[c * channels + c % groups * size + c / groups] = 1.0f;
  return PrecedePointwise(rewrite, ".shuffled", value, {channels, channels, 1, 1}, ones);
}

Status BecomePlaneSlice(NodeRewrite& rewrite, const SliceRange& rows, const SliceRange& columns) {
  constexpr int64_t kMostTaps = 16, kMostStride = 1 << 8;
  const int input = rewrite.node().inputs[0];
  Shape shape = rewrite.graph().ShapeOf(input);
  const Picked down = PickedBy(rows, shape[kHeight]), across = PickedBy(columns, shape[kWidth]);
  if (down.kernel > kMostTaps || across.kernel > kMostTaps || down.kernel * across.kernel > kMostTaps ||
      std::max(down.stride, across.stride) > kMostStride) {
    return Unimplemented(Describe(rewrite.node()), " of ", ShapeText(shape), " takes places of the plane from ",
                         rows.start, " and ", columns.start, " on, by steps of ", rows.step, " and ", columns.step,
                         ", which is not supported: that window is too large");
  }
  Window window;
  window.kernel_h = static_cast<int32_t>(down.kernel);
  window.kernel_w = static_cast<int32_t>(across.kernel);
  window.stride_h = static_cast<int32_t>(down.stride);
  window.stride_w = static_cast<int32_t>(across.stride);
  const int64_t channels = shape[1], taps = window.taps();
  std::vector<float> ones(static_cast<size_t>(channels * taps));
  for (int64_t c = 0; c < channels; ++c) ones[c * taps + down.tap * across.kernel + across.tap] = 1.0f;
  SWIZZLE_ASSIGN_OR_RETURN(const int weight,
                           AddWeight(rewrite, ".places", {channels, 1, down.kernel, across.kernel}, ones));
  shape[kHeight] = rows.count;
  shape[kWidth] = columns.count;
  return rewrite.Become("DepthwiseConv", {input, weight}, std::move(shape), WindowAttributes(window));
}

StatusOr<int> PrecedeBroadcast(NodeRewrite& rewrite, int value, const Shape& shape) {
  const Shape from = rewrite.graph().ShapeOf(value);
  if (from[1] != shape[1]) {
    const std::vector<float> ones(static_cast<size_t>(shape[1]), 1.0f);
    SWIZZLE_ASSIGN_OR_RETURN(value, PrecedePointwise(rewrite, ".channels", value, {shape[1], 1, 1, 1}, ones));
  }
  if (from[kHeight] == shape[kHeight] && from[kWidth] == shape[kWidth]) return value;
  const auto scale = [&](int64_t axis) { return from[axis] == shape[axis] ? 1.0f : 0.0f; };  // 0: by its size
  Node repeated{"Resize", {}, {}, {value}, {}, {}};
  repeated.attributes = {{"linear", int64_t{0}},
                         {"coordinates", static_cast<int64_t>(Coordinates::kAsymmetric)},
                         {"nearest", static_cast<int64_t>(Nearest::kFloor)},
                         {"scale_h", scale(kHeight)},
                         {"scale_w", scale(kWidth)}};
  return rewrite.Precede(".plane", std::move(repeated), kNoValue, shape);
}

Status BecomeSpaceToDepth(NodeRewrite& rewrite, int64_t block) {
  constexpr int64_t kMostElements = int64_t{1} << 24;
  const Node& node = rewrite.node();
  const int input = node.inputs[0];
  Shape shape = rewrite.graph().ShapeOf(input);
  const int64_t channels = shape[1], places = block * block;
  if (channels > kMostElements / places / places / channels) {
    return Unimplemented(Describe(node), " of ", ShapeText(shape), " by blocks of ", block, " is not supported");
  }
  std::vector<float> ones(static_cast<size_t>(places * channels * channels * places));
  for (int64_t out = 0; out < places * channels; ++out) {
    ones[(out * channels + out % channels) * places + out / channels] = 1.0f;
  }
  SWIZZLE_ASSIGN_OR_RETURN(const int weight,
                           AddWeight(rewrite, ".places", {places * channels, channels, block, block}, ones));
  Window window;
  window.kernel_h = window.kernel_w = window.stride_h = window.stride_w = static_cast<int32_t>(block);
  auto attributes = WindowAttributes(window);
  attributes["group"] = int64_t{1};
  shape = {shape[0], channels * places, shape[kHeight] / block, shape[kWidth] / block};
  return rewrite.Become("Conv", {input, weight}, std::move(shape), std::move(attributes));
}

Status BecomeChannelSum(NodeRewrite& rewrite, float factor) {
  const int input = rewrite.node().inputs[0];
  Shape shape = rewrite.graph().ShapeOf(input);
  const std::vector<float> factors(static_cast<size_t>(shape[1]), factor);
  SWIZZLE_ASSIGN_OR_RETURN(const int weight, AddWeight(rewrite, ".ones", {1, shape[1], 1, 1}, factors));
  shape[1] = 1;
  auto attributes = WindowAttributes({});
  attributes["group"] = int64_t{1};
  return rewrite.Become("Conv", {input, weight}, std::move(shape), std::move(attributes));
}

}  // namespace swizzle

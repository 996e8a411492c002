// What moves whole channels and planes: Concat, Slice, Split and DepthToSpace; and what resizes planes.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include "kernels/operator/attributes.h"
#include "kernels/operator/resampling.h"
#include "model_loader/passes/canonicalise.h"
#include "model_loader/passes/moves.h"
#include "model_loader/semantics/axes.h"
#include "model_loader/semantics/element_types.h"
#include "model_loader/semantics/resampling_modes.h"
#include "model_loader/semantics/slice_arguments.h"
#include "model_loader/semantics/slices.h"
#include "model_loader/semantics/strides.h"

namespace swizzle {
namespace {

constexpr int64_t kChannelAxis = 1;

// The whole numbers that all these values are of, each by one scale.
std::optional<WholeNumbers> CommonWholes(const Graph& graph, const std::vector<int>& values) {
  const std::optional<WholeNumbers>& first = graph.values[values[0]].wholes;
  const bool alike = std::ranges::all_of(values, [&](int value) { return graph.values[value].wholes == first; });
  return alike && first && first->quantisation.per_tensor() ? first : std::nullopt;
}

// Activations that are put one behind the other along one dimension.
struct Joined {
  std::vector<int> values;
  std::vector<int64_t> extents;  // along it
  int64_t axis = kChannelAxis;
  Shape shape;        // of the whole
  int64_t inner = 1;  // elements of a plane for each of the extents', where planes are joined

  bool of_planes() const { return axis > kChannelAxis; }
  Shape ShapeFrom(size_t first) const {
    Shape part = shape;
    part[axis] = std::accumulate(extents.begin() + static_cast<std::ptrdiff_t>(first), extents.end(), int64_t{0});
    return part;
  }
  std::map<std::string, Attribute> AttributesFrom(size_t first) const {
    std::vector<int64_t> sizes(extents.begin() + static_cast<std::ptrdiff_t>(first), extents.end());
    for (int64_t& size : sizes) size *= inner;
    return {{"of_planes", int64_t{of_planes()}}, {"sizes", std::move(sizes)}};
  }
};

StatusOr<Joined> ReadJoined(const NodeRewrite& rewrite) {
  const Node& node = rewrite.node();
  Joined joined;
  SWIZZLE_ASSIGN_OR_RETURN(joined.shape, rewrite.ActivationShape(0));
  const auto rank = static_cast<int64_t>(joined.shape.size());
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t axis, IntAttribute(node, "axis", kChannelAxis));
  SWIZZLE_ASSIGN_OR_RETURN(joined.axis, NormalAxis(node, axis, rank));
  const bool behind_ones =
      std::all_of(joined.shape.begin() + std::min<int64_t>(2, rank),
                  joined.shape.begin() + std::max<int64_t>(std::min<int64_t>(2, rank), joined.axis),
                  [](int64_t extent) { return extent == 1; });
  if (joined.axis == 0 || !behind_ones) {
    return Unimplemented(Describe(node), " of ", ShapeText(joined.shape), " along axis ", joined.axis,
                         " is not supported, only along channels or whole planes");
  }
  if (joined.of_planes()) joined.inner = ProductOf(joined.shape, joined.axis + 1, rank);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!rewrite.HasInput(i)) return InvalidArgument(Describe(node), " lacks its input ", i);
    SWIZZLE_ASSIGN_OR_RETURN(const Shape shape, rewrite.ActivationShape(i));
    Shape expected = joined.shape;
    if (shape.size() == expected.size()) expected[joined.axis] = shape[joined.axis];
    if (shape != expected) {
      return InvalidArgument(Describe(node), ": its inputs ", ShapeText(joined.shape), " and ", ShapeText(shape),
                             " differ beside axis ", joined.axis);
    }
    joined.values.push_back(node.inputs[i]);
    joined.extents.push_back(shape[joined.axis]);
  }
  joined.shape = joined.ShapeFrom(0);
  return joined;
}

// How many of the operands, from the first on, are slices that take one value apart from its first channel to its last;
// 0: none are.
size_t SlicesOfOne(const NodeRewrite& rewrite, std::span<const int> values) {
  int whole = kNoValue;
  int64_t channels = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const Node* const slice = rewrite.ProducerOf(values[i]);
    if (slice == nullptr || !Is(*slice, "Slice")) return 0;
    if (i == 0) whole = slice->inputs[0];
    if (slice->inputs[0] != whole || std::get<int64_t>(slice->attributes.at("first")) != channels) return 0;
    channels += rewrite.graph().ShapeOf(values[i])[kChannelAxis];
    if (channels == rewrite.graph().ShapeOf(whole)[kChannelAxis]) return i + 1;
  }
  return 0;
}

// Reads values instead of all of their slices, which detectors split to go on with one of two.
void ReadWholes(const NodeRewrite& rewrite, Joined& joined) {
  for (size_t i = 0; i < joined.values.size(); ++i) {
    const auto at = static_cast<std::ptrdiff_t>(i);
    const auto count = static_cast<std::ptrdiff_t>(SlicesOfOne(rewrite, std::span(joined.values).subspan(i)));
    if (count == 0) continue;
    joined.values[i] = rewrite.ProducerOf(joined.values[i])->inputs[0];
    joined.extents[i] = rewrite.graph().ShapeOf(joined.values[i])[kChannelAxis];
    joined.values.erase(joined.values.begin() + at + 1, joined.values.begin() + at + count);
    joined.extents.erase(joined.extents.begin() + at + 1, joined.extents.begin() + at + count);
  }
}

// More operands than an operator takes: the last ones are joined before, until there are few enough.
Status JoinLast(NodeRewrite& rewrite, Joined& joined) {
  for (int step = 0; joined.values.size() > kMaxParts; ++step) {
    const size_t count = std::min<size_t>(kMaxParts, joined.values.size() - kMaxParts + 1);
    const size_t first = joined.values.size() - count;
    const std::vector<int> last(joined.values.begin() + static_cast<std::ptrdiff_t>(first), joined.values.end());
    Shape shape = joined.ShapeFrom(first);
    const int64_t extent = shape[joined.axis];
    Node node{"Concat", {}, {}, last, {}, joined.AttributesFrom(first)};
    SWIZZLE_ASSIGN_OR_RETURN(const int value,
                             rewrite.Precede(Concat(".last", step), std::move(node), kNoValue, std::move(shape)));
    rewrite.graph().values[value].wholes = CommonWholes(rewrite.graph(), last);
    joined.values.resize(first);
    joined.extents.resize(first);
    joined.values.push_back(value);
    joined.extents.push_back(extent);
  }
  return {};
}

// Slice's arguments among what is known.
struct KnownPlaces {
  using Place = int64_t;
  const NodeRewrite& rewrite;

  bool Has(size_t i) const { return rewrite.HasInput(i); }
  StatusOr<std::vector<int64_t>> Integers(size_t i, const char* what) const { return rewrite.KnownIntegers(i, what); }
  StatusOr<std::vector<int64_t>> Places(size_t i, const char* what) const { return Integers(i, what); }
  Status Named(const Status& status) const { return Annotate(status, Describe(rewrite.node())); }
};

// Whether a slice from `start` to `end` takes all of a dimension, whose size may be the batch's.
bool TakesAll(int64_t start, int64_t end, int64_t size) {
  if (size == kFreeBatch) return start == 0 && end >= std::numeric_limits<int32_t>::max();
  const auto range = ClampSlice(start, end, 1, size);
  return range.ok() && range->count == size;
}

Status BecomeSlice(NodeRewrite& rewrite, int64_t first, Shape shape) {
  const int input = rewrite.node().inputs[0];
  rewrite.graph().values[rewrite.node().outputs[0]].wholes = CommonWholes(rewrite.graph(), {input});
  return rewrite.Become("Slice", {input}, std::move(shape), {{"first", first}});
}

// Of the first input, whose planes are sliced, and perhaps its channels, too.
Status SlicePlane(NodeRewrite& rewrite, const std::optional<SliceRange>& channels,
                  const std::optional<SliceRange>& rows, const std::optional<SliceRange>& columns) {
  const Node& node = rewrite.node();
  const Shape& shape = rewrite.graph().ShapeOf(node.inputs[0]);
  if (channels || rewrite.graph().values[node.inputs[0]].wholes) {
    return Unimplemented(Describe(node), " of ", ShapeText(shape), " is not supported: it takes a part of planes, ",
                         channels ? "and of channels" : "in whole numbers");
  }
  const auto all = [](int64_t size) { return SliceRange{0, size, 1}; };
  return BecomePlaneSlice(rewrite, rows.value_or(all(shape[2])), columns.value_or(all(shape[3])));
}

// One axis of a Resize: how large it becomes, and by which scale, 0 where the model gives the size.
struct ResizedAxis {
  int64_t size = 0;
  float scale = 0.0f;
};

// Input `i`, or nothing where it is left out or empty.
std::optional<Elements> ListAt(const NodeRewrite& rewrite, size_t i) {
  auto known = rewrite.KnownElements(i);
  if (known && known->scalars.empty()) known.reset();
  return known;
}

StatusOr<ResizedAxis> ScaledBy(const Node& node, int64_t from, float scale) {
  const float size = from == kFreeBatch ? 1.0f : ScaledLength(from, scale);
  constexpr float kMost = 1 << 24;
  if (!(scale > 0.0f) || !(size >= 1.0f && size <= kMost)) {
    return InvalidArgument(Describe(node), ": a scale is ", scale, ", which makes ", size, " of ", from);
  }
  return ResizedAxis{from == kFreeBatch && scale == 1.0f ? from : static_cast<int64_t>(size), scale};
}

StatusOr<ResizedAxis> SizedTo(const Node& node, int64_t from, const Scalar& size) {
  if (size.times_batch) return ResizedAxis{size.whole == 1 ? kFreeBatch : 0, 0.0f};
  constexpr int64_t kMost = 1 << 24;
  if (size.whole < 1 || size.whole > kMost) return InvalidArgument(Describe(node), ": a size is ", size.whole);
  return ResizedAxis{size.whole, size.whole == from ? 1.0f : 0.0f};
}

// Whether coordinates and what is nearest are what they always were.
bool IsBeforeChoices(const NodeRewrite& rewrite) {
  return rewrite.node().op == "Upsample" || rewrite.graph().opset < 11;
}

// Every axis of the input, as the node resizes it.
StatusOr<std::vector<ResizedAxis>> ResizedAxes(const NodeRewrite& rewrite, const Shape& shape) {
  const Node& node = rewrite.node();
  const bool old = IsBeforeChoices(rewrite);
  const auto scales = ListAt(rewrite, old ? 1 : 2);
  const auto sizes = old ? std::nullopt : ListAt(rewrite, 3);
  const auto rank = static_cast<int64_t>(shape.size());
  std::vector<int64_t> axes(shape.size());
  std::iota(axes.begin(), axes.end(), 0);
  SWIZZLE_ASSIGN_OR_RETURN(axes, IntsAttribute(node, "axes", axes));
  const size_t given = scales ? scales->scalars.size() : sizes ? sizes->scalars.size() : 0;
  if (scales.has_value() == sizes.has_value() || given != axes.size() || (scales && !IsFloating(scales->dtype)) ||
      (sizes && sizes->dtype != DType::kInt64)) {
    return Unimplemented(Describe(node), ": its scales or sizes are not known, one for each axis");
  }
  std::vector<ResizedAxis> resized;
  for (const int64_t extent : shape) resized.push_back({extent, 1.0f});
  for (size_t i = 0; i < axes.size(); ++i) {
    SWIZZLE_ASSIGN_OR_RETURN(const int64_t axis, NormalAxis(node, axes[i], rank));
    SWIZZLE_ASSIGN_OR_RETURN(resized[axis],
                             scales ? ScaledBy(node, shape[axis], static_cast<float>(scales->scalars[i].real))
                                    : SizedTo(node, shape[axis], sizes->scalars[i]));
  }
  return resized;
}

// Of axes that are resized, where there was no choice.
StatusOr<Nearest> NearestOfOld(const Node& node, std::span<const ResizedAxis> axes) {
  const auto shrinks = [](const ResizedAxis& axis) { return axis.scale < 1.0f; };
  const auto grows = [](const ResizedAxis& axis) { return axis.scale > 1.0f; };
  const bool any_shrinks = std::ranges::any_of(axes, shrinks);
  if (any_shrinks && std::ranges::any_of(axes, grows)) {
    return Unimplemented(Describe(node), " shrinks one axis and stretches another, which is not supported");
  }
  return NearestBeforeOpset11(any_shrinks ? 0.5 : 1.0);
}

// All but the scales.
StatusOr<Resampling> ReadResampling(const NodeRewrite& rewrite) {
  const Node& node = rewrite.node();
  const bool old = IsBeforeChoices(rewrite);
  SWIZZLE_ASSIGN_OR_RETURN(const std::string mode, StringAttribute(node, "mode", "nearest"));
  SWIZZLE_ASSIGN_OR_RETURN(const std::string coordinates,
                           StringAttribute(node, "coordinate_transformation_mode", old ? "asymmetric" : "half_pixel"));
  SWIZZLE_ASSIGN_OR_RETURN(const std::string nearest,
                           StringAttribute(node, "nearest_mode", old ? "floor" : "round_prefer_floor"));
  SWIZZLE_ASSIGN_OR_RETURN(const std::string policy, StringAttribute(node, "keep_aspect_ratio_policy", "stretch"));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t antialias, IntAttribute(node, "antialias", 0));
  const auto known_coordinates = CoordinatesNamed(coordinates);
  const auto known_nearest = NearestNamed(nearest);
  const bool linear = mode == "linear" || mode == "bilinear";
  if ((!linear && mode != "nearest") || !known_coordinates || !known_nearest || policy != "stretch" || antialias != 0) {
    return Unimplemented(Describe(node), " of mode '", mode, "' by '", coordinates, "', '", nearest, "', '", policy,
                         "' is not supported");
  }
  Resampling resampling{.linear = linear, .coordinates = *known_coordinates};
  if (!linear) resampling.nearest = *known_nearest;
  return resampling;
}

}  // namespace

Status CanonicaliseConcat(NodeRewrite& rewrite) {
  SWIZZLE_ASSIGN_OR_RETURN(Joined joined, ReadJoined(rewrite));
  if (joined.axis == kChannelAxis) ReadWholes(rewrite, joined);
  if (joined.values.size() == 1) {
    rewrite.VanishInto(joined.values[0]);
    return {};
  }
  rewrite.graph().values[rewrite.node().outputs[0]].wholes = CommonWholes(rewrite.graph(), joined.values);
  SWIZZLE_RETURN_IF_ERROR(JoinLast(rewrite, joined));
  auto attributes = joined.AttributesFrom(0);
  return rewrite.Become("Concat", std::move(joined.values), std::move(joined.shape), std::move(attributes));
}

Status CanonicaliseSlice(NodeRewrite& rewrite) {
  const Node& node = rewrite.node();
  SWIZZLE_ASSIGN_OR_RETURN(Shape shape, rewrite.ActivationShape(0));
  SWIZZLE_ASSIGN_OR_RETURN(const auto slice,
                           SliceArgumentsOf(node, static_cast<int64_t>(shape.size()), KnownPlaces{rewrite}));
  std::optional<SliceRange> channels, plane[2];
  for (size_t i = 0; i < slice.axes.size(); ++i) {
    const int64_t axis = slice.axes[i], step = slice.steps[i];
    if (step == 1 && TakesAll(slice.starts[i], slice.ends[i], shape[axis])) continue;
    const bool of_plane = axis > kChannelAxis && shape.size() == 4 && step > 0;
    if (axis == 0 || (!of_plane && (axis != kChannelAxis || step != 1))) {
      return Unimplemented(Describe(node), " of ", ShapeText(shape), " along axis ", axis, " by steps of ", step,
                           " is not supported, only of neighbouring channels and of planes");
    }
    std::optional<SliceRange>& range = of_plane ? plane[axis - kChannelAxis - 1] : channels;
    SWIZZLE_ASSIGN_OR_RETURN(range, ClampSlice(slice.starts[i], slice.ends[i], step, shape[axis]));
    if (range->count == 0) return Unimplemented(Describe(node), " takes nothing");
  }
  if (plane[0] || plane[1]) return SlicePlane(rewrite, channels, plane[0], plane[1]);
  if (!channels) {
    rewrite.Vanish();
    return {};
  }
  shape[kChannelAxis] = channels->count;
  return BecomeSlice(rewrite, channels->start, std::move(shape));
}

Status CanonicaliseSplit(NodeRewrite& rewrite) {
  const Node node = rewrite.node();
  SWIZZLE_ASSIGN_OR_RETURN(Shape shape, rewrite.ActivationShape(0));
  const auto rank = static_cast<int64_t>(shape.size());
  SWIZZLE_ASSIGN_OR_RETURN(int64_t axis, IntAttribute(node, "axis", 0));
  SWIZZLE_ASSIGN_OR_RETURN(axis, NormalAxis(node, axis, rank));
  if (axis != kChannelAxis) {
    return Unimplemented(Describe(node), " along axis ", axis, " is not supported, only along channels");
  }
  SWIZZLE_ASSIGN_OR_RETURN(std::vector<int64_t> lengths, IntsAttribute(node, "split", {}));
  if (rewrite.HasInput(1)) {
    SWIZZLE_ASSIGN_OR_RETURN(lengths, rewrite.KnownIntegers(1, "lengths"));
  }
  auto parts = PartLengths(std::move(lengths), shape[axis], static_cast<int64_t>(node.outputs.size()));
  if (!parts.ok()) return Annotate(parts.status(), Describe(node));
  if (std::ranges::find(*parts, 0) != parts->end()) return Unimplemented(Describe(node), " has an empty part");
  shape[axis] = parts->front();
  SWIZZLE_RETURN_IF_ERROR(BecomeSlice(rewrite, 0, shape));
  int64_t first = parts->front();
  for (size_t i = 1; i < node.outputs.size(); ++i) {
    shape[axis] = (*parts)[i];
    if (node.outputs[i] != kNoValue) {
      rewrite.graph().values[node.outputs[i]].wholes = CommonWholes(rewrite.graph(), {node.inputs[0]});
      Node part{"Slice", {}, {}, {node.inputs[0]}, {}, {{"first", first}}};
      SWIZZLE_RETURN_IF_ERROR(rewrite.Precede(Concat(".part", i), std::move(part), node.outputs[i], shape).status());
    }
    first += (*parts)[i];
  }
  return {};
}

Status CanonicaliseDepthToSpace(NodeRewrite& rewrite) {
  const Node& node = rewrite.node();
  SWIZZLE_ASSIGN_OR_RETURN(Shape shape, rewrite.ActivationShape(0));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t block, IntAttribute(node, "blocksize", 0));
  SWIZZLE_ASSIGN_OR_RETURN(const std::string mode, StringAttribute(node, "mode", "DCR"));
  constexpr int64_t kMostBlock = 1 << 10;
  if (shape.size() != 4 || block < 1 || block > kMostBlock || (mode != "DCR" && mode != "CRD") ||
      shape[kChannelAxis] % (block * block) != 0) {
    return InvalidArgument(Describe(node), " of ", ShapeText(shape), " by blocks of ", block, " in mode '", mode,
                           "' has no result");
  }
  shape[kChannelAxis] /= block * block;
  shape[2] *= block;
  shape[3] *= block;
  return rewrite.Become("DepthToSpace", {node.inputs[0]}, std::move(shape),
                        {{"block", block}, {"places_first", int64_t{mode == "DCR"}}});
}

Status CanonicaliseSpaceToDepth(NodeRewrite& rewrite) {
  const Node& node = rewrite.node();
  SWIZZLE_ASSIGN_OR_RETURN(const Shape shape, rewrite.ActivationShape(0));
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t block, IntAttribute(node, "blocksize", 0));
  constexpr int64_t kMostBlock = 1 << 6;
  if (shape.size() != 4 || block < 1 || block > kMostBlock || shape[2] % block != 0 || shape[3] % block != 0) {
    return InvalidArgument(Describe(node), " of ", ShapeText(shape), " by blocks of ", block, " has no result");
  }
  return BecomeSpaceToDepth(rewrite, block);
}

Status CanonicaliseResize(NodeRewrite& rewrite) {
  const Node& node = rewrite.node();
  SWIZZLE_ASSIGN_OR_RETURN(Shape shape, rewrite.ActivationShape(0));
  SWIZZLE_ASSIGN_OR_RETURN(Resampling resampling, ReadResampling(rewrite));
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<ResizedAxis> axes, ResizedAxes(rewrite, shape));
  const size_t rank = shape.size();
  const auto is_kept = [&](size_t axis) { return axes[axis].size == shape[axis] && axes[axis].scale == 1.0f; };
  const bool keeps_batch = axes[0].size == shape[0] && (axes[0].scale == 1.0f || axes[0].scale == 0.0f);
  if (rank < 3 || rank > 4 || !keeps_batch || !is_kept(kChannelAxis)) {
    return Unimplemented(Describe(node), " of ", ShapeText(shape), " is not supported, only of height and width");
  }
  if (is_kept(rank - 1) && is_kept(2)) {
    rewrite.Vanish();
    return {};
  }
  if (!resampling.linear && IsBeforeChoices(rewrite)) {
    SWIZZLE_ASSIGN_OR_RETURN(resampling.nearest, NearestOfOld(node, axes));
  }
  resampling.scale_w = axes[rank - 1].scale;
  resampling.scale_h = rank == 4 ? axes[2].scale : 1.0f;
  for (size_t axis = 2; axis < rank; ++axis) shape[axis] = axes[axis].size;
  if (!resampling.linear) {
    rewrite.graph().values[node.outputs[0]].wholes = CommonWholes(rewrite.graph(), {node.inputs[0]});
  }
  return rewrite.Become("Resize", {node.inputs[0]}, std::move(shape),
                        {{"linear", int64_t{resampling.linear}},
                         {"coordinates", static_cast<int64_t>(resampling.coordinates)},
                         {"nearest", static_cast<int64_t>(resampling.nearest)},
                         {"scale_h", resampling.scale_h},
                         {"scale_w", resampling.scale_w}});
}

}  // namespace swizzle

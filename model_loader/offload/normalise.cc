// Normalisation of planes and of groups of channels, in three passes: rows, then a scale and a shift that broadcast.
#include <algorithm>
#include <utility>

#include "model_loader/offload/operators.h"

namespace swizzle::offload {

using interpreter::Array;
using interpreter::Call;

namespace {

Array Viewed(const Array& array, Shape shape) {
  Array view = array;
  view.shape = std::move(shape);
  return view;
}

// [images, lists, ...] of which each list of numbers becomes mean 0 and variance 1, and is then scaled and shifted by
// input 1 and 2, whose numbers are for so many `pieces` of an image.
StatusOr<Array> NormaliseLists(Call& call, int64_t lists, int64_t pieces) {
  const Array& x = call.In(0);
  for (size_t i = 0; i < 3; ++i) {
    if (call.In(i).dtype != DType::kFloat32) return Unimplemented("a device normalises FP32 alone");
    if (i > 0 && call.In(i).shape != Shape{pieces}) {
      return InvalidArgument("input ", i, " has shape ", ShapeText(call.In(i).shape), "; it must be [", pieces, "]");
    }
  }
  if (x.elements() == 0) return Unimplemented("a device does not normalise nothing");
  SWIZZLE_ASSIGN_OR_RETURN(const float epsilon, call.Float("epsilon", 1e-5f));
  SWIZZLE_ASSIGN_OR_RETURN(Array rows, call.New(DType::kFloat32, x.shape));
  const int64_t images = x.shape[0];
  call.device()->functions().Normalise({.rows = images * lists,
                                        .length = x.elements() / (images * lists),
                                        .epsilon = epsilon,
                                        .from = FloatsOf(x),
                                        .to = MutableFloats(rows)},
                                       call.stream());
  const Shape piecewise = {images, pieces, x.elements() / (images * pieces)};
  const Array scaling[] = {Viewed(rows, piecewise), Viewed(call.In(1), {pieces, 1})};
  SWIZZLE_ASSIGN_OR_RETURN(const Array scaled, Pointed(call, PointOp::kMul, scaling));
  const Array shifting[] = {scaled, Viewed(call.In(2), {pieces, 1})};
  SWIZZLE_ASSIGN_OR_RETURN(const Array shifted, Pointed(call, PointOp::kAdd, shifting));
  return Viewed(shifted, x.shape);
}

}  // namespace

StatusOr<Array> InstanceNormalization(Call& call) {
  SWIZZLE_RETURN_IF_ERROR(interpreter::CheckRank(call.In(0), 2));
  return NormaliseLists(call, call.In(0).shape[1], call.In(0).shape[1]);
}

StatusOr<Array> GroupNormalization(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t groups, call.Int("num_groups", 0));
  SWIZZLE_RETURN_IF_ERROR(interpreter::CheckRank(call.In(0), 3));
  const int64_t channels = call.In(0).shape[1];
  if (groups < 1 || groups > std::max<int64_t>(channels, 1) || channels % groups != 0) {
    return InvalidArgument(channels, " channels do not make ", groups, " groups");
  }
  return NormaliseLists(call, groups, call.opset() < 21 ? groups : channels);  // scales of a group, later of a channel
}

}  // namespace swizzle::offload

#include "model_loader/expansions/constant_weights.h"

#include <cstring>

#include "model_loader/semantics/axes.h"
#include "model_loader/semantics/element_types.h"

namespace swizzle::expansions {

std::vector<float> RealsOf(const Tensor& tensor) {
  std::vector<float> reals(static_cast<size_t>(tensor.elements()));
  VisitElementType(tensor.dtype, [&]<typename T>(T) {
    for (size_t i = 0; i < reals.size(); ++i) {
      T element;
      std::memcpy(&element, tensor.bytes.data() + i * sizeof(T), sizeof(T));
      reals[i] = static_cast<float>(Widened(element));
    }
  });
  return reals;
}

Tensor TensorOf(DType dtype, Shape shape, const std::vector<float>& reals) {
  Tensor tensor{dtype, std::move(shape), std::vector<std::byte>(reals.size() * ElementBytes(dtype))};
  VisitElementType(dtype, [&]<typename T>(T) {
    for (size_t i = 0; i < reals.size(); ++i) {
      const T element = Narrowed<T>(reals[i]);
      std::memcpy(tensor.bytes.data() + i * sizeof(T), &element, sizeof(T));
    }
  });
  return tensor;
}

StatusOr<std::vector<float>> Dequantised(const Tensor& x, const Tensor& scales, const Tensor* zero_points, int64_t axis,
                                         int64_t block) {
  if (x.elements() > kMostWeightBytes / static_cast<int64_t>(sizeof(float))) {
    return MakeError(StatusCode::kResourceExhausted, "its weight has ", x.elements(), " elements; the most are ",
                     kMostWeightBytes / static_cast<int64_t>(sizeof(float)));
  }
  const bool is_one = scales.elements() == 1;
  int64_t inner = 1, places = 1, rows = 1;  // rows: of scales along the axis
  if (!is_one) {
    SWIZZLE_ASSIGN_OR_RETURN(axis, NormalAxis(axis, static_cast<int64_t>(x.shape.size())));
    const auto at = static_cast<size_t>(axis);
    for (size_t d = at + 1; d < x.shape.size(); ++d) inner *= x.shape[d];
    places = x.shape[at];
    rows = block > 0 ? (places + block - 1) / block : places;
    Shape expected = {places};
    if (block > 0) {
      expected = x.shape;
      expected[at] = rows;
    }
    if (scales.shape != expected) {
      return InvalidArgument("its scales are ", ShapeText(scales.shape), " for ", ShapeText(x.shape), " along axis ",
                             axis, block > 0 ? Concat(" in blocks of ", block) : "");
    }
  }
  if (zero_points != nullptr && zero_points->elements() != scales.elements()) {
    return InvalidArgument("it has ", scales.elements(), " scales and ", zero_points->elements(), " zero points");
  }
  const std::vector<float> by = RealsOf(scales);
  const std::vector<float> zeros = zero_points != nullptr ? RealsOf(*zero_points) : std::vector<float>(by.size());
  std::vector<float> reals = RealsOf(x);
  for (size_t i = 0; i < reals.size(); ++i) {
    size_t s = 0;
    if (!is_one) {
      const auto element = static_cast<int64_t>(i);
      const int64_t place = element / inner % places, outer = element / inner / places;
      s = static_cast<size_t>(block > 0 ? (outer * rows + place / block) * inner + element % inner : place);
    }
    reals[i] = (reals[i] - zeros[s]) * by[s];
  }
  return reals;
}

}  // namespace swizzle::expansions

// A small tensor whose elements are known at load time, the batch size aside: what constants and shape arithmetic are
// folded in.
#ifndef SWIZZLE_MODEL_LOADER_SEMANTICS_ELEMENTS_H_
#define SWIZZLE_MODEL_LOADER_SEMANTICS_ELEMENTS_H_

#include <optional>
#include <vector>

#include "model_loader/graph/graph.h"

namespace swizzle {

// `real` holds elements of floating types, `whole` those of all others.
struct Scalar {
  double real = 0.0;
  int64_t whole = 0;
  bool times_batch = false;  // the element is `whole` times the free batch size; only in kInt64
};

struct Elements {
  DType dtype = DType::kInt64;
  Shape shape;
  std::vector<Scalar> scalars;  // row-major

  bool DependsOnBatch() const;
  // REQUIRES: !DependsOnBatch().
  Tensor ToTensor() const;
  // Nothing for types that no arithmetic is done in (halves, strings).
  static std::optional<Elements> FromTensor(const Tensor& tensor);
};

// Whether FromTensor and ToTensor know the type.
bool IsFoldable(DType dtype);

// What a Cast casts to: UNIMPLEMENTED for types that no tensor has, nothing for those that no arithmetic is done in.
StatusOr<DType> CastType(const Node& node);
std::optional<DType> FoldableCastType(const Node& node);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SEMANTICS_ELEMENTS_H_

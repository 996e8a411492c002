#include "model_loader/semantics/elements.h"

#include <algorithm>
#include <cstring>

#include "kernels/base/real_types.h"
#include "model_loader/semantics/element_types.h"

namespace swizzle {

bool IsFoldable(DType dtype) { return !IsHalf(dtype) && dtype != DType::kUint64 && dtype != DType::kString; }

StatusOr<DType> CastType(const Node& node) {
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t to, IntAttribute(node, "to", 0));
  return ElementTypeOf(to);
}

std::optional<DType> FoldableCastType(const Node& node) {
  const StatusOr<DType> dtype = CastType(node);
  return dtype.ok() && IsFoldable(*dtype) ? std::optional(*dtype) : std::nullopt;
}

bool Elements::DependsOnBatch() const {
  return std::any_of(scalars.begin(), scalars.end(), [](const Scalar& scalar) { return scalar.times_batch; });
}

Tensor Elements::ToTensor() const {
  Tensor tensor{dtype, shape, std::vector<std::byte>(scalars.size() * ElementBytes(dtype))};
  const bool floating = IsFloating(dtype);
  VisitElementType(dtype, [&]<typename T>(T) {
    for (size_t i = 0; i < scalars.size(); ++i) {
      const T element = floating ? Narrowed<T>(scalars[i].real) : Narrowed<T>(scalars[i].whole);
      std::memcpy(tensor.bytes.data() + i * sizeof(T), &element, sizeof(T));
    }
  });
  return tensor;
}

std::optional<Elements> Elements::FromTensor(const Tensor& tensor) {
  if (!IsFoldable(tensor.dtype)) return std::nullopt;
  Elements elements{tensor.dtype, tensor.shape, std::vector<Scalar>(static_cast<size_t>(tensor.elements()))};
  const bool floating = IsFloating(tensor.dtype);
  VisitElementType(tensor.dtype, [&]<typename T>(T) {
    for (size_t i = 0; i < elements.scalars.size(); ++i) {
      T element;
      std::memcpy(&element, tensor.bytes.data() + i * sizeof(T), sizeof(T));
      if (floating) elements.scalars[i].real = static_cast<double>(Widened(element));
      if (!floating) elements.scalars[i].whole = static_cast<int64_t>(Widened(element));
    }
  });
  return elements;
}

}  // namespace swizzle

#include "model_loader/semantics/elements.h"

#include <algorithm>
#include <cstring>

namespace swizzle {
namespace {

// Calls visit(T()) with the C++ type of `dtype`; false if arithmetic is not done in it.
template <typename Visit>
bool WithType(DType dtype, const Visit& visit) {
  switch (dtype) {
    case DType::kBool:
    case DType::kUint8:
      visit(uint8_t());
      return true;
    case DType::kUint16:
      visit(uint16_t());
      return true;
    case DType::kUint32:
      visit(uint32_t());
      return true;
    case DType::kInt8:
      visit(int8_t());
      return true;
    case DType::kInt16:
      visit(int16_t());
      return true;
    case DType::kInt32:
      visit(int32_t());
      return true;
    case DType::kInt64:
      visit(int64_t());
      return true;
    case DType::kFloat32:
      visit(float());
      return true;
    case DType::kFloat64:
      visit(double());
      return true;
    default:
      return false;
  }
}

}  // namespace

bool IsFloating(DType dtype) { return dtype == DType::kFloat32 || dtype == DType::kFloat64; }

bool IsFoldable(DType dtype) {
  return WithType(dtype, [](auto) {});
}

bool Elements::DependsOnBatch() const {
  return std::any_of(scalars.begin(), scalars.end(), [](const Scalar& scalar) { return scalar.times_batch; });
}

Tensor Elements::ToTensor() const {
  Tensor tensor{dtype, shape, std::vector<std::byte>(scalars.size() * ElementBytes(dtype))};
  const bool floating = IsFloating(dtype);
  WithType(dtype, [&]<typename T>(T) {
    for (size_t i = 0; i < scalars.size(); ++i) {
      const T element = floating ? static_cast<T>(scalars[i].real) : static_cast<T>(scalars[i].whole);
      std::memcpy(tensor.bytes.data() + i * sizeof(T), &element, sizeof(T));
    }
  });
  return tensor;
}

std::optional<Elements> Elements::FromTensor(const Tensor& tensor) {
  Elements elements{tensor.dtype, tensor.shape, std::vector<Scalar>(static_cast<size_t>(tensor.elements()))};
  const bool floating = IsFloating(tensor.dtype);
  const bool known = WithType(tensor.dtype, [&]<typename T>(T) {
    for (size_t i = 0; i < elements.scalars.size(); ++i) {
      T element;
      std::memcpy(&element, tensor.bytes.data() + i * sizeof(T), sizeof(T));
      if (floating) elements.scalars[i].real = static_cast<double>(element);
      if (!floating) elements.scalars[i].whole = static_cast<int64_t>(element);
    }
  });
  if (!known) return std::nullopt;
  return elements;
}

}  // namespace swizzle

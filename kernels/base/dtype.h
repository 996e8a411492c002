// Element types.
#ifndef SWIZZLE_KERNELS_BASE_DTYPE_H_
#define SWIZZLE_KERNELS_BASE_DTYPE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace swizzle {

enum class DType : uint8_t {
  kBool,
  kUint8,
  kUint16,
  kUint32,
  kUint64,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kFloat16,
  kFloat32,
  kFloat64,
  kBFloat16,
  kString,
};

// Bytes of one element; 0 for kString, whose elements vary.
size_t ElementBytes(DType dtype);

// The Open Inference Protocol's name: "FP32", "INT64", "BYTES", ...
std::string_view DTypeName(DType dtype);
std::optional<DType> DTypeFromName(std::string_view name);

// The types whose elements memory of T may hold. uint16_t is the bits of either half; kernels on GPUs name types of
// their own (cuda/runtime/elements.cuh).
template <typename T>
struct ElementTypes;
template <>
struct ElementTypes<float> {
  static constexpr std::array kTypes = {DType::kFloat32};
};
template <>
struct ElementTypes<uint16_t> {
  static constexpr std::array kTypes = {DType::kBFloat16, DType::kFloat16};
};
template <>
struct ElementTypes<int8_t> {
  static constexpr std::array kTypes = {DType::kInt8};
};
template <>
struct ElementTypes<uint8_t> {
  static constexpr std::array kTypes = {DType::kUint8};
};
template <>
struct ElementTypes<int32_t> {
  static constexpr std::array kTypes = {DType::kInt32};
};

template <typename T>
constexpr bool HoldsElements(DType dtype) {
  for (const DType type : ElementTypes<T>::kTypes) {
    if (type == dtype) return true;
  }
  return false;
}

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_BASE_DTYPE_H_

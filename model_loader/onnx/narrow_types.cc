#include "model_loader/onnx/narrow_types.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/base/half.h"

namespace swizzle {
namespace {

constexpr std::array kTypes = {
    NarrowType{17, "FLOAT8E4M3FN", 8, DType::kFloat16, 4, 7},
    NarrowType{18, "FLOAT8E4M3FNUZ", 8, DType::kFloat16, 4, 8},
    NarrowType{19, "FLOAT8E5M2", 8, DType::kFloat16, 5, 15},
    NarrowType{20, "FLOAT8E5M2FNUZ", 8, DType::kFloat16, 5, 16},
    NarrowType{21, "UINT4", 4, DType::kUint8},
    NarrowType{22, "INT4", 4, DType::kInt8},
    NarrowType{23, "FLOAT4E2M1", 4, DType::kFloat16, 2, 1},
    NarrowType{24, "FLOAT8E8M0", 8, DType::kFloat32, 8, 127},
    NarrowType{25, "UINT2", 2, DType::kUint8},
    NarrowType{26, "INT2", 2, DType::kInt8},
};

constexpr int64_t kE4M3 = 17, kE4M3NoZero = 18, kE5M2 = 19, kE5M2NoZero = 20, kE8M0 = 24;
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// What is no number of the usual form: those of one byte that have no negative zero have it in its place.
bool IsNoNumber(const NarrowType& type, int code) {
  if (type.number == kE4M3NoZero || type.number == kE5M2NoZero) return code == 0x80;
  if (type.number == kE4M3) return (code & 0x7f) == 0x7f;
  return type.number == kE5M2 ? (code & 0x7f) > 0x7c : type.number == kE8M0 && code == 0xff;
}

float Decoded(const NarrowType& type, int code) {
  if (IsNoNumber(type, code)) return kNaN;
  if (type.number == kE8M0) return std::ldexp(1.0f, code - type.bias);
  const int mantissa_bits = type.bits - 1 - type.exponent_bits;
  const int exponent = code >> mantissa_bits & ((1 << type.exponent_bits) - 1);
  const int mantissa = code & ((1 << mantissa_bits) - 1);
  const bool is_negative = (code >> (type.bits - 1)) != 0;
  const bool is_infinite = type.number == kE5M2 && (code & 0x7f) == 0x7c;
  const int whole = exponent == 0 ? mantissa : mantissa + (1 << mantissa_bits);
  const float size = is_infinite
                         ? std::numeric_limits<float>::infinity()
                         : std::ldexp(static_cast<float>(whole), std::max(exponent, 1) - type.bias - mantissa_bits);
  return is_negative ? -size : size;
}

}  // namespace

const NarrowType* FindNarrowType(int64_t number) {
  const auto found = std::ranges::find(kTypes, number, &NarrowType::number);
  return found != kTypes.end() ? &*found : nullptr;
}

std::vector<std::byte> Widen(const NarrowType& type, std::span<const std::byte> packed, int64_t elements) {
  const size_t element_bytes = ElementBytes(type.held);
  std::vector<std::byte> wide(static_cast<size_t>(elements) * element_bytes);
  const int mask = (1 << type.bits) - 1;
  for (int64_t i = 0; i < elements; ++i) {
    const int code = static_cast<int>(packed[static_cast<size_t>(i * type.bits / 8)]) >> (i * type.bits % 8) & mask;
    std::byte* const to = wide.data() + static_cast<size_t>(i) * element_bytes;
    if (type.held == DType::kFloat16) {
      const uint16_t half = HalfOfFloat(Decoded(type, code));
      std::memcpy(to, &half, sizeof(half));
    } else if (type.held == DType::kFloat32) {
      const float real = Decoded(type, code);
      std::memcpy(to, &real, sizeof(real));
    } else {
      const bool is_negative = type.held == DType::kInt8 && code > mask / 2;
      *to = static_cast<std::byte>(is_negative ? code - mask - 1 : code);
    }
  }
  return wide;
}

bool MovesElements(std::string_view op) {
  constexpr std::array<std::string_view, 10> kMoving = {"Concat", "Flatten", "Gather",  "Identity",  "Reshape",
                                                        "Slice",  "Split",   "Squeeze", "Transpose", "Unsqueeze"};
  return std::ranges::find(kMoving, op) != kMoving.end();
}

bool TakesNarrowTypes(std::string_view op) {
  return op == "DequantizeLinear" || op == "Cast" || op == "Shape" || op == "Size";
}

}  // namespace swizzle

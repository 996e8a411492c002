#include "server/rest/element_json.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "kernels/base/half_bits.h"
#include "server/model/string_tensor.h"

namespace swizzle {
namespace {

template <typename T>
void AppendBytes(T value, std::string& tensor) {
  tensor.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

template <typename T>
bool AppendWhole(const JsonScalar& value, std::string& tensor) {
  if (const auto* const number = std::get_if<uint64_t>(&value)) {
    if (*number > static_cast<uint64_t>(std::numeric_limits<T>::max())) return false;
    AppendBytes(static_cast<T>(*number), tensor);
    return true;
  }
  if (const auto* const number = std::get_if<int64_t>(&value)) {
    if (*number < 0 && (!std::is_signed_v<T> || *number < static_cast<int64_t>(std::numeric_limits<T>::min()))) {
      return false;
    }
    AppendBytes(static_cast<T>(*number), tensor);
    return true;
  }
  return false;
}

bool NumberOf(const JsonScalar& value, double& number) {
  if (const auto* const real = std::get_if<double>(&value)) return number = *real, true;
  if (const auto* const whole = std::get_if<uint64_t>(&value)) return number = static_cast<double>(*whole), true;
  if (const auto* const whole = std::get_if<int64_t>(&value)) return number = static_cast<double>(*whole), true;
  return false;
}

bool AppendReal(const JsonScalar& value, DType dtype, std::string& tensor) {
  double number;
  if (!NumberOf(value, number)) return false;
  if (dtype == DType::kFloat64) return AppendBytes(number, tensor), true;
  const auto single = static_cast<float>(number);
  if (!std::isfinite(single)) return false;
  if (dtype == DType::kFloat32) return AppendBytes(single, tensor), true;
  const uint16_t half = HalfBits(single, dtype);
  if (!std::isfinite(FloatOfHalfBits(half, dtype))) return false;
  AppendBytes(half, tensor);
  return true;
}

// The shortest text that reads as the same number.
template <typename T>
bool Write(T value, std::string& text) {
  if constexpr (std::is_floating_point_v<T>) {
    if (!std::isfinite(value)) return false;
  }
  std::array<char, 32> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  text.append(digits.data(), static_cast<size_t>(end - digits.data()));
  return true;
}

// `write` writes one element, and may fail.
template <typename T, typename WriteOne>
Status WriteAll(std::string_view tensor, DType dtype, int64_t most, std::string& text, const WriteOne& write) {
  for (size_t at = 0; at < tensor.size(); at += sizeof(T)) {
    T element;
    std::memcpy(&element, tensor.data() + at, sizeof(T));
    if (at > 0) text += ',';
    if (!write(element)) {
      return InvalidArgument("has an element that is not finite, of type ", DTypeName(dtype),
                             ", which JSON has no number for");
    }
    if (static_cast<int64_t>(text.size()) > most) {
      return MakeError(StatusCode::kResourceExhausted, "makes a text of more than ", most, " bytes");
    }
  }
  return absl::OkStatus();
}

template <typename T>
Status WriteNumbers(std::string_view tensor, DType dtype, int64_t most, std::string& text) {
  return WriteAll<T>(tensor, dtype, most, text, [&text](T element) { return Write(element, text); });
}

Status WriteStrings(std::string_view tensor, int64_t most, std::string& text) {
  for (bool first = true; !tensor.empty(); first = false) {
    uint32_t length;
    SWIZZLE_CHECK(tensor.size() >= sizeof(length));
    std::memcpy(&length, tensor.data(), sizeof(length));
    tensor.remove_prefix(sizeof(length));
    SWIZZLE_CHECK(tensor.size() >= length);
    if (!first) text += ',';
    SWIZZLE_RETURN_IF_ERROR(WriteJsonString(tensor.substr(0, length), text));
    tensor.remove_prefix(length);
    if (static_cast<int64_t>(text.size()) > most) {
      return MakeError(StatusCode::kResourceExhausted, "makes a text of more than ", most, " bytes");
    }
  }
  return absl::OkStatus();
}

}  // namespace

bool AppendJsonElement(const JsonScalar& value, DType dtype, std::string& tensor) {
  switch (dtype) {
    case DType::kBool:
      if (const auto* const truth = std::get_if<bool>(&value)) return tensor += *truth ? '\1' : '\0', true;
      if (const auto* const bit = std::get_if<uint64_t>(&value); bit != nullptr && *bit <= 1) {
        return tensor += *bit == 1 ? '\1' : '\0', true;
      }
      return false;
    case DType::kUint8:
      return AppendWhole<uint8_t>(value, tensor);
    case DType::kUint16:
      return AppendWhole<uint16_t>(value, tensor);
    case DType::kUint32:
      return AppendWhole<uint32_t>(value, tensor);
    case DType::kUint64:
      return AppendWhole<uint64_t>(value, tensor);
    case DType::kInt8:
      return AppendWhole<int8_t>(value, tensor);
    case DType::kInt16:
      return AppendWhole<int16_t>(value, tensor);
    case DType::kInt32:
      return AppendWhole<int32_t>(value, tensor);
    case DType::kInt64:
      return AppendWhole<int64_t>(value, tensor);
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kFloat32:
    case DType::kFloat64:
      return AppendReal(value, dtype, tensor);
    case DType::kString:
      if (const auto* const element = std::get_if<std::string_view>(&value)) {
        return AppendElement(*element, tensor), true;
      }
      return false;
  }
  return false;
}

Status WriteJsonElements(std::string_view tensor, DType dtype, int64_t most, std::string& text) {
  switch (dtype) {
    case DType::kBool:
      return WriteAll<uint8_t>(tensor, dtype, most, text,
                               [&text](uint8_t element) { return text += element == 0 ? "false" : "true", true; });
    case DType::kUint8:
      return WriteNumbers<uint8_t>(tensor, dtype, most, text);
    case DType::kUint16:
      return WriteNumbers<uint16_t>(tensor, dtype, most, text);
    case DType::kUint32:
      return WriteNumbers<uint32_t>(tensor, dtype, most, text);
    case DType::kUint64:
      return WriteNumbers<uint64_t>(tensor, dtype, most, text);
    case DType::kInt8:
      return WriteNumbers<int8_t>(tensor, dtype, most, text);
    case DType::kInt16:
      return WriteNumbers<int16_t>(tensor, dtype, most, text);
    case DType::kInt32:
      return WriteNumbers<int32_t>(tensor, dtype, most, text);
    case DType::kInt64:
      return WriteNumbers<int64_t>(tensor, dtype, most, text);
    case DType::kFloat16:
    case DType::kBFloat16:
      return WriteAll<uint16_t>(tensor, dtype, most, text,
                                [&](uint16_t half) { return Write(FloatOfHalfBits(half, dtype), text); });
    case DType::kFloat32:
      return WriteNumbers<float>(tensor, dtype, most, text);
    case DType::kFloat64:
      return WriteNumbers<double>(tensor, dtype, most, text);
    case DType::kString:
      return WriteStrings(tensor, most, text);
  }
  return absl::OkStatus();
}

Status WriteJsonString(std::string_view value, std::string& text) {
  try {
    text += nlohmann::json(value).dump();
  } catch (const nlohmann::json::type_error&) {  // the only one that it has for a string
    return InvalidArgument("has bytes that are no UTF-8, which JSON has no string for");
  }
  return absl::OkStatus();
}

}  // namespace swizzle

// Tensors of strings as they lie in memory and travel: (uint32 length, bytes) of one element after another, lengths in
// little-endian. Functions only.
#ifndef SWIZZLE_SERVER_MODEL_STRING_TENSOR_H_
#define SWIZZLE_SERVER_MODEL_STRING_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace swizzle {

// Whether `bytes` are exactly `count` elements.
inline bool IsStringTensor(std::span<const std::byte> bytes, int64_t count) {
  for (; count > 0; --count) {
    uint32_t length;
    if (bytes.size() < sizeof(length)) return false;
    std::memcpy(&length, bytes.data(), sizeof(length));
    bytes = bytes.subspan(sizeof(length));
    if (bytes.size() < length) return false;
    bytes = bytes.subspan(length);
  }
  return bytes.empty();
}

// The first element of a tensor that has one; the tensor then begins behind it.
inline std::string_view TakeElement(std::string_view& tensor) {
  uint32_t length;
  std::memcpy(&length, tensor.data(), sizeof(length));
  const std::string_view element = tensor.substr(sizeof(length), length);
  tensor.remove_prefix(sizeof(length) + length);
  return element;
}

inline void AppendElement(std::string_view element, std::string& tensor) {
  const auto length = static_cast<uint32_t>(element.size());
  tensor.append(reinterpret_cast<const char*>(&length), sizeof(length)).append(element);
}

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_MODEL_STRING_TENSOR_H_

// Elements of tensors between JSON and memory. Functions only.
#ifndef SWIZZLE_SERVER_REST_ELEMENT_JSON_H_
#define SWIZZLE_SERVER_REST_ELEMENT_JSON_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "kernels/base/dtype.h"
#include "kernels/base/status.h"

namespace swizzle {

// A value of JSON that is no array and no object; integers that are not negative are uint64_t. The text outlives it.
using JsonScalar = std::variant<std::nullptr_t, bool, int64_t, uint64_t, double, std::string_view>;

// More than any request has: how deep its objects and lists nest, and how many parameters one of them has.
inline constexpr size_t kMostJsonDepth = 64;
inline constexpr int kMostJsonParameters = 1024;

// Appends an element as a tensor of that type has it in memory (string_tensor.h). False if the type has no such value;
// numbers of floating-point types are rounded to the nearest, and must not become infinite.
bool AppendJsonElement(const JsonScalar& value, DType dtype, std::string& tensor);

// Appends the elements, separated by commas. INVALID_ARGUMENT where JSON has no such value (NaN, infinities, bytes that
// are no UTF-8), RESOURCE_EXHAUSTED where the text becomes longer than `most`.
Status WriteJsonElements(std::string_view tensor, DType dtype, int64_t most, std::string& text);

// A string with its quotes. INVALID_ARGUMENT if it is no UTF-8.
Status WriteJsonString(std::string_view value, std::string& text);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_REST_ELEMENT_JSON_H_

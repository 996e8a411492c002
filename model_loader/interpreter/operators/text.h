// Arrays of strings. They lie as in a TensorView: (uint32 length, bytes), one behind the other.
#ifndef SWIZZLE_MODEL_LOADER_INTERPRETER_OPERATORS_TEXT_H_
#define SWIZZLE_MODEL_LOADER_INTERPRETER_OPERATORS_TEXT_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model_loader/interpreter/values/array.h"

namespace swizzle::interpreter {

// INVALID_ARGUMENT unless the bytes are as many strings as the shape has elements.
StatusOr<Array> CopyStrings(Memory& memory, const Shape& shape, std::span<const std::byte> bytes);

// Views into the array. REQUIRES: it has strings.
std::vector<std::string_view> StringsOf(const Array& array);

// REQUIRES: as many strings as the shape has elements.
StatusOr<Array> ArrayOfStrings(Memory& memory, Shape shape, std::span<const std::string> strings);

}  // namespace swizzle::interpreter

#endif  // SWIZZLE_MODEL_LOADER_INTERPRETER_OPERATORS_TEXT_H_

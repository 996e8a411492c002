// Ranges of little arrays on the host, taken at once: to write down where elements lie (moved.h) takes longer than to
// copy some hundred of them. Pure functions.
#ifndef SWIZZLE_MODEL_LOADER_INTERPRETER_VALUES_LITTLE_WINDOW_H_
#define SWIZZLE_MODEL_LOADER_INTERPRETER_VALUES_LITTLE_WINDOW_H_

#include <span>

#include "model_loader/interpreter/values/call.h"
#include "model_loader/semantics/slices.h"

namespace swizzle::interpreter {

// Whether a part of the array, which has this shape, is better taken at once.
bool IsLittle(const Call& call, const Array& array, const Shape& part);

// A range of each dimension, as an array of this shape: a part of the array itself where its elements lie one after
// another there, else a copy. REQUIRES: IsLittle; the shape has as many elements as the ranges, and some.
StatusOr<Array> LittleWindow(Call& call, const Array& array, std::span<const SliceRange> ranges, Shape shape);

}  // namespace swizzle::interpreter

#endif  // SWIZZLE_MODEL_LOADER_INTERPRETER_VALUES_LITTLE_WINDOW_H_

// Inputs that a request leaves out. Header only; thread-safe.
#ifndef SWIZZLE_SERVER_MODEL_INPUT_DEFAULT_H_
#define SWIZZLE_SERVER_MODEL_INPUT_DEFAULT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "server/model/model.h"

namespace swizzle {

// The default of an input in a request of so many rows, of the memory that the specification has.
// REQUIRES: it has one, and rows are within a batch.
inline TensorView DefaultView(const ModelSpec& spec, const TensorSpec& input, int64_t rows) {
  const InputDefault& value = *input.default_value;
  const bool batched = spec.max_batch_size > 0;
  TensorView view{input.dtype, value.dims, std::span(value.bytes).first(value.row_bytes * static_cast<size_t>(rows))};
  if (batched) view.shape.insert(view.shape.begin(), rows);
  return view;
}

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_MODEL_INPUT_DEFAULT_H_

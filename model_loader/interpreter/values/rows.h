// Arrays seen as rows along some of their dimensions: what reductions, softmax and sorting work on.
#ifndef SWIZZLE_MODEL_LOADER_INTERPRETER_VALUES_ROWS_H_
#define SWIZZLE_MODEL_LOADER_INTERPRETER_VALUES_ROWS_H_

#include <cstdint>
#include <vector>

#include "kernels/cpu/runtime/cpu_stream.h"
#include "model_loader/interpreter/values/strided.h"

namespace swizzle::interpreter {

// The array with the chosen axes last, in order: `count` rows of `length` elements.
struct Rows {
  Array array;
  std::vector<int64_t> order;  // the axes of the original as they stand in `array`
  int64_t count = 1;
  int64_t length = 1;
};

// REQUIRES: `axes` as NormalAxes returns them.
StatusOr<Rows> AlongAxes(Call& call, Array array, const std::vector<int64_t>& axes);

// `array`, which has the dimensions of rows.array, with its axes as the original had them.
StatusOr<Array> BackInOrder(Call& call, const Rows& rows, Array array);

// Calls body(row), which makes elements of results, for every row, shared among the stream's threads where there is
// enough to do.
template <typename Body>
void ForEachRow(Call& call, const Rows& rows, const Body& body) {
  constexpr int64_t kWorthAThread = 1 << 15;  // elements
  if (!call.wants_elements()) return;
  if (rows.count * rows.length < kWorthAThread) {
    for (int64_t row = 0; row < rows.count; ++row) body(row);
    return;
  }
  cpu::CpuStream::From(call.stream()).ParallelRanges(rows.count, [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) body(row);
  });
}

}  // namespace swizzle::interpreter

#endif  // SWIZZLE_MODEL_LOADER_INTERPRETER_VALUES_ROWS_H_

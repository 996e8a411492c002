// How many rows of a batch are best computed at once, learned from batches as they come: more rows fill a device, and
// fewer leave what is computed between nodes in its caches. Single-owner.
#ifndef SWIZZLE_SERVER_MODEL_ROWS_AT_ONCE_H_
#define SWIZZLE_SERVER_MODEL_ROWS_AT_ONCE_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace swizzle {

class RowsAtOnce {
 public:
  // Of each number of rows the first runs take memory and are recorded, and the next are compared.
  static constexpr int kFirstRuns = 4, kComparedRuns = 3;

  // For a batch of so many rows: a power of two, or all of them. One that has not been compared yet goes before the
  // fastest; the largest comes first.
  int64_t For(int64_t rows) const;
  // How long all `rows` took, so many at once.
  void Note(int64_t rows, int64_t at_once, absl::Duration time);

 private:
  struct Known {
    int runs = 0;
    absl::Duration of_row = absl::InfiniteDuration();  // the least
  };
  static size_t Step(int64_t rows);

  std::array<Known, 16> steps_;  // [log2 of the rows at once, rounded up]; larger ones are the last
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_MODEL_ROWS_AT_ONCE_H_

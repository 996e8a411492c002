#include "server/model/rows_at_once.h"

#include <algorithm>
#include <bit>

namespace swizzle {

size_t RowsAtOnce::Step(int64_t rows) {
  const int step = std::bit_width(static_cast<uint64_t>(std::max<int64_t>(rows, 1) - 1));
  return std::min<size_t>(static_cast<size_t>(step), std::tuple_size_v<decltype(steps_)> - 1);
}

int64_t RowsAtOnce::For(int64_t rows) const {
  size_t best = Step(rows);
  for (size_t step = best + 1; step-- > 0;) {
    if (steps_[step].runs < kFirstRuns + kComparedRuns) return std::min(rows, int64_t{1} << step);
    if (steps_[step].of_row < steps_[best].of_row) best = step;
  }
  return std::min(rows, int64_t{1} << best);
}

void RowsAtOnce::Note(int64_t rows, int64_t at_once, absl::Duration time) {
  Known& known = steps_[Step(at_once)];
  if (++known.runs <= kFirstRuns) return;
  known.of_row = std::min(known.of_row, time / rows);
}

}  // namespace swizzle

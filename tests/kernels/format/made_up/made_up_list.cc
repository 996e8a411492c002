// The list of formats with one row more. Defining FormatRows, this stands in for kernels/format/format_list.cc, whose
// object the linker then leaves in its library; all else is the program's own, as it was compiled.
#include <algorithm>

#include "tests/kernels/format/made_up/made_up_matrix.h"

namespace swizzle {
namespace {

constexpr auto WithOneMore() {
  std::array<FormatRow, kFormatList.size() + 1> rows = {};
  std::ranges::copy(kFormatList, rows.begin());
  rows.back() = MakeFormatRow<testing::MadeUpMatrix>(testing::MadeUpMatrix::kTraits);
  return rows;
}

constexpr auto kRows = WithOneMore();
static_assert(IsInOrder(kRows));

}  // namespace

std::span<const FormatRow> FormatRows() { return kRows; }

}  // namespace swizzle

// The formats of weights, a row each. To add one, write its header and source (weight_matrix.h says what they give),
// its enumerator (format.h) and its row: that files hold it, that its places are hashed, its bytes counted, and reports
// name it, follows.
//
// Only format_list.cc and tests include this.
#ifndef SWIZZLE_KERNELS_FORMAT_FORMAT_LIST_H_
#define SWIZZLE_KERNELS_FORMAT_FORMAT_LIST_H_

#include <algorithm>
#include <array>

#include "kernels/format/attention_pattern.h"
#include "kernels/format/bitmap.h"
#include "kernels/format/csr.h"
#include "kernels/format/dense.h"
#include "kernels/format/format_row.h"
#include "kernels/format/hb_ell.h"
#include "kernels/format/n_m.h"
#include "kernels/format/shfl_bw.h"
#include "kernels/format/sr_bcrs.h"

namespace swizzle {

inline constexpr std::array kFormatList = {
    MakeFormatRow<DenseMatrix>({.name = "dense", .sparse = false}),
    MakeFormatRow<CsrMatrix>({.name = "csr", .sparse = true}),
    MakeFormatRow<AttentionPattern>({.name = "pattern", .sparse = true, .has_values = false}),
    MakeFormatRow<ShflBwMatrix>(
        {.name = "shfl-bw", .sparse = true, .in_blocks = true, .suits = "where 16 rows or more share columns"}),
    MakeFormatRow<NOfMMatrix>(
        {.name = "n-m", .sparse = true, .suits = "where few of neighbouring input channels are not zero"}),
    MakeFormatRow<SrBcrsMatrix>(
        {.name = "sr-bcrs", .sparse = true, .suits = "where 2, 4 or 8 neighbouring rows share columns"}),
    MakeFormatRow<HbEllMatrix>(
        {.name = "hb-ell", .sparse = true, .suits = "where many 16x16 blocks are empty or full"}),
    MakeFormatRow<BitmapMatrix>({.name = "bitmap", .sparse = true, .visits_zeros = true, .suits = "for any zeros"}),
};

// Whether every row stands at its format's number.
constexpr bool IsInOrder(std::span<const FormatRow> rows) {
  return std::ranges::all_of(
      rows, [&](const FormatRow& row) { return static_cast<ptrdiff_t>(row.format) == &row - rows.data() + 1; });
}
static_assert(IsInOrder(kFormatList));

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_FORMAT_FORMAT_LIST_H_

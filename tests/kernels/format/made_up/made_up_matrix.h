// A format that the program does not have, for made_up_format_test.cc: a bit for each element, and the values of the
// bits that are set as bytes with a scale a row. Value type.
//
// Worked example:      1  0  0 -2       bits (one word a row)   1001b 0000b 0010b
//                      0  0  0  0       values                  64 -127 127
//                      0  3  0  0       scales                  2/127 0 3/127
//
// Invariant (Validate): row_words words a row, just enough for its columns; no bit beyond them; a value for each bit; a
// scale for each row.
#ifndef SWIZZLE_TESTS_KERNELS_FORMAT_MADE_UP_MADE_UP_MATRIX_H_
#define SWIZZLE_TESTS_KERNELS_FORMAT_MADE_UP_MADE_UP_MATRIX_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kernels/format/format_list.h"

namespace swizzle::testing {

struct MadeUpMatrix {
  // A real format has an enumerator.
  static constexpr Format kFormat = static_cast<Format>(kFormatList.size() + 1);
  static constexpr FormatTraits kTraits = {.name = "made_up", .sparse = true};

  int64_t rows = 0;
  int64_t cols = 0;
  int64_t row_words = 0;
  std::vector<uint64_t> bits;
  std::vector<int8_t> values;
  std::vector<float> scales;

  int64_t nnz() const { return static_cast<int64_t>(values.size()); }
  Status Validate() const;
  DenseMatrix ToDense() const;
  static MadeUpMatrix FromDense(const DenseMatrix& dense);  // rounds to the nearest byte
  static bool Holds(const Structure& structure);
  static std::optional<MadeUpMatrix> StackRows(std::span<const MadeUpMatrix* const> matrices);

  template <typename Self, typename Visitor>
  static void VisitParts(Self& matrix, Visitor& visitor) {
    visitor.Size(matrix.rows, matrix.cols);
    visitor.Scalar("row words", matrix.row_words);
    visitor.Places("bits", matrix.bits);
    visitor.Values("values", matrix.values);
    visitor.Values("scales", matrix.scales);
  }
};

}  // namespace swizzle::testing

#endif  // SWIZZLE_TESTS_KERNELS_FORMAT_MADE_UP_MADE_UP_MATRIX_H_

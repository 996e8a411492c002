// A weight's pattern as a small picture. Pure.
#ifndef SWIZZLE_MODEL_LOADER_PACK_WEIGHT_PICTURE_H_
#define SWIZZLE_MODEL_LOADER_PACK_WEIGHT_PICTURE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/format/weight.h"

namespace swizzle::pack {

// Rows and columns are the weight's, [output channels, input channels * window].
struct WeightPicture {
  // The whole weight in cells: cell i of `rows` covers the weight's rows from i * M / rows to (i + 1) * M / rows, and
  // so do columns. At most 96 each way.
  int64_t rows = 0;
  int64_t cols = 0;
  // A letter a cell, row-major, that says which share of it is nonzero: A nothing, / all, and the other 62 of base64's
  // alphabet what lies between.
  std::string density;

  // The top left corner as it is, at most 64 x 64: a string a row, of hexadecimal digits, the first column the highest
  // bit.
  int64_t corner_rows = 0;
  int64_t corner_cols = 0;
  std::vector<std::string> corner;
};

WeightPicture DrawWeight(const Weight& weight);

}  // namespace swizzle::pack

#endif  // SWIZZLE_MODEL_LOADER_PACK_WEIGHT_PICTURE_H_

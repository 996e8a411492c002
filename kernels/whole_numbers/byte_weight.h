// A weight as signed bytes, recovered from the real numbers that stand for them, with what its rows' sums begin and end
// with for one layer's scales. What packed weights are made from. Value type.
#ifndef SWIZZLE_KERNELS_WHOLE_NUMBERS_BYTE_WEIGHT_H_
#define SWIZZLE_KERNELS_WHOLE_NUMBERS_BYTE_WEIGHT_H_

#include <cstdint>
#include <vector>

#include "kernels/base/status.h"
#include "kernels/format/weight.h"
#include "kernels/operator/problem.h"

namespace swizzle {

struct ByteWeight {
  struct Entry {
    int32_t column;  // of the columns that a kernel sums over: tap * channels + channel
    int8_t value;
  };
  int64_t rows = 0;
  int64_t cols = 0;
  std::vector<std::vector<Entry>> entries;  // by row, in the order of columns; zeros are left out
  std::vector<int32_t> start;               // of each row's sum: the bias, less the zero point's part
  std::vector<float> scale;                 // of each row's sum; see steps.h

  int64_t nonzeros() const;
};

// Whether the weight is whole numbers that fit signed bytes, and no sum of a row can leave 32 bits, nor its steps.
bool HoldsBytes(const Weight& weight, const Problem& problem);

// INVALID_ARGUMENT where HoldsBytes() is false.
StatusOr<ByteWeight> MakeByteWeight(const Weight& weight, const Problem& problem);

// The same for whole numbers of -255 to 255: what bytes of any zero point stand for, as quantisers make them of weights
// that lie more to one side. A number beyond signed bytes is a sum of such, so that its column comes several times in
// a row, one after another: 200 is 127 and 73. For kernels that multiply whatever columns a weight names.
bool HoldsWideBytes(const Weight& weight, const Problem& problem);
StatusOr<ByteWeight> MakeWideByteWeight(const Weight& weight, const Problem& problem);

// How many numbers of a quantised weight are beyond signed bytes; 0 of any other. Kernels take longer for them.
int64_t CountBeyondSignedBytes(const Weight& weight);

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_WHOLE_NUMBERS_BYTE_WEIGHT_H_

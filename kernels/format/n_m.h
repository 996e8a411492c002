// N:M sparsity: of any m neighbouring input channels at one tap of the window at most n weights are not zero. 2:4 is
// what sparse tensor cores multiply (Mishra et al., "Accelerating Sparse Deep Neural Networks", 2021). Value type.
//
// A row is its taps one after another, each with its channels in groups of m, the last of which may be shorter; a group
// stores n entries, with their places in the group. A matrix is [output channels, channels * taps], taps the faster.
//
// Worked example, 2:4 of one tap:   1 0 2 0        values  1 2  3 0  5 6  7 8
//                                   0 3 0 0        places  0 2  0 1  0 3  1 2     (group 1: see below)
//                                   5 0 0 6
//                                   0 7 8 0
//
// Places rise strictly in a group, so a group of fewer nonzeros stores zeros, in the lowest places that are free: row 1
// holds 0 in place 0 and 3 in place 1. Places are bits, as many as m - 1 has, the first entry's lowest.
//
// Invariant (Validate): 1 <= n <= m <= kMostM, taps divides cols; n entries a group, with as many bytes of places as
// they need and zeros past the last; places rise strictly and are below m; past the last channel values are zero.
#ifndef SWIZZLE_KERNELS_FORMAT_N_M_H_
#define SWIZZLE_KERNELS_FORMAT_N_M_H_

#include <cstdint>
#include <vector>

#include "kernels/base/integers.h"
#include "kernels/base/status.h"
#include "kernels/format/dense.h"

namespace swizzle {

class WeightMatrix;

// At most n of m neighbouring channels at one of `taps` taps.
struct GroupLimits {
  int64_t n = 2;
  int64_t m = 4;
  int64_t taps = 1;
};

struct NOfMMatrix {
  static constexpr Format kFormat = Format::kNOfM;
  static constexpr int64_t kMostM = 256;

  int64_t rows = 0;
  int64_t cols = 0;
  int64_t n = 1;
  int64_t m = 1;
  int64_t taps = 1;
  std::vector<uint8_t> places;
  std::vector<float> values;

  int64_t channels() const { return cols / taps; }
  int64_t groups_of_tap() const { return CeilDiv(channels(), m); }
  int64_t entries_of_row() const { return taps * groups_of_tap() * n; }
  int64_t Place(int64_t entry) const;
  int64_t nnz() const;  // counts
  // INVALID_ARGUMENT naming what breaks the invariant.
  Status Validate() const;
  // With the limits that store it in the fewest bytes, of m = 2, 4, 8 and 16 and the taps of usual windows, if n is
  // half of m at most; INVALID_ARGUMENT where there are none.
  static StatusOr<NOfMMatrix> FromDense(const DenseMatrix& dense);
  // INVALID_ARGUMENT naming the first row with a group of more nonzeros. REQUIRES: the limits are as the invariant
  // says.
  static StatusOr<NOfMMatrix> FromDense(const DenseMatrix& dense, const GroupLimits& limits);
  DenseMatrix ToDense() const;  // REQUIRES: Validate() is OK
  static bool Holds(const Structure& structure);
  std::vector<uint32_t> ValueRows() const;

  template <typename Self, typename Visitor>
  static void VisitParts(Self& matrix, Visitor& visitor) {
    visitor.Size(matrix.rows, matrix.cols);
    visitor.Scalar("n", matrix.n);
    visitor.Scalar("m", matrix.m);
    visitor.Scalar("taps", matrix.taps);
    visitor.Places("places", matrix.places);
    visitor.Values("values", matrix.values);
  }
};

// Whether of any m neighbouring columns at most n are not zero, what is stored counting as not zero. O(nnz).
bool KeepsLimits(const WeightMatrix& matrix, int64_t n, int64_t m);

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_FORMAT_N_M_H_

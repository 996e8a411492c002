// What disentangled attention (Op::kDisentangledAttention; He et al., "DeBERTa", ICLR 2021, section 3.1) adds to a
// head's products of queries and keys: products of queries with vectors of where keys lie, and of keys with vectors of
// where queries do,
//   score(q, k) = (query q * key k + query q * A[head, place] + key k * B[head, place]) * scale,
// place being that of the distance k - q. The weight is [2 * C + 1, places] for C channels of queries: rows of A, whose
// channels are those of queries, then of B, then the least distance of each place: of all distances up to the next
// place's. Distances before the first place's are its own, too.
#ifndef SWIZZLE_KERNELS_OPERATOR_PLACE_VECTORS_H_
#define SWIZZLE_KERNELS_OPERATOR_PLACE_VECTORS_H_

#include <cstdint>
#include <vector>

#include "kernels/format/dense.h"

namespace swizzle {

// The place of each distance. Immutable after it is made.
class DistancePlaces {
 public:
  // REQUIRES: AreLeastDistances of the weight's last row.
  explicit DistancePlaces(const DenseMatrix& vectors);

  int32_t At(int64_t distance) const;
  // Distances up to least() have the first place, those from greatest() on the last.
  int64_t least() const { return least_; }
  int64_t greatest() const { return least_ + static_cast<int64_t>(places_.size()) - 1; }
  // The places of all distances from least() to greatest().
  const std::vector<int32_t>& all() const { return places_; }

 private:
  int64_t least_;
  std::vector<int32_t> places_;
};

// Whether the weight's last row has whole numbers that rise, none farther than kMostPlaceDistance.
inline constexpr int64_t kMostPlaceDistance = int64_t{1} << 20;
bool AreLeastDistances(const DenseMatrix& vectors);

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_OPERATOR_PLACE_VECTORS_H_

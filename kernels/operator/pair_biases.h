// What biased attention (Op::kBiasedAttention) adds to a head's scores, and where a weight's row has it: relative
// positions of T5 and MPNet, ALiBi, causal and local attention go by distance, BEiT's by pairs of places.
#ifndef SWIZZLE_KERNELS_OPERATOR_PAIR_BIASES_H_
#define SWIZZLE_KERNELS_OPERATOR_PAIR_BIASES_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numbers>
#include <vector>

#include "kernels/format/dense.h"
#include "kernels/operator/attributes.h"

namespace swizzle {

// The column of a query's and a key's place in their sequence: clamp(key + query * query_stride + offset, 0, last).
// Plain value.
struct PairPlaces {
  int64_t query_stride = -1;
  int64_t offset = 0;
  int64_t last = 0;

  int64_t count() const { return last + 1; }
  int64_t At(int64_t query, int64_t key) const {
    return std::clamp<int64_t>(key + query * query_stride + offset, 0, last);
  }
};

// Longer sequences and farther distances no attention has, so that counts of columns do not overflow.
inline constexpr int64_t kMostPairLength = int64_t{1} << 15, kMostPairReach = int64_t{1} << 24;

// The places of a kBiasedAttention's biases.
inline PairPlaces PairPlacesOf(const Attention& attention) {
  if (attention.length > 0) return {attention.length, 0, attention.length * attention.length - 1};
  return {-1, attention.reach, 2 * attention.reach};
}

// The least and the greatest distance, key - query, at which any head attends: whose biases are not all -infinity.
// Everything by default. Plain value.
struct DistanceRange {
  static constexpr int64_t kAny = std::numeric_limits<int32_t>::max();
  int64_t least = -kAny, greatest = kAny;  // least > greatest: nowhere
};

// A bias in units of log(2), in which kernels keep scores: what is finite stays so.
inline float BiasInLog2(float bias) {
  constexpr float kLog2E = std::numbers::log2e_v<float>, kLowest = std::numeric_limits<float>::lowest() / 2;
  return bias > kLowest || bias == -std::numeric_limits<float>::infinity() ? bias * kLog2E : kLowest * kLog2E;
}

// What heads attend to by a valid weight of kBiasedAttention.
DistanceRange DistancesAttended(const DenseMatrix& biases, const Attention& attention);

// The biases of windows that differ, in the order of their first window: the weight of a kBiasedAttention in windows
// has columns for all windows alike, or for each one behind the other. A layer without windows has one. Plain value.
struct WindowBiases {
  std::vector<int32_t> of_window;      // [windows]: which of `first_columns` is a window's
  std::vector<int64_t> first_columns;  // in the weight's rows, of PairPlacesOf(attention).count()
};
WindowBiases WindowBiasesOf(const DenseMatrix& biases, const Attention& attention);

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_OPERATOR_PAIR_BIASES_H_

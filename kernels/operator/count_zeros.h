// Counts zeros of activations, and draws such as were counted.
#ifndef SWIZZLE_KERNELS_OPERATOR_COUNT_ZEROS_H_
#define SWIZZLE_KERNELS_OPERATOR_COUNT_ZEROS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "kernels/base/layout.h"
#include "kernels/base/status.h"
#include "kernels/operator/input_zeros.h"

namespace swizzle {

// INVALID_ARGUMENT where they can be no shares of zeros.
Status Validate(const InputZeros& zeros);

// "zeros 9000 8000 7500 5000", of 10,000 elements, runs, planes and channels.
std::string ZerosText(const InputZeros& zeros);

// Counts them, row by row of one value. Thread-compatible.
class ZerosCount {
 public:
  explicit ZerosCount(const Extent& value) : value_(value), filled_(value.channels, false) {}

  // [channels][height][width]
  void Add(std::span<const float> row);
  int64_t rows() const { return rows_; }
  InputZeros Shares() const;  // REQUIRES: rows() > 0

 private:
  const Extent value_;
  std::vector<bool> filled_;  // channels, by any row
  int64_t rows_ = 0, planes_ = 0, runs_ = 0, all_runs_ = 0, elements_ = 0;
};

// Which elements of a run are not zero: bit i is position + i of the channel's plane in that row.
struct DrawnRun {
  int64_t row, channel, position;
  int count;
  uint32_t held;
};

// Draws where zeros of these shares lie in an activation of this extent, the same at every call. Every run is visited.
void DrawZeros(const InputZeros& zeros, const Extent& extent, absl::FunctionRef<void(const DrawnRun&)> visit);

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_OPERATOR_COUNT_ZEROS_H_

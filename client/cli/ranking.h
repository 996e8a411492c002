// The best classes of a classifier's output.
#ifndef SWIZZLE_CLIENT_CLI_RANKING_H_
#define SWIZZLE_CLIENT_CLI_RANKING_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "client/tensor.h"

namespace swizzle::client {

struct Ranked {
  int64_t index;
  float value;
};

// The `count` largest of `values`, best first; of equal values the first one leads.
std::vector<Ranked> Best(std::span<const float> values, int count);

// The best of each row, where a row is the tensor's last dimension. UNIMPLEMENTED unless the tensor is FP32 with a last
// dimension that is not 0.
absl::StatusOr<std::vector<std::vector<Ranked>>> BestOfRows(const Tensor& tensor, int count);

}  // namespace swizzle::client

#endif  // SWIZZLE_CLIENT_CLI_RANKING_H_

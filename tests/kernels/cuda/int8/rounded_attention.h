// What sparse attention in whole numbers comes to by its definition (kernels/cuda/int8/attention_bytes.h), with sums in
// double precision. For tests of the kernel and programs that time it: errors beside it are those of shares that lie
// halfway between two steps, whatever the widths lose against attention without rounding.
#ifndef SWIZZLE_TESTS_KERNELS_CUDA_INT8_ROUNDED_ATTENTION_H_
#define SWIZZLE_TESTS_KERNELS_CUDA_INT8_ROUNDED_ATTENTION_H_

#include <cuda_fp16.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "kernels/cuda/int8/attention_bytes.h"

namespace swizzle::cuda {

// Numbers of a token's head as so many bits say them, and what one step is.
struct RoundedHead {
  std::vector<double> numbers;
  double scale = 1;
};

inline RoundedHead RoundHead(int bits, std::span<const __half> from) {
  float most = 0;
  for (const __half number : from) most = std::max(most, std::abs(__half2float(number)));
  const auto largest = static_cast<float>((1 << (bits - 1)) - 1);
  const float scale = most > 0 ? most / largest : 1, inverse = 1 / scale;
  RoundedHead rounded;
  rounded.scale = scale;
  for (const __half number : from) rounded.numbers.push_back(std::nearbyint(__half2float(number) * inverse));
  return rounded;
}

// A head's queries, keys and values, by tokens.
using RoundedTokens = std::array<std::vector<RoundedHead>, 3>;

// A query's output. `scale` is that of scores.
inline std::vector<double> AttendRounded(const RoundedTokens& tokens, int64_t query, std::span<const uint32_t> keys,
                                         int share_bits, double scale) {
  std::vector<double> scores, output(tokens[0][query].numbers.size());
  double most = -1e30, total = 0;
  for (const uint32_t key : keys) {
    const RoundedHead &q = tokens[0][query], &k = tokens[1][key];
    const double sum = std::inner_product(q.numbers.begin(), q.numbers.end(), k.numbers.begin(), 0.0);
    scores.push_back(sum * q.scale * k.scale * scale + std::log(tokens[2][key].scale));
    most = std::max(most, scores.back());
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    const double share = std::nearbyint(std::exp(scores[i] - most) * ((1 << share_bits) - 1));
    const RoundedHead& value = tokens[2][keys[i]];
    total += share / value.scale;
    for (size_t d = 0; d < output.size(); ++d) output[d] += share * value.numbers[d];
  }
  for (double& value : output) value = total > 0 ? value / total : 0;
  return output;
}

// Published widths, and how far from the above a kernel may be, of the largest output: what rounding leaves open is
// which way shares go that lie halfway, and those of 4 bits are few steps.
struct AttentionBound {
  AttentionBits bits;
  double most_error;
};
inline constexpr AttentionBound kAttentionBounds[] = {{{16, 8}, .01}, {{8, 8}, .01}, {{8, 4}, .01}, {{4, 4}, .06}};

}  // namespace swizzle::cuda

#endif  // SWIZZLE_TESTS_KERNELS_CUDA_INT8_ROUNDED_ATTENTION_H_

#include "model_loader/safetensors/relative_buckets.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace swizzle {
namespace {

// The bucket of a key so far behind its query, in FP32 as transformers computes it.
int64_t BucketOf(int64_t distance) {
  constexpr int64_t kHalf = kRelativeBuckets / 2, kExact = kHalf / 2;
  const int64_t away = std::abs(distance), first = distance > 0 ? kHalf : 0;
  if (away < kExact) return first + away;
  const auto all = static_cast<float>(std::log(static_cast<double>(kFarthestBucket) / static_cast<double>(kExact)));
  const float share = std::log(static_cast<float>(away) / static_cast<float>(kExact)) / all;
  const auto bucket = kExact + static_cast<int64_t>(share * static_cast<float>(kHalf - kExact));
  return first + std::min(bucket, kHalf - 1);
}

}  // namespace

std::vector<float> BiasesByDistance(const Tensor& by_bucket) {
  const int64_t heads = by_bucket.shape[1];
  std::vector<float> biases;
  for (int64_t distance = -kFarthestBucket; distance <= kFarthestBucket; ++distance) {
    const auto first = by_bucket.floats().begin() + BucketOf(distance) * heads;
    biases.insert(biases.end(), first, first + heads);
  }
  return biases;
}

}  // namespace swizzle

// MPNet's relative positions: a bias of each head for how far a key is from its query. Distances share buckets, the
// farther the more, which are as T5's (Raffel et al., 2020). Free functions, thread-safe.
#ifndef SWIZZLE_MODEL_LOADER_SAFETENSORS_RELATIVE_BUCKETS_H_
#define SWIZZLE_MODEL_LOADER_SAFETENSORS_RELATIVE_BUCKETS_H_

#include <cstdint>
#include <vector>

#include "model_loader/graph/graph.h"

namespace swizzle {

// Half of them for keys before their query. What config.json says of their number transformers does not read.
inline constexpr int64_t kRelativeBuckets = 32;
// From this distance on all share a bucket, on either side.
inline constexpr int64_t kFarthestBucket = 128;

// Of FP32 [kRelativeBuckets, heads]: [2 * kFarthestBucket + 1, heads], from the key that is farthest before its query
// on.
std::vector<float> BiasesByDistance(const Tensor& by_bucket);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SAFETENSORS_RELATIVE_BUCKETS_H_

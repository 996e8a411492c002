// Whole numbers of a weight as real ones, in the spellings that plans and kernels do not know: by blocks, of few or of
// sixteen bits. Internal to model_loader/expansions.
#ifndef SWIZZLE_MODEL_LOADER_EXPANSIONS_CONSTANT_WEIGHTS_H_
#define SWIZZLE_MODEL_LOADER_EXPANSIONS_CONSTANT_WEIGHTS_H_

#include <cstdint>
#include <vector>

#include "model_loader/graph/graph.h"

namespace swizzle::expansions {

// The largest weight that is made.
inline constexpr int64_t kMostWeightBytes = int64_t{1} << 31;

// The elements of any type as real numbers.
std::vector<float> RealsOf(const Tensor& tensor);

// As the type, rounded.
Tensor TensorOf(DType dtype, Shape shape, const std::vector<float>& reals);

// (x - zero point) * scale. `block`: how many elements along `axis` share a scale; 0: scales are one, or one for each
// place along the axis. INVALID_ARGUMENT where the shapes do not fit; RESOURCE_EXHAUSTED above the limit.
StatusOr<std::vector<float>> Dequantised(const Tensor& x, const Tensor& scales, const Tensor* zero_points, int64_t axis,
                                         int64_t block);

// Element i of numbers of `bits` each, the lowest first.
inline int64_t PackedAt(const Tensor& bytes, int64_t i, int64_t bits) {
  const auto byte = static_cast<uint8_t>(bytes.bytes[static_cast<size_t>(i * bits / 8)]);
  return byte >> (i * bits % 8) & ((int64_t{1} << bits) - 1);
}

}  // namespace swizzle::expansions

#endif  // SWIZZLE_MODEL_LOADER_EXPANSIONS_CONSTANT_WEIGHTS_H_

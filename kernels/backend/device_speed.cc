#include "kernels/backend/device_speed.h"

#include <algorithm>

namespace swizzle {

Throughput ThroughputOf(const DeviceSpeed& speed, Precision precision) {
  constexpr double kDenseShare = 0.5, kSparseShare = 0.25, kDepthwiseShare = 0.1, kMemoryShare = 0.7;
  constexpr double kTensorCores = 16.0;  // of FP32 lanes: 15 on an H200, 16 on an A100, 8 on Turing
  constexpr double kGathered = 0.25;     // of what dense products reach, by blocks whose inputs are gathered
  constexpr double kLaunchMicroseconds = 3.0;
  const double peak = speed.multiprocessors * speed.lanes * speed.clock_mhz;
  const double floats = 2.0 * speed.memory_mhz * speed.bus_bytes / sizeof(float);
  const double products = precision == Precision::kFloat16x3 ? 3.0 : 1.0;  // that one takes
  const double dense = peak * kDenseShare * (precision == Precision::kFloat32 ? 1.0 : kTensorCores / products);
  return {.dense_multiply_adds = dense,
          .sparse_multiply_adds = peak * kSparseShare,
          .block_multiply_adds = std::max(dense * kGathered, peak * kSparseShare),
          .depthwise_multiply_adds = peak * kDepthwiseShare,
          .floats = floats * kMemoryShare,
          .workspace_floats = floats * kMemoryShare / 2,
          .call_microseconds = kLaunchMicroseconds};
}

}  // namespace swizzle

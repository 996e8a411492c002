#include "kernels/backend/device_speed.h"

namespace swizzle {

Throughput ThroughputOf(const DeviceSpeed& speed, Precision precision) {
  constexpr double kDenseShare = 0.5, kSparseShare = 0.25, kDepthwiseShare = 0.1, kMemoryShare = 0.7;
  constexpr double kTensorCores = 4.0;
  constexpr double kLaunchMicroseconds = 3.0;
  const double peak = speed.multiprocessors * speed.lanes * speed.clock_mhz;
  const double floats = 2.0 * speed.memory_mhz * speed.bus_bytes / sizeof(float);
  return {.dense_multiply_adds = peak * kDenseShare * (precision == Precision::kFloat32 ? 1.0 : kTensorCores),
          .sparse_multiply_adds = peak * kSparseShare,
          .depthwise_multiply_adds = peak * kDepthwiseShare,
          .floats = floats * kMemoryShare,
          .call_microseconds = kLaunchMicroseconds};
}

}  // namespace swizzle

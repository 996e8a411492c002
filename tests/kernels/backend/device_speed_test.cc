#include "kernels/backend/device_speed.h"

#include <gtest/gtest.h>

namespace swizzle {
namespace {

TEST(DeviceSpeedTest, RatesGrowWithWhatADeviceHas) {
  const DeviceSpeed small{.multiprocessors = 40, .lanes = 64, .clock_mhz = 1500, .memory_mhz = 5000, .bus_bytes = 32};
  DeviceSpeed large = small;
  large.multiprocessors = 120;
  large.bus_bytes = 64;
  const Throughput few = ThroughputOf(small, Precision::kFloat32), many = ThroughputOf(large, Precision::kFloat32);
  EXPECT_DOUBLE_EQ(many.dense_multiply_adds, 3 * few.dense_multiply_adds);
  EXPECT_DOUBLE_EQ(many.sparse_multiply_adds, 3 * few.sparse_multiply_adds);
  EXPECT_DOUBLE_EQ(many.floats, 2 * few.floats);
  EXPECT_DOUBLE_EQ(many.call_microseconds, few.call_microseconds);
}

TEST(DeviceSpeedTest, OnlyDenseLayersGainFromTensorCores) {
  const Throughput single = ThroughputOf({}, Precision::kFloat32), half = ThroughputOf({}, Precision::kFloat16);
  EXPECT_GT(half.dense_multiply_adds, single.dense_multiply_adds);
  EXPECT_DOUBLE_EQ(half.sparse_multiply_adds, single.sparse_multiply_adds);
}

}  // namespace
}  // namespace swizzle

// What a GPU says of itself, and what its kernels can be expected to reach by that. Value types; pure.
#ifndef SWIZZLE_KERNELS_BACKEND_DEVICE_SPEED_H_
#define SWIZZLE_KERNELS_BACKEND_DEVICE_SPEED_H_

#include "kernels/backend/backend.h"

namespace swizzle {

struct DeviceSpeed {
  int multiprocessors = 1;
  int lanes = 128;  // FP32 multiply-adds that a multiprocessor begins in a clock
  double clock_mhz = 1000.0;
  double memory_mhz = 1000.0;  // of transfers that go out twice a clock
  int bus_bytes = 16;
};

// Shares of the peaks that kernels reach on layers of some size; tensor cores, which other precisions than FP32 use for
// dense layers, count as sixteen times the lanes, which the products of halves of kFloat16x3 share.
Throughput ThroughputOf(const DeviceSpeed& speed, Precision precision);

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_BACKEND_DEVICE_SPEED_H_

// What GPUs say of themselves. Thread-safe; a device is asked once, as some answers take it a millisecond.
#ifndef SWIZZLE_KERNELS_CUDA_RUNTIME_DEVICE_FACTS_H_
#define SWIZZLE_KERNELS_CUDA_RUNTIME_DEVICE_FACTS_H_

#include "kernels/backend/device_speed.h"

namespace swizzle::cuda {

struct DeviceFacts {
  DeviceSpeed speed;
  int warps = 32;  // that a multiprocessor has at once, at most
};

// Where the driver doesn't say, what the slowest devices have.
const DeviceFacts& FactsOf(int ordinal);
// Of the calling thread's device.
const DeviceFacts& CurrentDeviceFacts();

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_RUNTIME_DEVICE_FACTS_H_

// The device on which estimates of plans were fitted, and how another one's times compare with it. Pure functions.
#ifndef SWIZZLE_KERNELS_CUDA_CONV_OPERANDS_FITTED_DEVICE_H_
#define SWIZZLE_KERNELS_CUDA_CONV_OPERANDS_FITTED_DEVICE_H_

#include "kernels/backend/device_speed.h"

namespace swizzle::cuda {

inline constexpr DeviceSpeed kFittedDevice = {
    .multiprocessors = 132, .lanes = 128, .clock_mhz = 1980, .memory_mhz = 3201, .bus_bytes = 768};  // an H200

// A microsecond's bytes of memory for each multiprocessor, if all read. No device tells what its second cache gives;
// estimates take it to grow as memory does.
inline double BytesOfMultiprocessor(const DeviceSpeed& speed) {
  return 2.0 * speed.memory_mhz * speed.bus_bytes / speed.multiprocessors;
}

// A device's times, those of the fitted device being 1.
struct RelativeTimes {
  double clock, byte;
  explicit RelativeTimes(const DeviceSpeed& speed)
      : clock(kFittedDevice.clock_mhz / speed.clock_mhz),
        byte(BytesOfMultiprocessor(kFittedDevice) / BytesOfMultiprocessor(speed)) {}
};

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_CONV_OPERANDS_FITTED_DEVICE_H_

// Memory of a device that belongs to another process of this host.
#ifndef SWIZZLE_KERNELS_BACKEND_SHARED_DEVICE_MEMORY_H_
#define SWIZZLE_KERNELS_BACKEND_SHARED_DEVICE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/base/status.h"

namespace swizzle {

// Thread-safe. The other process may write to it at any time; while this exists, it does not go.
class SharedDeviceMemory {
 public:
  virtual ~SharedDeviceMemory() = default;
  virtual int64_t bytes() const = 0;
  // Copies from and to the host, and waits until that is done. REQUIRES: all of it is within `bytes`.
  virtual Status Read(int64_t offset, std::span<std::byte> to) const = 0;
  virtual Status Write(int64_t offset, std::span<const std::byte> from) const = 0;
};

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_BACKEND_SHARED_DEVICE_MEMORY_H_

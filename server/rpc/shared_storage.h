// Where regions of shared memory have their bytes: a file of /dev/shm, or memory of a GPU.
//
// They are the client's, who may change, shrink or unlink them at any time. So files are never mapped: bytes are copied
// by pread and pwrite, which find out what is missing where a mapping would end the process (SIGBUS). Memory of a GPU
// cannot shrink, and lasts as long as somebody has it open.
#ifndef SWIZZLE_SERVER_RPC_SHARED_STORAGE_H_
#define SWIZZLE_SERVER_RPC_SHARED_STORAGE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "kernels/backend/shared_device_memory.h"
#include "kernels/base/status.h"

namespace swizzle {

// Thread-safe. REQUIRES of offsets and sizes: all of it was there when it was opened.
class SharedStorage {
 public:
  virtual ~SharedStorage() = default;
  // Errors do not say whose storage it is: INVALID_ARGUMENT where it has become smaller.
  virtual Status Read(int64_t offset, std::span<std::byte> to) const = 0;
  virtual Status Write(int64_t offset, std::span<const std::byte> from) const = 0;
};

// Opens the memory of GPU `device` that `handle` stands for.
using OpenDeviceMemory =
    std::function<StatusOr<std::unique_ptr<SharedDeviceMemory>>(int64_t device, std::string_view handle)>;

// Whether `bytes` from `offset` on end within `all`. None of them is negative.
inline bool IsWithin(int64_t offset, int64_t bytes, int64_t all) { return bytes <= all && offset <= all - bytes; }

// `bytes` from `offset` on of the shared memory `key`, whose name begins with `prefix`. INVALID_ARGUMENT for another
// name, and where it is not there, or is smaller.
StatusOr<std::unique_ptr<SharedStorage>> OpenSharedFile(const std::string& key, const std::string& prefix,
                                                        int64_t offset, int64_t bytes);
// The first `bytes` of a device's memory. INVALID_ARGUMENT where it is smaller.
StatusOr<std::unique_ptr<SharedStorage>> OpenSharedDevice(const OpenDeviceMemory& open, int64_t device,
                                                          std::string_view handle, int64_t bytes);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_RPC_SHARED_STORAGE_H_

// A backend: one kind of device, its memory, its streams and its kernel table.
//
// Backends are thread-safe and outlive everything made from them. Streams and the work queued on one are single-owner.
#ifndef SWIZZLE_KERNELS_BACKEND_H_
#define SWIZZLE_KERNELS_BACKEND_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "kernels/kernel_table.h"
#include "kernels/status.h"

namespace swizzle {

// Device memory, aligned to kBufferAlignment, zeroed on allocation.
class Buffer {
 public:
  virtual ~Buffer() = default;
  virtual std::byte* data() = 0;  // a device address; on the CPU, dereferenceable
  virtual size_t bytes() const = 0;
};

// An ordered queue of work on one device: a CUDA stream, or a CPU thread pool that runs each piece of work at once.
// Single-owner: calls must not overlap.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual int threads() const = 0;
  // Waits until all queued work is done; on the CPU, also lets the pool's threads sleep. Errors of queued work show up here.
  virtual Status Synchronize() = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;         // "cpu"
  virtual std::string device_name() const = 0;       // the processor's name, for reports and cache keys
  virtual uint32_t features() const = 0;             // bits that kernels require
  virtual std::string features_text() const = 0;     // "avx512 avx2"
  virtual std::span<const Kernel> kernels() const = 0;
  virtual StatusOr<std::unique_ptr<Buffer>> Allocate(size_t bytes) = 0;
  // threads: 0 takes all that this process may use.
  virtual StatusOr<std::unique_ptr<Stream>> NewStream(int threads) = 0;
};

// Rows whose features this machine has, and that accept `problem` with weights of `format` (a dense row also accepts
// a sparse weight: dense is always a candidate).
std::vector<const Kernel*> Candidates(const Backend& backend, const Problem& problem, Format format);

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_BACKEND_H_

// A backend: one kind of device, its memory, its streams and its kernel table.
//
// Backends are thread-safe and outlive everything made from them. Streams and the work queued on one are single-owner.
#ifndef SWIZZLE_KERNELS_BACKEND_BACKEND_H_
#define SWIZZLE_KERNELS_BACKEND_BACKEND_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "kernels/backend/kernel_table.h"
#include "kernels/base/precision.h"
#include "kernels/base/status.h"

namespace swizzle {

// Memory of a device, or host memory that the device copies from and to; aligned to kBufferAlignment, zeroed on
// allocation.
class Buffer {
 public:
  virtual ~Buffer() = default;
  virtual std::byte* data() = 0;  // dereferenceable on the CPU, and where it is host memory
  virtual size_t bytes() const = 0;
};

// Work that was recorded once, to be run again and again on the stream it was recorded on. Single-owner, like the
// stream.
class Recording {
 public:
  virtual ~Recording() = default;
  virtual Status Replay() = 0;  // queues the work
};

// An ordered queue of work on one device: a CUDA stream, or a CPU thread pool that runs each piece of work at once.
// Single-owner: calls must not overlap. `Work` is a function that queues work on this stream: calls of Kernel::run,
// and of Copy where it is not timed. On a GPU kernels may only be run within Run, Time or Record.
class Stream {
 public:
  using Work = absl::FunctionRef<void()>;
  using Operands = std::span<const std::span<const std::byte>>;

  virtual ~Stream() = default;
  virtual int threads() const = 0;
  // Copies between host and device memory, either way, after what was queued before. Both stay as they are until
  // Synchronize.
  virtual void Copy(void* to, const void* from, size_t bytes) = 0;
  virtual void Run(Work work) = 0;
  // Runs the work and returns how long it took on the device. On a GPU its second cache then holds `recent`, as far as
  // it fits, and no other operand: in a plan the step before has just written these.
  virtual StatusOr<absl::Duration> Time(Work work, Operands recent) = 0;
  // Waits until all queued work is done; on the CPU, also lets the pool's threads sleep. Errors of queued work show up
  // here.
  virtual Status Synchronize() = 0;
};

// The host's: work runs at once, on the caller's thread and a pool of others.
class HostStream : public Stream {
 public:
  // From the next work on the stream's threads, and until Synchronize the one that runs it, keep to one processor each:
  // of those that the process may use, in order and round again, those from executor * threads() on.
  virtual void PinThreads(int executor) = 0;
  // Whether the caller's thread alone runs what comes, until the next call.
  virtual void RunSerially(bool serial) = 0;
};

// A device's: work is queued, and may be recorded.
class DeviceStream : public Stream {
 public:
  // Records the work without running it; it has to have run before.
  virtual StatusOr<std::unique_ptr<Recording>> Record(Work work) = 0;
};

// What kernels reach where nothing was measured: orders of magnitude, for estimates. Multiply-adds and floats are those
// of a microsecond.
struct Throughput {
  double dense_multiply_adds = 0.0;
  double sparse_multiply_adds = 0.0;  // of those that are left
  double block_multiply_adds = 0.0;   // the same, where they stand in blocks; 0: as sparse ones
  double depthwise_multiply_adds = 0.0;
  double floats = 0.0;             // to or from memory
  double workspace_floats = 0.0;   // of a row's workspace, written and read again; 0: it stays in a cache
  double call_microseconds = 0.0;  // what a call costs before it computes anything
};

// Bytes of a device's memory; what all processes use.
struct DeviceMemory {
  int64_t used = 0;
  int64_t total = 0;
};

class HostBackend;
class DeviceBackend;

class Backend {
 public:
  // Which of the two it is: whoever runs work differs by that.
  using Kind = std::variant<HostBackend*, DeviceBackend*>;

  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;      // "cpu", "cuda:0"
  virtual std::string device_name() const = 0;    // the processor's name, for reports and cache keys
  virtual uint32_t features() const = 0;          // bits that kernels require
  virtual std::string features_text() const = 0;  // "avx512 avx2", "sm_90"
  virtual std::span<const Kernel> kernels() const = 0;
  virtual Kind kind() = 0;
  virtual bool Computes(Precision precision) const = 0;
  virtual Throughput throughput(Precision precision) const = 0;
  virtual StatusOr<std::unique_ptr<Buffer>> Allocate(size_t bytes) = 0;
  // kernel.prepare, with the result in this device's memory.
  virtual StatusOr<std::unique_ptr<PackedWeight>> Prepare(const Kernel& kernel, const Weight& weight,
                                                          const Problem& problem) = 0;
  // threads: 0 takes all that this process may use. Without meaning on a GPU.
  virtual StatusOr<std::unique_ptr<Stream>> NewStream(int threads) = 0;
  // An error after which the device computes nothing any more, for this process; says why.
  virtual Status health() const = 0;
  // None where it is the host's, or the device is lost.
  virtual std::optional<DeviceMemory> memory() const = 0;
};

// The host's processors: the host reads and writes what Allocate returns.
class HostBackend : public Backend {
 public:
  Kind kind() final { return this; }
  virtual StatusOr<std::unique_ptr<HostStream>> NewHostStream(int threads) = 0;
  StatusOr<std::unique_ptr<Stream>> NewStream(int threads) final { return NewHostStream(threads); }
};

// A device with memory of its own.
class DeviceBackend : public Backend {
 public:
  Kind kind() final { return this; }
  virtual StatusOr<std::unique_ptr<DeviceStream>> NewDeviceStream() = 0;
  StatusOr<std::unique_ptr<Stream>> NewStream(int) final { return NewDeviceStream(); }
  // Host memory to copy from and to.
  virtual StatusOr<std::unique_ptr<Buffer>> AllocateHost(size_t bytes) = 0;
};

inline bool HasHostMemory(Backend& backend) { return std::holds_alternative<HostBackend*>(backend.kind()); }

// Rows whose features this machine has, that store activations as `precision` or the problem's scales allow, that
// accept `problem`, however it is stored, take the format of `weight` and can hold it (a dense row takes every format:
// dense is always a candidate). weight: null for ops without.
std::vector<const Kernel*> Candidates(const Backend& backend, const Problem& problem, const Weight* weight,
                                      Precision precision);

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_BACKEND_BACKEND_H_

#include "kernels/cpu/cpu_backend.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "kernels/base/integers.h"
#include "kernels/base/mutex.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/runtime/available_cpus.h"
#include "kernels/cpu/runtime/cache_domains.h"
#include "kernels/cpu/runtime/cpu_stream.h"
#include "kernels/cpu/runtime/processor.h"
#include "kernels/cpu/runtime/start_threads.h"
#include "kernels/cpu/runtime/targets.h"

namespace swizzle {
namespace cpu {
namespace {

constexpr size_t kMaxBufferBytes = size_t{1} << 46;
constexpr size_t kHugePage = size_t{2} << 20;

// Zeroed memory, or null: small buffers from the heap.
std::byte* AllocateSmall(size_t bytes) {
  const size_t padded = RoundUp(std::max<size_t>(bytes, 1), kBufferAlignment);
  auto* data = static_cast<std::byte*>(std::aligned_alloc(kBufferAlignment, padded));
  if (data != nullptr) std::memset(data, 0, padded);
  return data;
}

// Large buffers straight from the kernel, so that pages nobody has written are not resident, and in huge pages: panels
// are read in no order, and would wait for the TLB. One huge page is mapped to spare, for the alignment.
size_t MappedBytes(size_t bytes) { return RoundUp(bytes, kHugePage) + kHugePage; }

std::byte* MapLarge(size_t bytes) {
  void* data = mmap(nullptr, MappedBytes(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return nullptr;
  madvise(data, MappedBytes(bytes), MADV_HUGEPAGE);
  return static_cast<std::byte*>(data);
}

class CpuBuffer final : public Buffer {
 public:
  // Takes what AllocateSmall or, from kHugePage bytes up, MapLarge returned.
  CpuBuffer(std::byte* memory, size_t bytes) : memory_(memory), bytes_(bytes) {}
  ~CpuBuffer() override {
    if (IsLarge()) {
      munmap(memory_, MappedBytes(bytes_));
    } else {
      std::free(memory_);
    }
  }
  std::byte* data() override {
    if (!IsLarge()) return memory_;
    const auto place = reinterpret_cast<uintptr_t>(memory_);
    return memory_ + (RoundUp(place, kHugePage) - place);
  }
  size_t bytes() const override { return bytes_; }

 private:
  bool IsLarge() const { return bytes_ >= kHugePage; }

  std::byte* const memory_;
  const size_t bytes_;
};

class CpuBackend final : public HostBackend {
 public:
  std::string_view name() const override { return "cpu"; }
  std::string device_name() const override { return device_name_; }
  uint32_t features() const override { return features_; }
  std::string features_text() const override {
    if (features_ & kAvx512) return "avx512 avx2";
    return features_ & kAvx2 ? "avx2" : "base";
  }
  std::span<const Kernel> kernels() const override { return KernelTable(); }

  StatusOr<std::unique_ptr<Buffer>> Allocate(size_t bytes) override {
    std::byte* data = nullptr;
    if (bytes <= kMaxBufferBytes) data = bytes >= kHugePage ? MapLarge(bytes) : AllocateSmall(bytes);
    if (data == nullptr) return MakeError(StatusCode::kResourceExhausted, "cannot allocate ", bytes, " bytes");
    return std::make_unique<CpuBuffer>(data, bytes);
  }

  bool Computes(Precision precision) const override { return IsOfCpu(precision); }
  // Of one core, as measured with AVX-512 and two FMA ports; rounded. Only their ratios mean anything.
  Throughput throughput(Precision) const override {
    const double vectors = features_ & kAvx512 ? 1.0 : features_ & kAvx2 ? 0.5 : 0.125;
    return {.dense_multiply_adds = 40e3 * vectors,
            .sparse_multiply_adds = 20e3 * vectors,
            .depthwise_multiply_adds = 8e3 * vectors,
            .floats = 2e3,
            .call_microseconds = 2.0};
  }

  StatusOr<std::unique_ptr<PackedWeight>> Prepare(const Kernel& kernel, const Weight& weight,
                                                  const Problem& problem) override {
    return kernel.prepare(weight, problem);
  }
  Status health() const override { return absl::OkStatus(); }
  std::optional<DeviceMemory> memory() const override { return std::nullopt; }

  StatusOr<std::unique_ptr<HostStream>> NewHostStream(int threads) override {
    const int count = threads > 0 ? threads : AvailableCpus();
    const MutexLock lock(start_mutex_);
    SWIZZLE_RETURN_IF_ERROR(CheckThreads(count - 1));
    return std::make_unique<CpuStream>(count, shares_.Take(count));
  }

 private:
  const std::string device_name_ = ThisProcessor().name;
  const uint32_t features_ = DetectFeatures();
  DomainShares shares_{CacheDomainsOfProcess()};
  Mutex start_mutex_;  // what is there for one stream's threads, another must not take before they start
};

}  // namespace

}  // namespace cpu

std::unique_ptr<Backend> NewCpuBackend() { return std::make_unique<cpu::CpuBackend>(); }

}  // namespace swizzle

#include "kernels/cpu/cpu_backend.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "kernels/cpu/cpu_stream.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/targets.h"

namespace swizzle {
namespace cpu {
namespace {

constexpr size_t kMaxBufferBytes = size_t{1} << 46;
constexpr size_t kHugePage = size_t{2} << 20;

size_t RoundUp(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

// Zeroed memory, or null. Large buffers ask for huge pages: panels are read in no order, and would wait for the TLB.
std::byte* AllocateZeroed(size_t bytes) {
  if (bytes > kMaxBufferBytes) return nullptr;
  const size_t alignment = bytes >= kHugePage ? kHugePage : kBufferAlignment;
  const size_t padded = RoundUp(std::max<size_t>(bytes, 1), alignment);
  auto* data = static_cast<std::byte*>(std::aligned_alloc(alignment, padded));
  if (data == nullptr) return nullptr;
  if (alignment == kHugePage) madvise(data, padded, MADV_HUGEPAGE);
  std::memset(data, 0, bytes);
  return data;
}

struct Free {
  void operator()(std::byte* data) const { std::free(data); }
};

class CpuBuffer final : public Buffer {
 public:
  CpuBuffer(std::byte* data, size_t bytes) : data_(data), bytes_(bytes) {}
  std::byte* data() override { return data_.get(); }
  size_t bytes() const override { return bytes_; }

 private:
  const std::unique_ptr<std::byte, Free> data_;
  const size_t bytes_;
};

// The first "model name" of /proc/cpuinfo.
std::string ProcessorName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

class CpuBackend final : public Backend {
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
    std::byte* data = AllocateZeroed(bytes);
    if (data == nullptr) return MakeError(StatusCode::kResourceExhausted, "cannot allocate ", bytes, " bytes");
    return std::make_unique<CpuBuffer>(data, bytes);
  }

  StatusOr<std::unique_ptr<Stream>> NewStream(int threads) override {
    return std::make_unique<CpuStream>(threads > 0 ? threads : AvailableCpus());
  }

 private:
  const std::string device_name_ = ProcessorName();
  const uint32_t features_ = DetectFeatures();
};

}  // namespace

}  // namespace cpu

std::unique_ptr<Backend> NewCpuBackend() { return std::make_unique<cpu::CpuBackend>(); }

}  // namespace swizzle

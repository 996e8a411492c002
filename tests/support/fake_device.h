// A device with memory of its own, which is the host's and as much as a test says: it has the CPU's kernels, and plans
// can be made for it, but not run.
#ifndef SWIZZLE_TESTS_SUPPORT_FAKE_DEVICE_H_
#define SWIZZLE_TESTS_SUPPORT_FAKE_DEVICE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "kernels/cpu/cpu_backend.h"

namespace swizzle::testing {

class FakeDevice final : public DeviceBackend {
 public:
  // `used`: of its memory, by others.
  FakeDevice(int64_t total, int64_t used, std::string name = "cuda:0")
      : name_(std::move(name)), total_(total), used_(used) {}

  std::string_view name() const override { return name_; }
  std::string device_name() const override { return "a fake"; }
  uint32_t features() const override { return cpu_->features(); }
  std::string features_text() const override { return cpu_->features_text(); }
  std::span<const Kernel> kernels() const override { return cpu_->kernels(); }
  bool Computes(Precision precision) const override { return cpu_->Computes(precision); }
  Throughput throughput(Precision precision) const override { return cpu_->throughput(precision); }
  StatusOr<std::unique_ptr<PackedWeight>> Prepare(const Kernel& kernel, const Weight& weight,
                                                  const Problem& problem) override {
    return cpu_->Prepare(kernel, weight, problem);
  }
  StatusOr<std::unique_ptr<Buffer>> Allocate(size_t bytes) override {
    SWIZZLE_ASSIGN_OR_RETURN(std::unique_ptr<Buffer> memory, cpu_->Allocate(bytes));
    return std::make_unique<CountedBuffer>(std::move(memory), used_);
  }
  StatusOr<std::unique_ptr<Buffer>> AllocateHost(size_t bytes) override { return cpu_->Allocate(bytes); }
  StatusOr<std::unique_ptr<DeviceStream>> NewDeviceStream() override { return std::make_unique<NoStream>(); }
  Status health() const override { return absl::OkStatus(); }
  std::optional<DeviceMemory> memory() const override { return DeviceMemory{used_, total_}; }

 private:
  class CountedBuffer final : public Buffer {
   public:
    CountedBuffer(std::unique_ptr<Buffer> memory, std::atomic<int64_t>& used)
        : memory_(std::move(memory)), used_(used) {
      used_ += static_cast<int64_t>(memory_->bytes());
    }
    ~CountedBuffer() override { used_ -= static_cast<int64_t>(memory_->bytes()); }
    std::byte* data() override { return memory_->data(); }
    size_t bytes() const override { return memory_->bytes(); }

   private:
    const std::unique_ptr<Buffer> memory_;
    std::atomic<int64_t>& used_;
  };

  class NoStream final : public DeviceStream {
   public:
    int threads() const override { return 1; }
    void Copy(void*, const void*, size_t) override {}
    void Run(Work) override {}
    StatusOr<absl::Duration> Time(Work, Operands) override { return absl::InfiniteDuration(); }
    Status Synchronize() override { return Unimplemented("a fake computes nothing"); }
    StatusOr<std::unique_ptr<Recording>> Record(Work) override { return Unimplemented("a fake records nothing"); }
  };

  const std::unique_ptr<Backend> cpu_ = NewCpuBackend();
  const std::string name_;
  const int64_t total_;
  std::atomic<int64_t> used_;
};

}  // namespace swizzle::testing

#endif  // SWIZZLE_TESTS_SUPPORT_FAKE_DEVICE_H_

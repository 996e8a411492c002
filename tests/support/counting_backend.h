// The host's backend that counts what is asked of it, for tests of what plans cost to make.
#ifndef SWIZZLE_TESTS_SUPPORT_COUNTING_BACKEND_H_
#define SWIZZLE_TESTS_SUPPORT_COUNTING_BACKEND_H_

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "kernels/backend/backend.h"
#include "kernels/cpu/cpu_backend.h"

namespace swizzle::testing {

class CountingBackend final : public HostBackend {
 public:
  std::string_view name() const override { return cpu_->name(); }
  std::string device_name() const override { return cpu_->device_name(); }
  uint32_t features() const override { return cpu_->features(); }
  std::string features_text() const override { return cpu_->features_text(); }
  std::span<const Kernel> kernels() const override { return cpu_->kernels(); }
  bool Computes(Precision precision) const override { return cpu_->Computes(precision); }
  Throughput throughput(Precision precision) const override { return cpu_->throughput(precision); }
  StatusOr<std::unique_ptr<Buffer>> Allocate(size_t bytes) override { return cpu_->Allocate(bytes); }
  StatusOr<std::unique_ptr<PackedWeight>> Prepare(const Kernel& kernel, const Weight& weight,
                                                  const Problem& problem) override {
    ++prepared;
    return cpu_->Prepare(kernel, weight, problem);
  }
  StatusOr<std::unique_ptr<HostStream>> NewHostStream(int threads) override {
    ++streams;
    return std::get<HostBackend*>(cpu_->kind())->NewHostStream(threads);
  }
  Status health() const override { return cpu_->health(); }
  std::optional<DeviceMemory> memory() const override { return cpu_->memory(); }

  std::atomic<int> streams = 0, prepared = 0;  // that were made, and weights

 private:
  const std::unique_ptr<Backend> cpu_ = NewCpuBackend();
};

}  // namespace swizzle::testing

#endif  // SWIZZLE_TESTS_SUPPORT_COUNTING_BACKEND_H_

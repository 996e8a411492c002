#ifndef SWIZZLE_TESTS_KERNELS_FAKE_BACKEND_H_
#define SWIZZLE_TESTS_KERNELS_FAKE_BACKEND_H_

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "kernels/backend/backend.h"
#include "kernels/cpu/cpu_backend.h"

namespace swizzle {

// A backend without memory of its own whose table and features a test chooses.
class FakeBackend final : public HostBackend {
 public:
  FakeBackend(std::span<const Kernel> kernels, uint32_t features) : kernels_(kernels), features_(features) {}
  std::string_view name() const override { return "fake"; }
  std::string device_name() const override { return "fake"; }
  uint32_t features() const override { return features_; }
  std::string features_text() const override { return ""; }
  std::span<const Kernel> kernels() const override { return kernels_; }
  StatusOr<std::unique_ptr<Buffer>> Allocate(size_t bytes) override {
    if (out_of_memory) return MakeError(StatusCode::kResourceExhausted, "no memory");
    return cpu_->Allocate(bytes);
  }
  bool Computes(Precision precision) const override { return cpu_->Computes(precision); }
  Throughput throughput(Precision precision) const override { return cpu_->throughput(precision); }
  StatusOr<std::unique_ptr<PackedWeight>> Prepare(const Kernel& kernel, const Weight& weight,
                                                  const Problem& problem) override {
    return cpu_->Prepare(kernel, weight, problem);
  }
  Status health() const override { return absl::OkStatus(); }
  std::optional<DeviceMemory> memory() const override { return std::nullopt; }
  StatusOr<std::unique_ptr<HostStream>> NewHostStream(int threads) override {
    return std::get<HostBackend*>(cpu_->kind())->NewHostStream(threads);
  }

  bool out_of_memory = false;

 private:
  std::span<const Kernel> kernels_;
  uint32_t features_;
  std::unique_ptr<Backend> cpu_ = NewCpuBackend();
};

}  // namespace swizzle

#endif  // SWIZZLE_TESTS_KERNELS_FAKE_BACKEND_H_

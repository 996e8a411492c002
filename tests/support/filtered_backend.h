// A backend without some of its kernels, for tests of plans that are to choose others.
#ifndef SWIZZLE_TESTS_SUPPORT_FILTERED_BACKEND_H_
#define SWIZZLE_TESTS_SUPPORT_FILTERED_BACKEND_H_

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/backend/backend.h"

namespace swizzle::testing {

// Keeps the kernels that `keeps` says yes of. The other backend outlives it, and whatever it makes.
class FilteredBackend final : public Backend {
 public:
  FilteredBackend(Backend& whole, bool (*keeps)(const Kernel&)) : whole_(whole) {
    for (const Kernel& kernel : whole.kernels()) {
      if (keeps(kernel)) kernels_.push_back(kernel);
    }
  }
  std::string_view name() const override { return whole_.name(); }
  std::string device_name() const override { return whole_.device_name(); }
  uint32_t features() const override { return whole_.features(); }
  std::string features_text() const override { return whole_.features_text(); }
  std::span<const Kernel> kernels() const override { return kernels_; }
  Kind kind() override { return whole_.kind(); }
  bool Computes(Precision precision) const override { return whole_.Computes(precision); }
  Throughput throughput(Precision precision) const override { return whole_.throughput(precision); }
  StatusOr<std::unique_ptr<Buffer>> Allocate(size_t bytes) override { return whole_.Allocate(bytes); }
  StatusOr<std::unique_ptr<PackedWeight>> Prepare(const Kernel& kernel, const Weight& weight,
                                                  const Problem& problem) override {
    return whole_.Prepare(kernel, weight, problem);
  }
  StatusOr<std::unique_ptr<Stream>> NewStream(int threads) override { return whole_.NewStream(threads); }
  Status health() const override { return whole_.health(); }
  std::optional<DeviceMemory> memory() const override { return whole_.memory(); }

 private:
  Backend& whole_;
  std::vector<Kernel> kernels_;
};

}  // namespace swizzle::testing

#endif  // SWIZZLE_TESTS_SUPPORT_FILTERED_BACKEND_H_

// A device in the host's memory that has another backend's kernel rows, which all compute as the reference does: for
// plans that are to choose among a GPU's layouts and types, and to be run where there is none. Rows take and write a
// pitch, and outputs that are pooled, as they say that they do. Thread-safe as a backend has to be.
#ifndef SWIZZLE_TESTS_SUPPORT_TWIN_DEVICE_H_
#define SWIZZLE_TESTS_SUPPORT_TWIN_DEVICE_H_

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/backend/backend.h"
#include "kernels/base/half.h"
#include "kernels/base/storage.h"
#include "kernels/reference/layout.h"
#include "kernels/reference/reference.h"
#include "tests/kernels/pooled_result.h"
#include "tests/support/reference_kernels.h"

namespace swizzle::testing {

class TwinDevice final : public DeviceBackend {
 public:
  // Of `rows` those that `keeps` says yes of. Measured times are drawn.
  TwinDevice(std::span<const Kernel> rows, bool (*keeps)(const Kernel&), uint32_t seed = 1) : seed_(seed) {
    for (const Kernel& row : rows) {
      if (!keeps(row)) continue;
      Kernel& twin = rows_.emplace_back(row);
      if (twin.prepare != nullptr) twin.prepare = KeptWeight::Keep;
      twin.workspace_bytes = nullptr;
      twin.required_features = 0;
      twin.run = Run;
    }
  }

  std::string_view name() const override { return "twin"; }
  std::string device_name() const override { return "twin"; }
  uint32_t features() const override { return 0; }
  std::string features_text() const override { return ""; }
  std::span<const Kernel> kernels() const override { return rows_; }
  bool Computes(Precision) const override { return true; }
  Throughput throughput(Precision) const override {
    return {.dense_multiply_adds = 1e6,
            .sparse_multiply_adds = 1e5,
            .depthwise_multiply_adds = 1e5,
            .floats = 1e5,
            .call_microseconds = 2};
  }
  StatusOr<std::unique_ptr<Buffer>> Allocate(size_t bytes) override { return std::make_unique<HeapBuffer>(bytes); }
  StatusOr<std::unique_ptr<Buffer>> AllocateHost(size_t bytes) override { return Allocate(bytes); }
  StatusOr<std::unique_ptr<PackedWeight>> Prepare(const Kernel& kernel, const Weight& weight,
                                                  const Problem& problem) override {
    return kernel.prepare(weight, problem);
  }
  StatusOr<std::unique_ptr<DeviceStream>> NewDeviceStream() override { return std::make_unique<AtOnce>(seed_); }
  Status health() const override { return absl::OkStatus(); }
  std::optional<DeviceMemory> memory() const override { return std::nullopt; }

 private:
  class AtOnce final : public DeviceStream {
   public:
    explicit AtOnce(uint32_t seed) : random_(seed) {}
    int threads() const override { return 1; }
    void Copy(void* to, const void* from, size_t bytes) override { std::memcpy(to, from, bytes); }
    void Run(Work work) override { work(); }
    StatusOr<absl::Duration> Time(Work, Operands) override {
      return absl::Microseconds(1 + static_cast<double>(random_() % 1000) / 50);
    }
    Status Synchronize() override { return absl::OkStatus(); }
    StatusOr<std::unique_ptr<Recording>> Record(Work) override { return absl::UnimplementedError("runs at once"); }

   private:
    std::minstd_rand random_;
  };

  static float Read(const void* data, int64_t i, DType dtype) {
    if (dtype == DType::kUint8) return static_cast<const uint8_t*>(data)[i];
    if (dtype == DType::kFloat16) return FloatOfHalf(static_cast<const uint16_t*>(data)[i]);
    if (dtype == DType::kBFloat16) return FloatOfBfloat16(static_cast<const uint16_t*>(data)[i]);
    return static_cast<const float*>(data)[i];
  }
  static void Write(void* data, int64_t i, DType dtype, float value) {
    if (dtype == DType::kFloat16) {
      static_cast<uint16_t*>(data)[i] = HalfOfFloat(value);
    } else if (dtype == DType::kBFloat16) {
      static_cast<uint16_t*>(data)[i] = Bfloat16OfFloat(value);
    } else {
      static_cast<float*>(data)[i] = value;
    }
  }

  // Where element i of a buffer lies: apart where it has a pitch.
  static int64_t PlaceOf(int64_t i, int64_t channels, int64_t pitch) {
    return pitch == 0 ? i : i / channels * pitch + i % channels;
  }

  static reference::Values ValuesOf(const Operand& operand, const Extent& extent, Layout layout) {
    std::vector<float> stored(static_cast<size_t>(LayoutElements(extent, layout)));
    for (int64_t i = 0; i < std::ssize(stored); ++i) {
      const float value = Read(operand.data, PlaceOf(i, extent.channels, operand.pitch), operand.dtype);
      const auto zero_point = static_cast<float>(operand.zero_point);
      stored[i] = operand.dtype == DType::kUint8 ? (value - zero_point) * operand.scale : value;
    }
    return reference::FromLayout(stored, extent, layout);
  }

  static void Run(const KernelArgs& args, Stream&) {
    const Problem& problem = *args.problem;
    const reference::Result whole = SolveByReference(args, ValuesOf);
    const Extent extent = problem.to.pooled ? PooledExtent(problem.output) : problem.output;
    const reference::Result result = problem.to.pooled ? Pooled(whole, problem.output) : whole;
    std::vector<float> stored(static_cast<size_t>(LayoutElements(extent, problem.to.layout)));
    reference::ToLayout(reference::Values(result.begin(), result.end()), extent, problem.to.layout, 0.0f, stored);
    for (int64_t i = 0; i < std::ssize(stored); ++i) {
      Write(args.output.data, PlaceOf(i, extent.channels, args.output.pitch), problem.to.dtype, stored[i]);
    }
  }

  std::vector<Kernel> rows_;
  const uint32_t seed_;
};

}  // namespace swizzle::testing

#endif  // SWIZZLE_TESTS_SUPPORT_TWIN_DEVICE_H_

// A host backend whose kernels are the reference's, one an operator, all in kNchw and FP32: for programs that plan
// without the CPU's kernels. Thread-safe as a backend has to be.
#ifndef SWIZZLE_TESTS_SUPPORT_REFERENCE_BACKEND_H_
#define SWIZZLE_TESTS_SUPPORT_REFERENCE_BACKEND_H_

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/backend/backend.h"
#include "kernels/base/layout.h"
#include "kernels/cpu/runtime/cpu_stream.h"
#include "kernels/reference/reference.h"
#include "tests/support/reference_kernels.h"

namespace swizzle::testing {

class ReferenceBackend final : public HostBackend {
 public:
  std::string_view name() const override { return "reference"; }
  std::string device_name() const override { return "reference"; }
  uint32_t features() const override { return 0; }
  std::string features_text() const override { return ""; }
  std::span<const Kernel> kernels() const override { return rows_; }
  bool Computes(Precision precision) const override { return precision == Precision::kFloat32; }
  Throughput throughput(Precision) const override {
    return {.dense_multiply_adds = 1,
            .sparse_multiply_adds = 1,
            .depthwise_multiply_adds = 1,
            .floats = 1,
            .call_microseconds = 1};
  }
  StatusOr<std::unique_ptr<Buffer>> Allocate(size_t bytes) override { return std::make_unique<HeapBuffer>(bytes); }
  StatusOr<std::unique_ptr<PackedWeight>> Prepare(const Kernel& kernel, const Weight& weight,
                                                  const Problem& problem) override {
    return kernel.prepare(weight, problem);
  }
  StatusOr<std::unique_ptr<HostStream>> NewHostStream(int threads) override {
    return std::make_unique<cpu::CpuStream>(threads);
  }
  Status health() const override { return absl::OkStatus(); }
  std::optional<DeviceMemory> memory() const override { return std::nullopt; }

 private:
  static reference::Values ValuesOf(const Operand& operand, const Extent& extent, Layout) {
    const int64_t count = LayoutElements(extent, Layout::kNchw);
    if (operand.dtype == DType::kInt32) return reference::Values(operand.As<int32_t>(), operand.As<int32_t>() + count);
    return reference::Values(operand.As<float>(), operand.As<float>() + count);
  }

  static void Run(const KernelArgs& args, Stream&) {
    const reference::Result result = SolveByReference(args, ValuesOf);
    std::ranges::transform(result, args.Output<float>(), [](double value) { return static_cast<float>(value); });
  }

  static Kernel RowOf(const OpTraits& traits) {
    constexpr Storage kPlain = {Layout::kNchw, DType::kFloat32};
    const bool pattern = traits.weight == WeightRule::kPattern;
    const Format weights = !HasWeight(traits.op) ? Format::kNone : pattern ? Format::kPattern : Format::kDense;
    const Storage input = traits.op == Op::kEmbedding ? kIdStorage : kPlain;
    Kernel row;
    row.name = traits.name;
    row.key = {traits.op, weights, DType::kFloat32, input, kPlain};
    row.accepts = [](const Problem&) { return true; };
    if (weights != Format::kNone) row.prepare = KeptWeight::Keep;
    row.run = Run;
    return row;
  }

  static std::vector<Kernel> Rows() {
    std::vector<Kernel> rows;
    for (const OpTraits& traits : kOpTraits) {
      if (!traits.Has(OpTraits::kOnlyRenames) && !traits.Has(OpTraits::kOfPlansOnly)) rows.push_back(RowOf(traits));
    }
    return rows;
  }

  const std::vector<Kernel> rows_ = Rows();
};

}  // namespace swizzle::testing

#endif  // SWIZZLE_TESTS_SUPPORT_REFERENCE_BACKEND_H_

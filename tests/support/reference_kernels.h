// What the tests' backends whose kernels are the reference's have in common.
#ifndef SWIZZLE_TESTS_SUPPORT_REFERENCE_KERNELS_H_
#define SWIZZLE_TESTS_SUPPORT_REFERENCE_KERNELS_H_

#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/backend/backend.h"
#include "kernels/reference/reference.h"

namespace swizzle::testing {

// Memory of the host that ends as exactly as lines allow, and begins as NaN.
class HeapBuffer final : public Buffer {
 public:
  explicit HeapBuffer(size_t bytes) : lines_((bytes + kBufferAlignment - 1) / kBufferAlignment), bytes_(bytes) {
    std::memset(static_cast<void*>(lines_.data()), 0xff, lines_.size() * sizeof(Line));
  }
  std::byte* data() override { return lines_.data()->bytes; }
  size_t bytes() const override { return bytes_; }

 private:
  struct alignas(kBufferAlignment) Line {
    std::byte bytes[kBufferAlignment];
  };

  std::vector<Line> lines_;
  const size_t bytes_;
};

// A weight as the reference takes it.
struct KeptWeight final : PackedWeight {
  explicit KeptWeight(Weight its) : weight(std::move(its)) {}
  size_t bytes() const override { return 1; }
  const Weight weight;

  // Kernel::prepare.
  static StatusOr<std::unique_ptr<PackedWeight>> Keep(const Weight& weight, const Problem&) {
    return std::make_unique<KeptWeight>(weight);
  }
};

// What the reference makes of a kernel's arguments. `read`: an operand's values in kNchw, of its extent and layout.
template <typename Read>
reference::Result SolveByReference(const KernelArgs& args, Read read) {
  const Problem& problem = *args.problem;
  std::vector<reference::Values> inputs;
  for (size_t i = 0; i < args.inputs.size(); ++i) {
    const bool residual = problem.epilogue.residual && i + 1 == args.inputs.size();
    const Extent extent = residual ? problem.output : InputExtent(problem, static_cast<int>(i));
    inputs.push_back(read(args.inputs[i], extent, residual ? problem.to.layout : problem.from.layout));
  }
  const auto* const kept = static_cast<const KeptWeight*>(args.weight);
  return reference::Solve(problem, kept == nullptr ? nullptr : &kept->weight, inputs, args.sequences);
}

}  // namespace swizzle::testing

#endif  // SWIZZLE_TESTS_SUPPORT_REFERENCE_KERNELS_H_

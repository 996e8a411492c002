// Convolutions of images whose windows are mostly padding; kernel_rows_test.cc has the others.
#include "kernels/cpu/conv/conv_stem.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "kernels/base/storage.h"
#include "kernels/cpu/cpu_backend.h"
#include "tests/kernels/test_memory.h"

namespace swizzle::cpu {
namespace {

Problem ProblemOf(const Extent& input, const Extent& output, const Window& window) {
  Problem problem;
  problem.SetOp(Op::kConv);
  problem.input = input;
  problem.output = output;
  problem.window() = window;
  problem.from = {Layout::kNchw, DType::kFloat32};
  problem.to = {Layout::kBlocked16, DType::kFloat32};
  return problem;
}

// No window reads the input, which begins behind all that they read.
TEST(ConvStemTest, WritesNoPaddingBehindTheWorkspace) {
  const auto backend = NewCpuBackend();
  const auto stream = *backend->NewStream(1);
  const Problem problem = ProblemOf({1, 1, 2, 1}, {1, 16, 2, 16}, {1, 4, 1, 4, 0, 66, 0, 0, 1, 1, false});
  ASSERT_TRUE(AcceptsConvStem(problem));
  Weight weight{.matrix = DenseMatrix{16, 4, std::vector<float>(64, 1.0f)}, .bias = std::vector<float>(16, 3.0f)};
  int rows = 0;
  for (const Kernel& kernel : backend->kernels()) {
    if (!kernel.name.starts_with("conv_stem_dense_f32_")) continue;
    if ((kernel.required_features & ~backend->features()) != 0) continue;
    TestMemory input(*backend, StorageBytes(problem.input, problem.from));
    TestMemory output(*backend, StorageBytes(problem.output, problem.to));
    TestMemory workspace(*backend, kernel.workspace_bytes(problem));
    const auto packed = *kernel.prepare(weight, problem);
    const Operand operands[] = {{input.data(), DType::kFloat32}};
    KernelArgs args;
    args.problem = &problem;
    args.weight = packed.get();
    args.inputs = operands;
    args.output = {output.data(), DType::kFloat32};
    args.workspace = {workspace.data(), workspace.bytes()};
    kernel.run(args, *stream);
    EXPECT_TRUE(workspace.GuardIntact()) << kernel.name;
    const auto* const sums = reinterpret_cast<const float*>(output.data());
    EXPECT_TRUE(std::all_of(sums, sums + 16 * 32, [](float sum) { return sum == 3.0f; })) << kernel.name;
    ++rows;
  }
  EXPECT_GE(rows, 1);
}

TEST(ConvStemTest, CopiesNoMoreThanACacheHolds) {
  EXPECT_TRUE(
      AcceptsConvStem(ProblemOf({1, 3, 2160, 3840}, {1, 32, 1080, 1920}, {7, 7, 2, 2, 3, 3, 3, 3, 1, 1, false})));
  constexpr int32_t kFar = 1 << 15;
  const Window apart = {2, 2, 1, 1, kFar, kFar, 0, 0, kFar, kFar, false};
  EXPECT_FALSE(AcceptsConvStem(ProblemOf({1, 3, 1, 1}, {1, 16, 1, 1}, apart)));
}

}  // namespace
}  // namespace swizzle::cpu

// Plans in which operands of Concats lie in what these make, and Slices in what they are of, compute what the CPU does,
// in every layout and at batches that move rows. Skipped, with the reason, where there is no GPU.
#include <gtest/gtest.h>

#include <memory>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cuda/cuda_backend.h"
#include "model_loader/plan/planner.h"
#include "tests/support/filtered_backend.h"
#include "tests/support/network_builder.h"
#include "tests/support/plan_runs.h"

namespace swizzle {
namespace {

using testing::SquareWindow;

// As detectors are: a value cut in two, parts put together with what is made of them, pools and resized planes beside
// each other, and a Concat within a Concat.
class Detector {
 public:
  Network Build() {
    const int image = b_.Value("image", 3, 22, 26);
    int x = Conv(image, 32, 3, 2);
    x = b_.Concat({Block(x, 32), x});
    const int small = Conv(x, 16, 1, 1);
    const int pool = b_.Pool(Op::kMaxPool, small, SquareWindow(5, 1, 2));
    const int pools = b_.Concat({small, pool, b_.Pool(Op::kMaxPool, pool, SquareWindow(5, 1, 2))});
    const int wide = b_.Resize(Conv(pools, 24, 3, 2), 12, 14, {.coordinates = Coordinates::kAsymmetric});
    const int all = b_.Concat({wide, b_.Resize(x, 12, 14, {.linear = true})});
    const int y = b_.Linear(b_.MeanOfPlane(Block(all, 40)), 10, 0.0);
    const NetworkPort in = b_.Port(image, "image"), out = b_.Port(y, "y");
    Network network = b_.Finish();
    network.inputs = {in};
    network.outputs = {out};
    return network;
  }

 private:
  int Conv(int input, int64_t outputs, int32_t kernel, int32_t stride) {
    return b_.Function(b_.Conv(input, outputs, SquareWindow(kernel, stride, kernel / 2), 0.0, testing::kNoEpilogue),
                       {FunctionKind::kSilu});
  }
  // Of 3 times `half` channels.
  int Block(int input, int64_t half) {
    const int both = Conv(input, 2 * half, 1, 1);
    const int left = b_.Slice(both, 0, half), right = b_.Slice(both, half, half);
    const int sum = b_.Pointwise(Op::kAdd, {right, Conv(Conv(right, half, 3, 1), half, 3, 1)});
    return b_.Concat({left, right, sum});
  }

  testing::NetworkBuilder b_{3, 0};
};

bool IsInRows(const Kernel& kernel) {
  return kernel.key.input.layout != Layout::kNhwc && kernel.key.output.layout != Layout::kNhwc;
}
bool IsInNhwc(const Kernel& kernel) {
  return kernel.key.input.layout != Layout::kRows && kernel.key.output.layout != Layout::kRows;
}
bool CopiesInBatched(const Kernel& kernel) {
  const bool copies = kernel.key.op == Op::kConcat || kernel.key.op == Op::kSlice;
  return !copies || kernel.key.input.layout == Layout::kBatched;
}
bool IsAny(const Kernel&) { return true; }

TEST(CudaNestedPlanTest, ComputesWhatTheCpuDoes) {
  const auto gpu = NewCudaBackend(0);
  if (!gpu.ok()) GTEST_SKIP() << gpu.status().message();
  const Network network = Detector().Build();
  const auto cpu = NewCpuBackend();
  const auto expected_plan = testing::MustPlan(network, *cpu);
  ASSERT_NE(expected_plan, nullptr);
  auto expected_runner = *expected_plan->NewRunner({});
  for (auto* const keeps : {IsInRows, IsInNhwc, CopiesInBatched, IsAny}) {
    testing::FilteredBackend backend(**gpu, keeps);
    for (const Precision precision : {Precision::kFloat32, Precision::kFloat16}) {
      if (keeps == CopiesInBatched && precision == Precision::kFloat32) continue;  // has no such rows
      const auto plan = testing::MustPlan(network, backend, precision);
      ASSERT_NE(plan, nullptr);
      auto runner = *plan->NewRunner({});
      for (const int64_t batch : {3, 1, 8, 5, 3}) {
        SCOPED_TRACE(Concat(PrecisionName(precision), ", batch ", batch));
        const auto drawn = testing::DrawFloats(static_cast<size_t>(batch * network.values[0].elements()), 7);
        testing::ExpectClose(testing::RunImages(*runner, batch, drawn),
                             testing::RunImages(*expected_runner, batch, drawn),
                             precision == Precision::kFloat32 ? 1e-4f : 1e-2f);
      }
    }
  }
}

}  // namespace
}  // namespace swizzle

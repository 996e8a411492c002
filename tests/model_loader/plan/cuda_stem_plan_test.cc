// Plans whose first layer is computed with its max pooling compute what the CPU does, on images of FP32 and UINT8, of
// even and odd sizes. Skipped, with the reason, where there is no GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cuda/cuda_backend.h"
#include "model_loader/plan/planner.h"
#include "tests/model_loader/plan/gpu_networks.h"
#include "tests/support/filtered_backend.h"
#include "tests/support/plan_runs.h"

namespace swizzle {
namespace {

TEST(CudaStemPlanTest, ComputesWhatTheCpuDoes) {
  const auto gpu = NewCudaBackend(0);
  if (!gpu.ok()) GTEST_SKIP() << gpu.status().message();
  testing::FilteredBackend pooled(**gpu, testing::ConvertsNoImage);
  const auto cpu = NewCpuBackend();
  for (const auto& [height, width] : {std::pair<int64_t, int64_t>{224, 224}, {37, 53}, {64, 480}}) {
    for (const bool bytes : {false, true}) {
      Network network = testing::StemNetwork(height, width);
      if (bytes) {
        network.inputs[0].dtype = DType::kUint8;
        network.values[0].quantisation = Quantisation{DType::kUint8, {1.0f / 64}, {100}};
      }
      const auto expected_plan = testing::MustPlan(network, *cpu);
      const auto plan = testing::MustPlan(network, pooled, Precision::kFloat16);
      ASSERT_TRUE(expected_plan != nullptr && plan != nullptr);
      EXPECT_NE(plan->report().layers[0].kernels[0].find("conv_pool_"), std::string::npos);
      EXPECT_EQ(plan->report().layers[1].kernels[0], "");
      auto expected_runner = *expected_plan->NewRunner({}), runner = *plan->NewRunner({});
      for (const int64_t batch : {3, 1, 8, 2}) {
        SCOPED_TRACE(Concat(height, "x", width, bytes ? " bytes" : " floats", ", batch ", batch));
        const auto count = static_cast<size_t>(batch * network.values[0].elements());
        const auto run = [&](Runner& of_plan) {
          return bytes ? testing::RunBytes(of_plan, batch, testing::DrawBytes(count, 7))
                       : testing::RunImages(of_plan, batch, testing::DrawFloats(count, 7));
        };
        testing::ExpectClose(run(*runner), run(*expected_runner), 1e-2f);
      }
    }
  }
}

}  // namespace
}  // namespace swizzle

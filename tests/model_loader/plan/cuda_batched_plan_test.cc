// Plans whose activations have the batch innermost compute what single precision computes in other layouts, at batches
// that fill its unit and others. Skipped, with the reason, where there is no GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/cuda_backend.h"
#include "model_loader/plan/planner.h"
#include "tests/support/drawn_models.h"
#include "tests/support/filtered_backend.h"
#include "tests/support/network_builder.h"
#include "tests/support/plan_runs.h"

namespace swizzle {
namespace {

using testing::kNoEpilogue;
using testing::kRelu;
using testing::SquareWindow;

// Without what would be chosen instead: in other layouts there are dense convolutions alone, and no windows else.
bool IsBatchedOrDense(const Kernel& kernel) {
  const Op op = kernel.key.op;
  const bool other_conv = op == Op::kConv && kernel.key.weights != Format::kDense;
  const bool other_window = op == Op::kDepthwiseConv || op == Op::kMaxPool;
  return kernel.key.input.layout == Layout::kBatched || !(other_conv || other_window);
}

// Vectors of 64 rows, windows of both strides, a residual, and both kinds of pooling.
Network VectorNetwork() {
  testing::NetworkBuilder b(3, 0);
  const int image = b.Value("image", 3, 45, 39);
  int x = b.Conv(image, 64, SquareWindow(3, 2, 1), 0.0, kRelu);
  x = b.Pool(Op::kMaxPool, x, SquareWindow(3, 2, 1));
  const int shortcut = x;
  x = b.Conv(x, 128, SquareWindow(3, 1, 1), 0.9, kRelu);
  x = b.Depthwise(x, SquareWindow(3, 1, 1), kRelu);
  x = b.Conv(x, 64, SquareWindow(1, 1, 0), 0.8, kRelu, shortcut);
  x = b.Depthwise(x, SquareWindow(3, 2, 1), kRelu);
  x = b.Conv(x, 192, SquareWindow(1, 2, 0), 0.8, kNoEpilogue);
  const int y = b.Linear(b.MeanOfPlane(x), 10, 0.0);
  const NetworkPort in = b.Port(image, "image"), out = b.Port(y, "y");
  Network network = b.Finish();
  network.inputs = {in};
  network.outputs = {out};
  testing::DrawVectors(network, 64);
  return network;
}

TEST(CudaBatchedPlanTest, IsCloseToSinglePrecision) {
  const auto gpu = NewCudaBackend(0);
  if (!gpu.ok()) GTEST_SKIP() << gpu.status().message();
  testing::FilteredBackend batched(**gpu, IsBatchedOrDense);
  Network network = VectorNetwork();
  for (const bool bytes : {false, true}) {
    if (bytes) {
      network.inputs[0].dtype = DType::kUint8;
      network.values[0].quantisation = Quantisation{DType::kUint8, {1.0f / 64}, {100}};
    }
    const auto expected_plan = testing::MustPlan(network, **gpu);
    const auto plan = testing::MustPlan(network, batched, Precision::kFloat16);
    ASSERT_TRUE(expected_plan != nullptr && plan != nullptr);
    for (const LayerReport& layer : plan->report().layers) {
      if (layer.op != "DepthwiseConv") continue;
      EXPECT_NE(layer.kernels[0].find("_batched_"), std::string::npos) << layer.kernels[0];
    }
    auto expected_runner = *expected_plan->NewRunner({}), runner = *plan->NewRunner({});
    for (const int64_t batch : {3, 64, 1, 17, 3, 8}) {
      SCOPED_TRACE(Concat(bytes ? "bytes" : "floats", ", batch ", batch));
      const auto count = static_cast<size_t>(batch * network.values[0].elements());
      const auto actual = bytes ? testing::RunBytes(*runner, batch, testing::DrawBytes(count, 7))
                                : testing::RunImages(*runner, batch, testing::DrawFloats(count, 7));
      const auto expected = bytes ? testing::RunBytes(*expected_runner, batch, testing::DrawBytes(count, 7))
                                  : testing::RunImages(*expected_runner, batch, testing::DrawFloats(count, 7));
      testing::ExpectClose(actual, expected, 1e-2f);
    }
  }
}

}  // namespace
}  // namespace swizzle

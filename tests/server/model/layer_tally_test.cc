#include "server/model/layer_tally.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/format/csr.h"
#include "model_loader/plan/planner.h"
#include "server/telemetry/metrics.h"
#include "tests/support/network_builder.h"

namespace swizzle {
namespace {

using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

// A convolution of which eight neighbouring rows of weights have the same columns, one in ten.
Network VectorNetwork() {
  testing::NetworkBuilder builder(3, 0);
  const int x = builder.Value("x", 160, 14, 14);
  const int y = builder.Conv(x, 128, testing::SquareWindow(1, 1, 0), 0.9, testing::kNoEpilogue);
  const NetworkPort input = builder.Port(x, "x"), output = builder.Port(y, "y");
  Network network = builder.Finish();
  network.inputs = {input};
  network.outputs = {output};
  DenseMatrix dense = network.weights[0].ToDense();
  for (int64_t row = 0; row < dense.rows; ++row) {
    for (int64_t col = 0; col < dense.cols; ++col) {
      dense.values[row * dense.cols + col] = (row / 8 + col) % 10 == 0 ? 0.5f : 0.0f;
    }
  }
  network.weights[0].matrix = CsrMatrix::FromDense(dense);
  return network;
}

// Rows of vectors read CSR weights, as those of single nonzeros do: reports and metrics name the one that runs.
TEST(LayerTallyTest, LayersOfVectorsAreCountedByTheNameOfTheKernelThatRuns) {
  const auto backend = NewCpuBackend();
  const auto plan = MakePlan(VectorNetwork(), *backend, {.threads = 1, .tuning_budget = absl::ZeroDuration()});
  ASSERT_TRUE(plan.ok()) << plan.status();
  const LayerReport& layer = (*plan)->report().layers[0];
  EXPECT_THAT(layer.kernels[0], MatchesRegex("conv(_nchw)?_vector_f32_.*"));
  EXPECT_THAT(layer.candidates, Contains(Field(&LayerReport::KernelTimes::kernel, HasSubstr("_csr_f32_"))))
      << "nothing to confuse it with";

  LayerTally tally;
  tally.Add((*plan)->report());
  ModelFacts facts;
  facts.device = "cpu";
  tally.Describe(facts);
  EXPECT_THAT(facts.properties.at("swizzle_kernels"), HasSubstr(layer.kernels[0] + ":1"));
  const auto metrics = NewMetrics("127.0.0.1:0");
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  ModelSpec spec;
  spec.name = "m";
  const auto model = (*metrics)->ForModel(spec, facts, absl::ZeroDuration());
  EXPECT_THAT((*metrics)->Text(), HasSubstr("swizzle_kernel_selected{device=\"cpu\",kernel=\"" + layer.kernels[0]));
}

}  // namespace
}  // namespace swizzle

// Regions that are one: what exporters unroll, and layers that share weights.
#include "model_loader/regions/likeness.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "model_loader/interpreter/run/load.h"
#include "model_loader/regions/plan_regions.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/status_matchers.h"

namespace swizzle::regions {
namespace {

using interpreter::Array;
using swizzle::testing::IsOk;
using swizzle::testing::OnnxBuilder;

// `one_in`: what sums of as many stay small by.
std::vector<float> Drawn(int64_t count, int seed, float one_in = 16) {
  std::vector<float> drawn(static_cast<size_t>(count));
  for (size_t i = 0; i < drawn.size(); ++i) {
    drawn[i] = static_cast<float>(static_cast<int>((i * 31 + static_cast<size_t>(seed) * 7) % 101) - 50) / 25 / one_in;
  }
  return drawn;
}

class LikenessTest : public ::testing::Test {
 protected:
  RegionalProgram Plan(const OnnxBuilder& builder) {
    auto program = interpreter::ReadProgram(std::span<const std::byte>(builder.Bytes()));
    EXPECT_THAT(program, IsOk());
    program_ = *program;
    return PlanRegions(program_, *backend_, {.threads = 2, .tuning_budget = absl::ZeroDuration()});
  }

  std::vector<float> Run(const interpreter::Program& program, const Shape& shape) {
    const std::vector<float> x = Drawn(*ElementCount(shape), 5);
    const std::vector<TensorView> inputs = {{DType::kFloat32, shape, std::as_bytes(std::span(x))}};
    const auto stream = backend_->NewStream(2);
    EXPECT_TRUE(stream.ok());
    const auto outputs = program.Run(inputs, **stream, {}, nullptr, {});
    EXPECT_THAT(outputs, IsOk());
    const auto elements = outputs->at(0).As<float>();
    return {elements.begin(), elements.end()};
  }

  void ExpectSame(const RegionalProgram& regional, const Shape& shape) {
    const std::vector<float> expected = Run(*program_, shape), actual = Run(*regional.program, shape);
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(actual[i], expected[i], 1e-4) << i;
  }

  const std::unique_ptr<Backend> backend_ = NewCpuBackend();
  std::shared_ptr<const interpreter::Program> program_;
};

// x [batch, size] -> so many steps of a layer and what no region takes; steps share what `weight_of` names.
OnnxBuilder Unrolled(int64_t size, int steps, const std::function<std::string(int)>& weight_of) {
  OnnxBuilder builder;
  const auto weight = [size](int seed) { return Drawn(size * size, seed, static_cast<float>(size)); };
  builder.Input("x", {-1, size}).Floats("w", {size, size}, weight(1)).Floats("b", {size}, Drawn(size, 2));
  builder.Floats("v", {size, size}, weight(3)).Floats("same", {size, size}, weight(1));
  std::string from = "x";
  for (int i = 0; i < steps; ++i) {
    const std::string at = std::to_string(i);
    builder.Node("Gemm", {from, weight_of(i), "b"}, {"g" + at}, {{"transB", int64_t{1}}});
    builder.Node("Sin", {"g" + at}, {"s" + at});
    from = "s" + at;
  }
  return builder.Output(from);
}

TEST_F(LikenessTest, StepsThatShareTheirWeightsHaveOnePlan) {
  const RegionalProgram regional = Plan(Unrolled(16, 12, [](int) { return "w"; }));
  ASSERT_EQ(regional.regions.size(), 1u) << regional.unplanned;
  EXPECT_EQ(regional.region_count(), 12u);
  EXPECT_EQ(regional.layers(), 12);
  EXPECT_EQ(regional.interpreted_nodes(), 12u);
  ExpectSame(regional, {3, 16});
}

TEST_F(LikenessTest, OthersHaveTheirOwn) {
  const RegionalProgram regional = Plan(Unrolled(16, 6, [](int i) { return i % 3 == 0 ? "v" : "w"; }));
  ASSERT_EQ(regional.regions.size(), 2u) << regional.unplanned;
  EXPECT_EQ(regional.region_count(), 6u);
  ExpectSame(regional, {3, 16});
}

TEST_F(LikenessTest, GoesByWhatWeightsHold) {
  const RegionalProgram regional = Plan(Unrolled(16, 4, [](int i) { return i % 2 == 0 ? "same" : "w"; }));
  EXPECT_EQ(regional.regions.size(), 1u) << regional.unplanned;
  ExpectSame(regional, {2, 16});
}

// One of 4 MiB, read forty times.
TEST_F(LikenessTest, LargeWeightsMayBeReadOftenAndAreHeldOnce) {
  constexpr int64_t kSize = 1024;
  const RegionalProgram regional = Plan(Unrolled(kSize, 40, [](int) { return "w"; }));
  ASSERT_EQ(regional.unplanned, "");
  EXPECT_EQ(regional.region_count(), 40u);
  ExpectSame(regional, {2, kSize});
  program_ = nullptr;
  EXPECT_LT(regional.weight_bytes(), 2 * kSize * kSize * static_cast<int64_t>(sizeof(float)));
}

}  // namespace
}  // namespace swizzle::regions

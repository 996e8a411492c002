#include "model_loader/regions/region_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/cpu/cpu_backend.h"
#include "model_loader/interpreter/run/load.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/status_matchers.h"

namespace swizzle::regions {
namespace {

using swizzle::testing::IsOk;
using swizzle::testing::OnnxBuilder;
using ::testing::ElementsAre;

class RegionTimesTest : public ::testing::Test {
 protected:
  // Two layers on vectors, with an operator between them that no plan takes; batch and length are free.
  RegionTimesTest() {
    OnnxBuilder builder;
    builder.Input("x", {-1, -1, 8}).Floats("w", {8, 24}, std::vector<float>(192, 0.25f));
    builder.Floats("v", {24, 8}, std::vector<float>(192, 0.5f)).Node("MatMul", {"x", "w"}, {"a"});
    builder.Node("Tan", {"a"}, {"b"}).Node("Tan", {"b"}, {"c"}).Node("MatMul", {"c", "v"}, {"y"}).Output("y");
    program_ = *interpreter::ReadProgram(std::span<const std::byte>(builder.Bytes()));
    regional_ = PlanRegions(program_, *backend_, {.threads = 1, .tuning_budget = {}});
    times_ = TimeRegions(regional_, **backend_->NewStream(1));
  }

  const std::unique_ptr<Backend> backend_ = NewCpuBackend();
  std::shared_ptr<const interpreter::Program> program_;
  RegionalProgram regional_;
  StatusOr<RegionTimes> times_ = RegionTimes();
};

TEST_F(RegionTimesTest, TimesEachRegionAndEachNodeBetweenThem) {
  ASSERT_THAT(times_, IsOk());
  EXPECT_THAT(times_->inputs, ElementsAre(Shape{1, 64, 8}));
  ASSERT_EQ(times_->regions.size(), 2u);
  ASSERT_EQ(times_->interpreted.size(), 2u);
  for (const auto& node : times_->interpreted) {
    EXPECT_EQ(program_->graph().nodes[static_cast<size_t>(node.node)].op, "Tan");
    EXPECT_GT(node.time, absl::ZeroDuration());
  }
  EXPECT_EQ(times_->attention, absl::ZeroDuration());
  EXPECT_EQ(times_->All(), times_->regions[0] + times_->regions[1] + times_->Interpreted());
}

}  // namespace
}  // namespace swizzle::regions

// What a region costs when rows of a new shape come, and that it then computes what the interpreter does.
#include "model_loader/regions/row_planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "tests/model_loader/regions/planned_programs.h"
#include "tests/support/counting_backend.h"

namespace swizzle::regions {
namespace {

using interpreter::Array;
using swizzle::testing::IsOk;
using swizzle::testing::OnnxBuilder;

class RowPlannerTest : public ::testing::Test {
 protected:
  RegionalProgram Plan(const OnnxBuilder& builder) {
    program_ = *interpreter::ReadProgram(std::span<const std::byte>(builder.Bytes()));
    const PlanOptions options{.threads = 2, .tuning_budget = absl::ZeroDuration()};
    RegionalProgram planned = PlanRegions(program_, backend_, options);
    stream_ = *backend_.NewStream(2);
    backend_.streams = backend_.prepared = 0;
    return planned;
  }

  StatusOr<Array> Run(const interpreter::Program& program, const std::vector<Shape>& shapes) {
    return RunCounting(program, *stream_, shapes);
  }

  void ExpectSame(const RegionalProgram& regional, const std::vector<Shape>& shapes) {
    ExpectSameElements(Run(*regional.program, shapes), Run(*program_, shapes));
  }

  swizzle::testing::CountingBackend backend_;
  std::unique_ptr<Stream> stream_;
  std::shared_ptr<const interpreter::Program> program_;
};

// A detector's neck: windows, pools, a squeeze and excitation, planes that are made larger and joined.
OnnxBuilder Neck() {
  OnnxBuilder builder;
  builder.Input("x", {-1, 3, -1, -1});
  builder.Floats("w1", {16, 3, 3, 3}, Weights(16 * 27)).Floats("w2", {16, 1, 5, 5}, Weights(16 * 25));
  builder.Floats("w3", {16, 16, 1, 1}, Weights(256)).Floats("w4", {8, 32, 3, 3}, Weights(8 * 32 * 9));
  builder.Floats("scales", {4}, {1, 1, 2, 2}).Floats("bias", {8, 1, 1}, Weights(8));
  const std::vector<int64_t> one = {1, 1, 1, 1}, two = {2, 2, 2, 2}, half = {2, 2};
  builder.Node("Conv", {"x", "w1"}, {"c1"}, {{"pads", one}, {"strides", half}}).Node("Relu", {"c1"}, {"r1"});
  builder.Node("MaxPool", {"r1"}, {"p"}, {{"kernel_shape", half}, {"strides", half}});
  builder.Node("Conv", {"p", "w2"}, {"c2"}, {{"pads", two}, {"group", int64_t{16}}});
  builder.Node("GlobalAveragePool", {"c2"}, {"m"}).Node("Conv", {"m", "w3"}, {"e"}).Node("Sigmoid", {"e"}, {"g"});
  builder.Node("Mul", {"c2", "g"}, {"s"});
  builder.Node("Resize", {"s", "", "scales"}, {"large"},
               {{"coordinate_transformation_mode", std::string("asymmetric")}, {"nearest_mode", std::string("floor")}});
  builder.Node("Concat", {"large", "r1"}, {"both"}, {{"axis", int64_t{1}}});
  builder.Node("Conv", {"both", "w4"}, {"c4"}, {{"pads", one}}).Node("Add", {"c4", "bias"}, {"y"}).Output("y");
  return builder;
}

TEST_F(RowPlannerTest, ANewShapeStartsNoThreadAndPreparesNoWeight) {
  const RegionalProgram regional = Plan(Neck());
  ASSERT_EQ(regional.regions.size(), 1u) << regional.unplanned;
  for (const Shape& shape : {Shape{2, 3, 64, 64}, Shape{1, 3, 32, 32}, Shape{1, 3, 36, 100}, Shape{3, 3, 8, 4},
                             Shape{1, 3, 128, 64}, Shape{1, 3, 100, 36}, Shape{70, 3, 16, 12}, Shape{1, 3, 36, 100}}) {
    ExpectSame(regional, {shape});
  }
  EXPECT_EQ(backend_.streams, 0);
  EXPECT_EQ(backend_.prepared, 0);
}

TEST_F(RowPlannerTest, ManyShapesComputeWhatTheInterpreterDoes) {
  const RegionalProgram regional = Plan(Neck());
  for (int64_t height = 4; height < 64; height += 12) {
    for (int64_t width = 4; width < 80; width += 4) ExpectSame(regional, {{1, 3, height, width}});
  }
  EXPECT_EQ(backend_.prepared, 0);
}

// A line of text: its height is gone where it becomes vectors.
TEST_F(RowPlannerTest, LinesBecomeVectorsOfAnyLength) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 3, 8, -1});
  builder.Floats("w1", {16, 3, 3, 3}, Weights(16 * 27)).Floats("w2", {16, 24}, Weights(16 * 24));
  builder.Int64s("rows", {3}, {0, 16, -1});
  builder.Node("Conv", {"x", "w1"}, {"c"}, {{"pads", std::vector<int64_t>{1, 1, 1, 1}}}).Node("Relu", {"c"}, {"r"});
  builder.Node("AveragePool", {"r"}, {"p"}, {{"kernel_shape", std::vector<int64_t>{8, 1}}});
  builder.Node("Reshape", {"p", "rows"}, {"l"})
      .Node("Transpose", {"l"}, {"t"}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
  builder.Node("Tan", {"t"}, {"u"}).Node("MatMul", {"u", "w2"}, {"y"}).Output("y");
  const RegionalProgram regional = Plan(builder);
  ASSERT_EQ(regional.regions.size(), 2u) << regional.unplanned;
  for (int64_t width = 1; width < 90; width += 3) ExpectSame(regional, {{2, 3, 8, width}});
  EXPECT_EQ(backend_.streams, 0);
  EXPECT_EQ(backend_.prepared, 0);
}

// A signal is a plane of one row between layers that no kernel solves.
TEST_F(RowPlannerTest, SignalsOfAnyLengthAreRenamedToPlanes) {
  OnnxBuilder builder;
  builder.Input("x", {-1, -1}).Int64s("axis", {1}, {1});
  builder.Floats("w1", {16, 1, 8}, Weights(16 * 8)).Floats("w2", {16, 16, 3}, Weights(16 * 48));
  builder.Node("Unsqueeze", {"x", "axis"}, {"u"});
  builder.Node("Conv", {"u", "w1"}, {"c"}, {{"strides", std::vector<int64_t>{4}}}).Node("Relu", {"c"}, {"r"});
  builder.Node("Conv", {"r", "w2"}, {"y"}, {{"pads", std::vector<int64_t>{1, 1}}}).Output("y");
  const RegionalProgram regional = Plan(builder);
  ASSERT_EQ(regional.regions.size(), 1u) << regional.unplanned;
  const auto plan = regional.regions[0]->plan();
  EXPECT_NE(std::ranges::find(plan->network().layers, Op::kReshape, &Layer::op), plan->network().layers.end());
  for (int64_t length = 8; length < 300; length += 21) ExpectSame(regional, {{2, length}});
  EXPECT_EQ(backend_.prepared, 0);
}

// Paddings that go by the plane: what is even at the sizes of the survey is not at others.
TEST_F(RowPlannerTest, PaddingThatGoesByThePlaneIsFoundAnew) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 3, -1, -1}).Floats("w", {8, 3, 3, 3}, Weights(8 * 27));
  builder.Node("Conv", {"x", "w"}, {"c"},
               {{"auto_pad", std::string("SAME_UPPER")}, {"strides", std::vector<int64_t>{2, 2}}});
  builder.Node("Relu", {"c"}, {"r"});
  builder.Node("MaxPool", {"r"}, {"y"},
               {{"kernel_shape", std::vector<int64_t>{2, 2}},
                {"strides", std::vector<int64_t>{2, 2}},
                {"ceil_mode", int64_t{1}}});
  builder.Output("y");
  const RegionalProgram regional = Plan(builder);
  ASSERT_EQ(regional.regions.size(), 1u) << regional.unplanned;
  for (const int64_t height : {16, 17, 18, 19}) {
    for (const int64_t width : {32, 33, 34, 35}) ExpectSame(regional, {{1, 3, height, width}});
  }
  EXPECT_EQ(backend_.streams, 0);
  EXPECT_EQ(backend_.prepared, 0) << "its weights are those that are held, all the same";
}

// Padding is counted, but not what lies behind it, which planes of an even size have none of.
TEST_F(RowPlannerTest, MeansOfWindowsThatTheEndCutsOffCountWhatIsThere) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 3, -1, -1});
  builder.Node("AveragePool", {"x"}, {"y"},
               {{"kernel_shape", std::vector<int64_t>{2, 2}},
                {"strides", std::vector<int64_t>{2, 2}},
                {"ceil_mode", int64_t{1}},
                {"count_include_pad", int64_t{1}}});
  builder.Output("y");
  const RegionalProgram regional = Plan(builder);
  ASSERT_EQ(regional.regions.size(), 1u) << regional.unplanned;
  for (const int64_t height : {16, 17}) {
    for (const int64_t width : {32, 33}) ExpectSame(regional, {{1, 3, height, width}});
  }
}

// Numbers by the length, which a plan holds as weights: made once, however many layers are alike.
TEST_F(RowPlannerTest, RegionsThatAreAlikeArePlannedOnce) {
  constexpr int64_t kLayers = 5;
  OnnxBuilder builder;
  builder.Input("x", {-1, -1, -1}).Floats("half", {}, {0.5f});
  std::string value = "x";
  for (int64_t i = 0; i < kLayers; ++i) {
    const std::string n = std::to_string(i);
    builder.Node("Mul", {value, "half"}, {"m" + n}).Node("Softmax", {"m" + n}, {"s" + n}, {{"axis", int64_t{2}}});
    builder.Node("Tan", {"s" + n}, {"t" + n});
    value = "t" + n;
  }
  builder.Output(value);
  const RegionalProgram regional = Plan(builder);
  ASSERT_EQ(regional.region_count(), static_cast<size_t>(kLayers)) << regional.unplanned;
  ExpectSame(regional, {{1, 7, 20}});
  EXPECT_LE(backend_.prepared, 1);
  EXPECT_EQ(backend_.streams, 0);
  for (const int64_t length : {1, 20, 21, 64}) ExpectSame(regional, {{2, 3, length}});
}

}  // namespace
}  // namespace swizzle::regions

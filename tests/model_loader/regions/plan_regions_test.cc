#include "model_loader/regions/plan_regions.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "tests/model_loader/regions/planned_programs.h"
#include "tests/support/counting_gate.h"

namespace swizzle::regions {
namespace {

using interpreter::Array;
using swizzle::testing::IsOk;
using swizzle::testing::OnnxBuilder;

class PlanRegionsTest : public PlannedPrograms {};

// x [batch, length, 8] -> a layer, what no plan takes, two layers with a residual.
OnnxBuilder Tokens() {
  OnnxBuilder builder;
  builder.Input("x", {-1, -1, 8});
  builder.Floats("w1", {8, 24}, Weights(8 * 24)).Floats("b1", {24}, Weights(24));
  builder.Floats("w2", {24, 40}, Weights(24 * 40)).Floats("w3", {40, 24}, Weights(40 * 24));
  builder.Node("MatMul", {"x", "w1"}, {"h"}).Node("Add", {"b1", "h"}, {"hb"});
  builder.Node("Softmax", {"hb"}, {"s"}, {{"axis", int64_t{1}}});
  builder.Node("MatMul", {"s", "w2"}, {"m"}).Node("Relu", {"m"}, {"r"}).Node("MatMul", {"r", "w3"}, {"n"});
  builder.Node("Add", {"n", "s"}, {"y"}).Output("y");
  return builder;
}

TEST_F(PlanRegionsTest, LayersOnTokensTakeAnyBatchAndLength) {
  const RegionalProgram regional = Plan(Tokens());
  ASSERT_EQ(regional.regions.size(), 2u) << regional.unplanned;
  EXPECT_EQ(regional.program->interpreted_nodes(), 1u);
  EXPECT_EQ(regional.program->OperatorCounts(), "Softmax:1");
  EXPECT_EQ(regional.run_memory.rows, 2);
  EXPECT_GE(regional.run_memory.bytes, 2 * 64 * 8 * 4) << "what is softened, at least";
  for (const int64_t length : {1, 5, 300}) ExpectSame(regional, {{3, length, 8}});
}

TEST_F(PlanRegionsTest, SoftmaxAlongVectorsEndsARegion) {
  OnnxBuilder builder;
  builder.Input("x", {-1, -1, 8}).Floats("w", {8, 40}, Weights(8 * 40)).Node("MatMul", {"x", "w"}, {"h"});
  builder.Node("Softmax", {"h"}, {"y"}, {{"axis", int64_t{2}}}).Output("y");
  const RegionalProgram regional = Plan(builder);
  ASSERT_EQ(regional.regions.size(), 1u) << regional.unplanned;
  EXPECT_EQ(regional.program->interpreted_nodes(), 0u);
  for (const int64_t length : {1, 5, 300}) ExpectSame(regional, {{3, length, 8}});
}

// What a request has, if that is known and few.
TEST_F(PlanRegionsTest, MeasuresVectorsByTheNumberThatARowHas) {
  const auto measured = [&](const Shape& shape) {
    OnnxBuilder builder;
    builder.Input("x", shape).Floats("w", {8, 40}, Weights(8 * 40)).Node("MatMul", {"x", "w"}, {"h"});
    builder.Node("Tan", {"h"}, {"y"}).Output("y");
    return Plan(builder).regions.at(0)->plan()->report().measured_batches;
  };
  EXPECT_EQ(measured({-1, 80, 8}), (std::vector<int64_t>{80, 512}));
  EXPECT_EQ(measured({-1, 5, 6, 8}), (std::vector<int64_t>{30, 512}));
  EXPECT_EQ(measured({1, 80, 8}), (std::vector<int64_t>{80, 512}));
  EXPECT_EQ(measured({-1, 300, 8}), (std::vector<int64_t>{64, 512}));
  EXPECT_EQ(measured({-1, -1, 8}), (std::vector<int64_t>{64, 512}));
}

TEST_F(PlanRegionsTest, AsksAGateBetweenNodesAndBetweenStepsOfRegions) {
  const RegionalProgram regional = Plan(Tokens());
  swizzle::testing::CountingGate nodes, steps;
  const auto interpreted = Run(*program_, {{3, 5, 8}}, {}, &nodes);
  const auto planned = Run(*regional.program, {{3, 5, 8}}, {}, &steps);
  ASSERT_THAT(interpreted, IsOk());
  ASSERT_THAT(planned, IsOk());
  EXPECT_EQ(nodes.asked, 7);
  EXPECT_GE(steps.asked, 3 + regional.layers()) << "of two regions and a node between them";
  EXPECT_EQ(nodes.waited, 1);
  EXPECT_EQ(steps.waited, 1);
  const auto free = Run(*regional.program, {{3, 5, 8}});
  EXPECT_TRUE(std::ranges::equal(planned->As<float>(), free->As<float>()));
}

TEST_F(PlanRegionsTest, WeightsOfRegionsThatTakeAllAreNotHeldTwice) {
  const RegionalProgram regional = Plan(Tokens());
  const int64_t before = program_->weight_bytes();
  EXPECT_GT(before, 0);
  program_ = nullptr;
  EXPECT_EQ(regional.program->weight_bytes(), 0);
}

TEST_F(PlanRegionsTest, NothingRunsWithoutRows) {
  const RegionalProgram regional = Plan(Tokens());
  const auto empty = Run(*regional.program, {{0, 4, 8}});
  EXPECT_FALSE(empty.ok() && empty->elements() != 0);
}

TEST_F(PlanRegionsTest, ABatchBeyondItsMemoryFails) {
  const RegionalProgram regional = Plan(Tokens());
  EXPECT_THAT(Run(*regional.program, {{3, 50, 8}}, {.max_live_bytes = int64_t{1} << 14}),
              swizzle::testing::IsError(StatusCode::kResourceExhausted, "values together need more"));
}

// Convolutions around an operator that no plan takes, on images of any size.
OnnxBuilder Images() {
  OnnxBuilder builder;
  builder.Input("x", {-1, 3, -1, -1});
  builder.Floats("w1", {16, 3, 3, 3}, Weights(16 * 27)).Floats("w2", {8, 16, 1, 1}, Weights(128));
  builder.Node("Conv", {"x", "w1"}, {"c"}, {{"pads", std::vector<int64_t>{1, 1, 1, 1}}});
  builder.Node("Relu", {"c"}, {"r"}).Node("Tan", {"r"}, {"t"}).Node("Conv", {"t", "w2"}, {"d"});
  builder.Node("Sigmoid", {"d"}, {"y"}).Output("y");
  return builder;
}

TEST_F(PlanRegionsTest, ImagesOfOtherSizesArePlannedWhenTheyCome) {
  const RegionalProgram regional = Plan(Images());
  ASSERT_EQ(regional.regions.size(), 2u) << regional.unplanned;
  EXPECT_EQ(regional.program->OperatorCounts(), "Tan:1");
  for (const Shape& shape : {Shape{2, 3, 64, 64}, Shape{1, 3, 20, 36}, Shape{70, 3, 9, 7}, Shape{1, 3, 20, 36}}) {
    ExpectSame(regional, {shape});
  }
}

// Convolutions of 90 % zeros around a Split, Concats and a Resize, as detectors have them.
OnnxBuilder Detector() {
  OnnxBuilder builder;
  builder.Input("x", {-1, 3, -1, -1});
  builder.Floats("w1", {16, 3, 3, 3}, Weights(16 * 27)).Floats("w2", {8, 8, 1, 1}, Weights(64));
  builder.Floats("w3", {6, 24, 3, 3}, Weights(6 * 24 * 9)).Floats("w4", {4, 22, 1, 1}, Weights(88));
  builder.Floats("scales", {4}, {1, 1, 2, 2}).Int64s("sizes", {2}, {8, 8});
  const std::vector<int64_t> around = {1, 1, 1, 1};
  builder.Node("Conv", {"x", "w1"}, {"c"}, {{"pads", around}});
  builder.Node("Split", {"c", "sizes"}, {"left", "right"}, {{"axis", int64_t{1}}});
  builder.Node("Conv", {"right", "w2"}, {"d"}).Node("Relu", {"d"}, {"r"});
  builder.Node("Concat", {"left", "right", "r"}, {"all"}, {{"axis", int64_t{1}}});
  builder.Node("Conv", {"all", "w3"}, {"e"}, {{"pads", around}, {"strides", std::vector<int64_t>{2, 2}}});
  builder.Node("Resize", {"e", "", "scales"}, {"large"},
               {{"coordinate_transformation_mode", std::string("asymmetric")}, {"nearest_mode", std::string("floor")}});
  builder.Node("Concat", {"large", "c"}, {"both"}, {{"axis", int64_t{1}}});
  return builder;
}

TEST_F(PlanRegionsTest, ChannelsAreTakenApartAndPutTogetherWithinARegion) {
  OnnxBuilder builder = Detector();
  builder.Node("Conv", {"both", "w4"}, {"y"}).Output("y");
  const RegionalProgram regional = Plan(builder);
  ASSERT_EQ(regional.regions.size(), 1u) << regional.unplanned;
  EXPECT_EQ(regional.program->OperatorCounts(), "");
  for (const Shape& shape : {Shape{2, 3, 64, 64}, Shape{1, 3, 20, 36}, Shape{1, 3, 20, 36}}) {
    ExpectSame(regional, {shape});
  }
}

TEST_F(PlanRegionsTest, EachPartOfASplitMayBeReadOutside) {
  OnnxBuilder builder = Detector();
  builder.Node("Conv", {"both", "w4"}, {"f"}).Node("Tan", {"right"}, {"t"}).Node("ReduceMax", {"t"}, {"m"});
  builder.Node("Add", {"f", "m"}, {"y"}).Output("y");
  const RegionalProgram regional = Plan(builder);
  ASSERT_EQ(regional.regions.size(), 1u) << regional.unplanned;
  EXPECT_EQ(regional.program->OperatorCounts(), "Add:1,ReduceMax:1,Tan:1");
  for (const Shape& shape : {Shape{2, 3, 64, 64}, Shape{1, 3, 20, 36}}) ExpectSame(regional, {shape});
}

TEST_F(PlanRegionsTest, WhatOnlyMovesElementsIsNoRegion) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 8, 32, 32});
  builder.Node("Split", {"x"}, {"p", "q"}, {{"axis", int64_t{1}}});
  builder.Node("Concat", {"q", "p"}, {"y"}, {{"axis", int64_t{1}}}).Output("y");
  EXPECT_EQ(Plan(builder).regions.size(), 0u);
}

// Kernels, strides and pads of transposed convolutions, with what follows them.
TEST_F(PlanRegionsTest, TransposedConvolutionsArePlannedAsConvolutions) {
  struct Case {
    std::vector<int64_t> kernel, strides, pads, added;
    const char* interpreted;
  };
  const Case cases[] = {
      {{2, 2}, {2, 2}, {0, 0, 0, 0}, {0, 0}, ""},
      {{3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, ""},
      {{4, 4}, {2, 2}, {1, 1, 1, 1}, {0, 0}, ""},
      {{8, 6}, {4, 4}, {2, 1, 2, 1}, {0, 0}, ""},
      {{1, 2}, {3, 3}, {0, 0, 0, 0}, {2, 1}, ""},
      {{7, 9}, {3, 3}, {4, 6, 0, 0}, {0, 0}, ""},
      {{3, 3}, {2, 2}, {1, 1, 1, 1}, {0, 0}, "BatchNormalization:1,ConvTranspose:1,Relu:1"},
      {{3, 3}, {1, 2}, {1, 1, 1, 1}, {0, 1}, "BatchNormalization:1,ConvTranspose:1,Relu:1"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(Concat(ShapeText(c.kernel), " by ", ShapeText(c.strides)));
    OnnxBuilder builder;
    builder.Input("x", {-1, 3, 7, 9})
        .Floats("w", {3, 2, c.kernel[0], c.kernel[1]}, Weights(6 * c.kernel[0] * c.kernel[1]));
    builder.Floats("b", {2}, {0.5f, -0.25f}).Floats("s", {2}, {1.5f, 0.5f}).Floats("m", {2}, {0.25f, 0.125f});
    builder.Node("ConvTranspose", {"x", "w", "b"}, {"c"},
                 {{"strides", c.strides}, {"pads", c.pads}, {"output_padding", c.added}});
    builder.Node("BatchNormalization", {"c", "s", "b", "m", "s"}, {"n"}).Node("Relu", {"n"}, {"y"}).Output("y");
    const RegionalProgram regional = Plan(builder);
    EXPECT_EQ(regional.program->OperatorCounts(), c.interpreted);
    ExpectSame(regional, {{2, 3, 7, 9}});
  }
}

// The second one of two is computed before the first one's blocks where that is less to move.
TEST_F(PlanRegionsTest, TransposedConvolutionsFollowEachOther) {
  struct Case {
    int64_t first, second, outputs;  // steps, and what the second one computes
  };
  for (const Case& c : {Case{2, 2, 1}, Case{3, 2, 2}, Case{2, 3, 1}, Case{2, 2, 3}}) {
    SCOPED_TRACE(Concat(c.first, " then ", c.second, " to ", c.outputs));
    OnnxBuilder builder;
    builder.Input("x", {-1, 3, 5, 7}).Floats("b", {9}, Weights(9)).Floats("d", {c.outputs}, Weights(c.outputs));
    builder.Floats("w", {3, 9, c.first, c.first}, Weights(27 * c.first * c.first));
    builder.Floats("v", {9, c.outputs, c.second, c.second}, Weights(9 * c.outputs * c.second * c.second));
    builder.Node("ConvTranspose", {"x", "w", "b"}, {"c"}, {{"strides", std::vector<int64_t>{c.first, c.first}}});
    builder.Node("Relu", {"c"}, {"r"});
    builder.Node("ConvTranspose", {"r", "v", "d"}, {"e"}, {{"strides", std::vector<int64_t>{c.second, c.second}}});
    builder.Node("Sigmoid", {"e"}, {"y"}).Output("y");
    const RegionalProgram regional = Plan(builder);
    EXPECT_EQ(regional.program->OperatorCounts(), "");
    ExpectSame(regional, {{2, 3, 5, 7}});
  }
}

TEST_F(PlanRegionsTest, RowsThatDifferBetweenInputsAreInterpreted) {
  OnnxBuilder builder;
  builder.Input("a", {-1, 6}).Input("b", {-1, 6}).Floats("w", {6, 6}, Weights(36));
  builder.Node("MatMul", {"a", "w"}, {"m"}).Node("Tan", {"b"}, {"t"}).Node("Add", {"m", "t"}, {"y"}).Output("y");
  const RegionalProgram regional = Plan(builder);
  ASSERT_EQ(regional.regions.size(), 1u) << regional.unplanned;
  ExpectSame(regional, {{4, 6}, {4, 6}});
}

// The size of a layer's results is known beforehand, and nothing else is read of them; the layer reads its inputs.
TEST_F(PlanRegionsTest, LayersOfWhichSizesAloneAreReadRun) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 12, 8, 7}).Floats("w", {1, 8}, Weights(8)).Int64s("third", {1}, {2});
  builder.Node("GlobalAveragePool", {"x"}, {"pooled"}).Node("MatMul", {"pooled", "w"}, {"h"});
  builder.Node("Shape", {"h"}, {"shape"}).Node("Gather", {"shape", "third"}, {"size"});
  builder.Node("Cast", {"size"}, {"y"}, {{"to", int64_t{1}}}).Output("y");
  ExpectSame(Plan(builder), {{3, 12, 8, 7}});
}

TEST_F(PlanRegionsTest, AProgramWithoutWeightsStaysAsItIs) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 4}).Node("Tan", {"x"}, {"y"}).Output("y");
  const RegionalProgram regional = Plan(builder);
  EXPECT_TRUE(regional.regions.empty());
  EXPECT_FALSE(regional.unplanned.empty());
  EXPECT_EQ(regional.HowItRuns(), "on the interpreter, unoptimised");
  EXPECT_EQ(regional.program, program_);
}

TEST_F(PlanRegionsTest, WrittenFunctionsOfVectorsAreOfARegion) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 7, 8}).Floats("w", {8, 16}, Weights(128)).Floats("v", {16, 8}, Weights(128));
  builder.Floats("scale", {8}, Weights(8)).Floats("shift", {8}, Weights(8));
  builder.Floats("two", {}, {2}).Floats("root", {}, {1.41421356f}).Floats("one", {}, {1}).Floats("half", {}, {0.5f});
  builder.Floats("epsilon", {}, {1e-5f});
  const std::map<std::string, Attribute> last = {{"axes", std::vector<int64_t>{-1}}};
  builder.Node("ReduceMean", {"x"}, {"mean"}, last).Node("Sub", {"x", "mean"}, {"centred"});
  builder.Node("Pow", {"centred", "two"}, {"squares"}).Node("ReduceMean", {"squares"}, {"variance"}, last);
  builder.Node("Add", {"variance", "epsilon"}, {"sum"}).Node("Sqrt", {"sum"}, {"deviation"});
  builder.Node("Div", {"centred", "deviation"}, {"unit"}).Node("Mul", {"unit", "scale"}, {"scaled"});
  builder.Node("Add", {"scaled", "shift"}, {"norm"}).Node("MatMul", {"norm", "w"}, {"m"});
  builder.Node("Div", {"m", "root"}, {"d"}).Node("Erf", {"d"}, {"e"}).Node("Add", {"e", "one"}, {"f"});
  builder.Node("Mul", {"m", "f"}, {"g"}).Node("Mul", {"g", "half"}, {"gelu"}).Node("MatMul", {"gelu", "v"}, {"n"});
  builder.Node("Add", {"n", "x"}, {"y"}).Output("y");
  const RegionalProgram regional = Plan(builder);
  ASSERT_EQ(regional.regions.size(), 1u) << regional.unplanned;
  EXPECT_EQ(regional.program->interpreted_nodes(), 0u) << regional.program->OperatorCounts();
  ExpectSame(regional, {{2, 7, 8}});
}

// x / sqrt(mean(x^2) + epsilon) * scale, as T5 has it: `inverse` of the root, by which x is multiplied, or none.
OnnxBuilder WrittenRms(const std::string& inverse, const std::string& squared) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 7, 8}).Floats("w", {8, 16}, Weights(128)).Floats("scale", {8}, Weights(8));
  builder.Floats("two", {}, {2}).Floats("one", {}, {1}).Floats("epsilon", {}, {1e-3f}).Floats("c", {8}, Weights(8));
  builder.Node("Add", {"x", "c"}, {"sum"});
  if (squared != "sum") builder.Node("Add", {"x", "c"}, {squared});
  builder.Node("Pow", {squared, "two"}, {"squares"});
  builder.Node("ReduceMean", {"squares"}, {"mean"}, {{"axes", std::vector<int64_t>{-1}}});
  builder.Node("Add", {"mean", "epsilon"}, {"m"}).Node("Sqrt", {"m"}, {"root"});
  if (inverse.empty()) {
    builder.Node("Div", {"sum", "root"}, {"unit"});
  } else {
    builder.Node(inverse, inverse == "Div" ? std::vector<std::string>{"one", "root"} : std::vector<std::string>{"root"},
                 {"i"});
    builder.Node("Mul", {"sum", "i"}, {"unit"});
  }
  builder.Node("Mul", {"scale", "unit"}, {"norm"}).Node("MatMul", {"norm", "w"}, {"y"}).Output("y");
  return builder;
}

TEST_F(PlanRegionsTest, RootMeanSquaresNormaliseInARegion) {
  for (const std::string inverse : {"", "Div", "Reciprocal"}) {
    const RegionalProgram regional = Plan(WrittenRms(inverse, "sum"));
    ASSERT_EQ(regional.regions.size(), 1u) << inverse << ": " << regional.unplanned;
    EXPECT_EQ(regional.program->interpreted_nodes(), 0u) << inverse << ": " << regional.program->OperatorCounts();
    ExpectSame(regional, {{2, 7, 8}});
  }
}

TEST_F(PlanRegionsTest, TheMeanSquareOfSomethingElseNormalisesNothing) {
  const RegionalProgram regional = Plan(WrittenRms("", "twin"));
  EXPECT_NE(regional.program->OperatorCounts().find("Sqrt:1"), std::string::npos);
  ExpectSame(regional, {{2, 7, 8}});
}

TEST_F(PlanRegionsTest, NormsWithoutAShiftAreOfARegion) {
  for (const std::string op : {"LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization"}) {
    OnnxBuilder builder(23);
    builder.Input("x", {-1, 7, 8}).Floats("w", {8, 16}, Weights(128)).Floats("scale", {8}, Weights(8));
    builder.Node(op, {"x", "scale"}, {"norm"}, {{"epsilon", 1e-3f}}).Node("MatMul", {"norm", "w"}, {"y"}).Output("y");
    const RegionalProgram regional = Plan(builder);
    ASSERT_EQ(regional.regions.size(), 1u) << op << ": " << regional.unplanned;
    EXPECT_EQ(regional.program->interpreted_nodes(), 0u) << op << ": " << regional.program->OperatorCounts();
    ExpectSame(regional, {{2, 7, 8}});
  }
}

// What looks like GELU, but is not.
TEST_F(PlanRegionsTest, OtherFunctionsAreLeftAsTheyAre) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 8}).Floats("w", {8, 16}, Weights(128)).Floats("root", {}, {1.5f}).Floats("one", {}, {1});
  builder.Node("MatMul", {"x", "w"}, {"m"}).Node("Div", {"m", "root"}, {"d"}).Node("Erf", {"d"}, {"e"});
  builder.Node("Add", {"e", "one"}, {"f"}).Node("Mul", {"m", "f"}, {"y"}).Output("y");
  const RegionalProgram regional = Plan(builder);
  EXPECT_NE(regional.program->OperatorCounts().find("Erf:1"), std::string::npos);
  ExpectSame(regional, {{5, 8}});
}

// Two heads of four channels; `order` of the keys, `mask` for what is added to the scores, if anything.
OnnxBuilder AttentionOf(const std::vector<int64_t>& order, const Shape& mask) {
  OnnxBuilder builder;
  builder.Input("x", {-1, -1, 8}).Input("z", {-1, -1, 8}).Floats("scale", {}, {0.5f});
  builder.Int64s("heads", {4}, {0, -1, 2, 4}).Int64s("joined", {3}, {0, -1, 8});
  for (const std::string name : {"q", "k", "v"}) {
    builder.Floats("w" + name, {8, 8}, Weights(64)).Node("MatMul", {name == "q" ? "x" : "z", "w" + name}, {name + "1"});
    builder.Node("Reshape", {name + "1", "heads"}, {name + "2"});
    const std::vector<int64_t> others = {0, 2, 1, 3};
    builder.Node("Transpose", {name + "2"}, {name + "3"}, {{"perm", name == "k" ? order : others}});
  }
  builder.Node("MatMul", {"q3", "k3"}, {"product"}).Node("Mul", {"scale", "product"}, {"scores"});
  std::string scores = "scores";
  if (!mask.empty()) {
    builder.Floats("mask", mask, Weights(*ElementCount(mask))).Node("Add", {"mask", "scores"}, {"masked"});
    scores = "masked";
  }
  builder.Node("Softmax", {scores}, {"powers"}, {{"axis", int64_t{-1}}}).Node("MatMul", {"powers", "v3"}, {"sums"});
  builder.Node("Transpose", {"sums"}, {"tokens"}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
  builder.Node("Reshape", {"tokens", "joined"}, {"y"}).Output("y");
  return builder;
}

TEST_F(PlanRegionsTest, AttentionIsOneCall) {
  const RegionalProgram regional = Plan(AttentionOf({0, 2, 3, 1}, {}));
  EXPECT_EQ(regional.program->OperatorCounts(), "Reshape:4");
  for (const int64_t keys : {1, 9, 200}) ExpectSame(regional, {{3, 9, 8}, {3, keys, 8}});
}

TEST_F(PlanRegionsTest, AttentionMayCountItsAxesFromTheEnd) {
  const RegionalProgram regional = Plan(AttentionOf({0, 2, -1, 1}, {}));
  EXPECT_EQ(regional.program->OperatorCounts(), "Reshape:4");
  ExpectSame(regional, {{3, 9, 8}, {3, 5, 8}});
}

TEST_F(PlanRegionsTest, WhatIsAddedToScoresIsOfAttention) {
  for (const Shape& mask : {Shape{64}, Shape{2, 64, 64}, Shape{2, 1, 64}, Shape{1, 1, 64, 64}}) {
    const RegionalProgram regional = Plan(AttentionOf({0, 2, 3, 1}, mask));
    EXPECT_EQ(regional.program->OperatorCounts(), "Reshape:4") << ShapeText(mask);
    ExpectSame(regional, {{2, 64, 8}, {2, 64, 8}});
  }
}

TEST_F(PlanRegionsTest, AttentionThatBroadcastsIsInterpreted) {
  const RegionalProgram regional = Plan(AttentionOf({0, 2, 3, 1}, {}));
  ExpectSame(regional, {{3, 9, 8}, {1, 5, 8}});
}

TEST_F(PlanRegionsTest, ScoresThatSomethingElseReadsStay) {
  OnnxBuilder builder = AttentionOf({0, 2, 3, 1}, {});
  builder.Output("powers");
  const RegionalProgram regional = Plan(builder);
  EXPECT_NE(regional.program->OperatorCounts().find("Softmax:1"), std::string::npos);
  ExpectSame(regional, {{3, 9, 8}, {3, 5, 8}});
}

}  // namespace
}  // namespace swizzle::regions

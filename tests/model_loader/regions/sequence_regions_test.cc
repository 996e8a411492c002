#include "model_loader/regions/sequence_regions.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/model_loader/regions/region_encoders.h"
#include "tests/support/counting_gate.h"

namespace swizzle::regions {
namespace {

using swizzle::testing::IsOk;
using swizzle::testing::OnnxBuilder;

class SequenceRegionsTest : public RegionEncoders {};

TEST_F(SequenceRegionsTest, AnEncoderIsOneRegionForAnyBatch) {
  OnnxBuilder builder = Starting({-1, 7, kChannels});
  builder.Output(TwoLayers(builder, "x"));
  const RegionalProgram regional = Plan(builder);
  ExpectOneRegion(regional);
  EXPECT_EQ(regional.regions[0]->plan()->network().sequences->length, 7);
  for (const int64_t batch : {1, 3, 150}) ExpectSame(regional, {{batch, 7, kChannels}});
}

TEST_F(SequenceRegionsTest, AnEncoderTakesAnyLengthWhereThatIsFree) {
  OnnxBuilder builder = Starting({-1, -1, kChannels});
  builder.Output(TwoLayers(builder, "x"));
  const RegionalProgram regional = Plan(builder);
  ExpectOneRegion(regional);
  for (const int64_t length : {1, 5, 300}) ExpectSame(regional, {{3, length, kChannels}});
  ExpectSame(regional, {{70, 9, kChannels}});
}

TEST_F(SequenceRegionsTest, AnEncoderOfAFixedBatchIsOneRegion) {
  OnnxBuilder builder = Starting({2, 7, kChannels});
  builder.Int64s("all", {4}, {2, 7, 2, 4});
  builder.Output(TwoLayers(builder, "x", "all"));
  const RegionalProgram regional = Plan(builder);
  ExpectOneRegion(regional);
  ExpectSame(regional, {{2, 7, kChannels}});
}

TEST_F(SequenceRegionsTest, OneLayerIsNone) {
  OnnxBuilder builder = Starting({-1, 7, kChannels});
  builder.Output(Layer(builder, "x", "x", "a"));
  const RegionalProgram regional = Plan(builder);
  EXPECT_EQ(regional.program->OperatorCounts(), "Add:1,Reshape:4");
  ExpectSame(regional, {{3, 7, kChannels}});
}

// Sizes that a graph computes for its Reshapes are computed no more.
TEST_F(SequenceRegionsTest, ShapesAreOfTheRegionThatAloneReadsThem) {
  OnnxBuilder builder = Starting({-1, -1, kChannels});
  builder.Node("Shape", {"x"}, {"shape"}).Int64s("two", {2}, {0, 1}).Int64s("rest", {2}, {2, 4});
  builder.Node("Gather", {"shape", "two"}, {"leading"})
      .Node("Concat", {"leading", "rest"}, {"all"}, {{"axis", int64_t{0}}});
  builder.Output(TwoLayers(builder, "x", "all"));
  const RegionalProgram regional = Plan(builder);
  ExpectOneRegion(regional);
  ExpectSame(regional, {{3, 6, kChannels}});
}

// Behind the encoder tokens become planes, whose sizes begin with the batch that all its Reshapes read.
TEST_F(SequenceRegionsTest, WhatLeavesARegionTakesNoOtherReadersOfASizeWithIt) {
  OnnxBuilder builder = Starting({-1, 16, kChannels});
  builder.Node("Shape", {"x"}, {"shape"}).Int64s("zero", {1}, {0}).Node("Gather", {"shape", "zero"}, {"batch"});
  builder.Int64s("apart", {3}, {16, 2, 4}).Node("Concat", {"batch", "apart"}, {"all"}, {{"axis", int64_t{0}}});
  builder.Int64s("plane", {3}, {kChannels, 4, 4})
      .Node("Concat", {"batch", "plane"}, {"planes"}, {{"axis", int64_t{0}}});
  builder.Node("Transpose", {TwoLayers(builder, "x", "all")}, {"t"}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
  builder.Node("Reshape", {"t", "planes"}, {"image"}).Floats("w", {4, kChannels, 1, 1}, Weights(4 * kChannels));
  builder.Node("Conv", {"image", "w"}, {"y"}).Output("y");
  const RegionalProgram regional = Plan(builder);
  ASSERT_EQ(regional.regions.size(), 2u) << regional.unplanned;
  EXPECT_TRUE(regional.regions[0]->plan()->network().sequences.has_value());
  ExpectSame(regional, {{3, 16, kChannels}});
}

// As in wav2vec 2.0, whose positions are a convolution of the tokens that they are added to.
TEST_F(SequenceRegionsTest, WhatIsNotUnderstoodMakesAnInput) {
  OnnxBuilder builder = Starting({-1, -1, kChannels});
  Linear(builder, "x", "h");
  builder.Node("CumSum", {"h", "one"}, {"positions"}).Int64s("one", {1}, {1}).Node("Add", {"h", "positions"}, {"sum"});
  builder.Output(TwoLayers(builder, "sum"));
  const RegionalProgram regional = Plan(builder);
  ASSERT_EQ(regional.regions.size(), 2u) << regional.unplanned;
  EXPECT_EQ(regional.regions[1]->plan()->network().inputs.size(), 2u) << "what is added, and to what";
  EXPECT_EQ(regional.program->OperatorCounts(), "CumSum:1");
  ExpectSame(regional, {{3, 6, kChannels}});
}

TEST_F(SequenceRegionsTest, TokensMayLeaveInAnotherOrder) {
  OnnxBuilder builder = Starting({-1, 7, kChannels});
  builder.Node("Transpose", {TwoLayers(builder, "x")}, {"planes"}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
  builder.Floats("wide", {4, kChannels, 3}, Weights(96)).Node("Conv", {"planes", "wide"}, {"y"}).Output("y");
  const RegionalProgram regional = Plan(builder);
  EXPECT_EQ(regional.program->OperatorCounts().find("Softmax"), std::string::npos);
  ExpectSame(regional, {{3, 7, kChannels}});
}

TEST_F(SequenceRegionsTest, RegionsEndInRows) {
  for (const std::string op : {"Gather", "ReduceMean"}) {
    OnnxBuilder builder = Starting({-1, 7, kChannels});
    const std::string tokens = TwoLayers(builder, "x");
    builder.Int64s("first", {}, {0});
    if (op == "Gather") {
      builder.Node(op, {tokens, "first"}, {"row"}, {{"axis", int64_t{1}}});
    } else {
      builder.Node(op, {tokens}, {"row"}, {{"axes", std::vector<int64_t>{1}}, {"keepdims", int64_t{0}}});
    }
    Linear(builder, "row", "y");
    builder.Output("y");
    const RegionalProgram regional = Plan(builder);
    ASSERT_EQ(regional.regions.size(), 1u) << op << regional.unplanned;
    EXPECT_EQ(regional.program->OperatorCounts(), "") << op;
    ExpectSame(regional, {{3, 7, kChannels}});
  }
}

// Lengths that the model leaves free are not the same, be they alike in every run so far.
TEST_F(SequenceRegionsTest, TokensOfOtherLengthsAreOfNoRegion) {
  OnnxBuilder builder = Starting({-1, -1, kChannels});
  builder.Input("z", {-1, -1, kChannels});
  const std::string first = Layer(builder, "x", "z", "a");
  builder.Output(Layer(builder, first, "z", "b"));
  const RegionalProgram regional = Plan(builder);
  EXPECT_EQ(regional.program->OperatorCounts(), "Add:2,Reshape:8");
  ExpectSame(regional, {{3, 9, kChannels}, {3, 5, kChannels}});
}

// A size that others read, too, is made outside, and what needs it is not of the region that it is the size of.
TEST_F(SequenceRegionsTest, NoWayLeadsOutOfARegionAndBackThroughSizes) {
  OnnxBuilder builder = Starting({-1, -1, kChannels});
  const std::string two = TwoLayers(builder, "x");
  builder.Node("Shape", {two}, {"shape"}).Int64s("leading", {2}, {0, 1}).Int64s("rest", {2}, {2, 4});
  builder.Node("Gather", {"shape", "leading"}, {"ends"})
      .Node("Concat", {"ends", "rest"}, {"all"}, {{"axis", int64_t{0}}});
  const std::string third = Layer(builder, two, two, "c", "all");
  const std::string last = Layer(builder, third, third, "d", "all");
  builder.Output(last).Output("shape");
  const RegionalProgram regional = Plan(builder);
  ExpectSame(regional, {{3, 6, kChannels}});
}

// Two encoders, of which the second reads what a convolution makes of what the first's input is made of, and another
// convolution both: as one region they would wait for theirs, which waits for them.
TEST_F(SequenceRegionsTest, RegionsDoNotWaitForEachOther) {
  OnnxBuilder builder = Starting({-1, 7, kChannels});
  builder.Floats("wide", {7, 7, 1}, Weights(49)).Floats("both", {4, 14, 1}, Weights(56));
  builder.Int64s("one", {1}, {1}).Node("CumSum", {"x", "one"}, {"t"});
  const std::string d = TwoLayers(builder, "t");
  builder.Node("Conv", {"x", "wide"}, {"aa"});
  std::string c = Layer(builder, "aa", "aa", "c");
  c = Layer(builder, c, c, "e");
  builder.Node("Concat", {"aa", d}, {"joined2"}, {{"axis", int64_t{1}}}).Node("Conv", {"joined2", "both"}, {"y"});
  builder.Output("y").Output(c);
  const RegionalProgram regional = Plan(builder);
  ExpectSame(regional, {{3, 7, kChannels}});
}

// Regions end in FP32: what is cast to another type is cast outside.
TEST_F(SequenceRegionsTest, OutputsKeepTheirTypes) {
  OnnxBuilder builder = Starting({-1, 7, kChannels});
  builder.Node("Cast", {TwoLayers(builder, "x")}, {"y"}, {{"to", int64_t{onnx::TensorProto::DOUBLE}}}).Output("y");
  const RegionalProgram regional = Plan(builder);
  const auto made = Run(*regional.program, {{3, 7, kChannels}});
  ASSERT_THAT(made, IsOk());
  EXPECT_EQ(made->dtype, DType::kFloat64);
  EXPECT_EQ(regional.program->OperatorCounts(), "Cast:1");
}

// As in torchvision's Swin: activations stay [batch, height, width, channels], and their mean is taken of planes.
TEST_F(SequenceRegionsTest, PositionsMayBeHeightAndWidth) {
  OnnxBuilder builder = Patches();
  builder.Node("Transpose", {"planes"}, {"plane"}, {{"perm", std::vector<int64_t>{0, 2, 3, 1}}});
  builder.Node("LayerNormalization", {"plane", "ones"}, {"normed"}, {{"axis", int64_t{-1}}});
  builder.Int64s("flat", {3}, {0, -1, kChannels}).Node("Reshape", {"normed", "flat"}, {"tokens"});
  builder.Int64s("square", {4}, {0, 2, 2, kChannels});
  builder.Node("Reshape", {TwoLayers(builder, "tokens"), "square"}, {"back"}).Node("Add", {"back", "plane"}, {"sum"});
  builder.Node("Transpose", {"sum"}, {"channels"}, {{"perm", std::vector<int64_t>{0, 3, 1, 2}}});
  builder.Node("GlobalAveragePool", {"channels"}, {"mean"}).Output("mean").Output("sum");
  const RegionalProgram regional = Plan(builder);
  ExpectOneRegion(regional);
  for (const int64_t batch : {1, 3}) ExpectSame(regional, {{batch, 3, 8, 8}});
}

TEST_F(SequenceRegionsTest, AMeanMayBeOverHeightAndWidth) {
  for (const int64_t kept : {0, 1}) {
    OnnxBuilder builder = Starting({-1, 3, 2, kChannels});
    builder.Int64s("flat", {3}, {0, -1, kChannels}).Node("Reshape", {"x", "flat"}, {"tokens"});
    builder.Int64s("square", {4}, {0, 3, 2, kChannels})
        .Node("Reshape", {TwoLayers(builder, "tokens"), "square"}, {"b"});
    builder.Node("ReduceMean", {"b"}, {"mean"}, {{"axes", std::vector<int64_t>{1, 2}}, {"keepdims", kept}});
    builder.Output("mean");
    const RegionalProgram regional = Plan(builder);
    ExpectOneRegion(regional);
    ExpectSame(regional, {{3, 3, 2, kChannels}});
  }
}

// A mean over one of both is none of all tokens.
TEST_F(SequenceRegionsTest, AMeanOverOneOfHeightAndWidthIsOutside) {
  OnnxBuilder builder = Starting({-1, 3, 2, kChannels});
  builder.Int64s("flat", {3}, {0, -1, kChannels}).Node("Reshape", {"x", "flat"}, {"tokens"});
  builder.Int64s("square", {4}, {0, 3, 2, kChannels}).Node("Reshape", {TwoLayers(builder, "tokens"), "square"}, {"b"});
  builder.Node("ReduceMean", {"b"}, {"mean"}, {{"axes", std::vector<int64_t>{1}}});
  builder.Output("mean");
  const RegionalProgram regional = Plan(builder);
  EXPECT_EQ(regional.regions.size(), 1u) << regional.unplanned;
  EXPECT_EQ(regional.program->OperatorCounts(), "ReduceMean:1");
  ExpectSame(regional, {{3, 3, 2, kChannels}});
}

// As in Swin V2.
TEST_F(SequenceRegionsTest, HeadsMayHaveScalesOfTheirOwn) {
  OnnxBuilder builder = Starting({-1, 7, kChannels}, {0.5f, 3.0f});
  builder.Output(TwoLayers(builder, "x"));
  const RegionalProgram regional = Plan(builder);
  ExpectOneRegion(regional);
  ExpectSame(regional, {{3, 7, kChannels}});
}

TEST_F(SequenceRegionsTest, AMeanMayLeaveOutTheFirstTokens) {
  for (const int64_t first : {1, 3}) {
    OnnxBuilder builder = Starting({-1, 7, kChannels});
    builder.Int64s("from", {1}, {first}).Int64s("to", {1}, {1000}).Int64s("axis", {1}, {1});
    builder.Node("Slice", {TwoLayers(builder, "x"), "from", "to", "axis"}, {"part"});
    builder.Node("ReduceMean", {"part"}, {"mean"}, {{"axes", std::vector<int64_t>{1}}, {"keepdims", int64_t{0}}});
    builder.Output("mean");
    const RegionalProgram regional = Plan(builder);
    ExpectOneRegion(regional);
    ExpectSame(regional, {{3, 7, kChannels}});
  }
}

// A part stays one in another shape.
TEST_F(SequenceRegionsTest, SomeTokensInAnotherShapeAreNotAll) {
  OnnxBuilder builder = Starting({-1, 7, kChannels});
  builder.Int64s("from", {1}, {1}).Int64s("to", {1}, {1000}).Int64s("axis", {1}, {1}).Int64s("six", {4}, {0, 6, 2, 4});
  builder.Node("Slice", {TwoLayers(builder, "x"), "from", "to", "axis"}, {"part"})
      .Node("Reshape", {"part", "six"}, {"h"});
  builder.Node("ReduceMean", {"h"}, {"mean"}, {{"axes", std::vector<int64_t>{1}}}).Output("mean");
  const RegionalProgram regional = Plan(builder);
  ExpectOneRegion(regional);  // whose mean leaves out the first token, too
  ExpectSame(regional, {{3, 7, kChannels}});
}

// What else reads some of the tokens is outside.
TEST_F(SequenceRegionsTest, SomeTokensAreTakenOutside) {
  OnnxBuilder builder = Starting({-1, 7, kChannels});
  builder.Int64s("from", {1}, {4}).Int64s("to", {1}, {1000}).Int64s("axis", {1}, {1});
  builder.Node("Slice", {TwoLayers(builder, "x"), "from", "to", "axis"}, {"part"}).Node("Relu", {"part"}, {"y"});
  builder.Output("y");
  const RegionalProgram regional = Plan(builder);
  EXPECT_EQ(regional.regions.size(), 1u) << regional.unplanned;
  EXPECT_EQ(regional.program->OperatorCounts(), "Relu:1,Slice:1");
  ExpectSame(regional, {{3, 7, kChannels}});
}

// As in SigLIP: one query, the same for all, attends to all tokens. The batch is asked of the image.
TEST_F(SequenceRegionsTest, OneQueryMayAttendToAllTokens) {
  for (const std::string repeats : {"Tile", "Expand"}) {
    OnnxBuilder builder = Patches();
    builder.Node("Reshape", {"planes", "rows"}, {"patches"});
    builder.Node("Transpose", {"patches"}, {"tokens"}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
    const std::string all = TwoLayers(builder, "tokens");
    builder.Node("Shape", {"x"}, {"shape"}).Int64s("zero", {1}, {0}).Int64s("vector", {2}, {1, 1});
    builder.Node("Gather", {"shape", "zero"}, {"batch"}).Floats("probe", {1, 1, kChannels}, Weights(8));
    builder.Node("Concat", {"batch", "vector"}, {"sizes"}, {{"axis", int64_t{0}}});
    builder.Node(repeats, {"probe", "sizes"}, {"probes"}).Floats("shift2", {kChannels}, Weights(8));
    Linear(builder, "probes", "q");
    builder.Node("Add", {"q", "shift2"}, {"q1"}).Node("Mul", {"q1", "scale"}, {"q2"});
    for (const std::string part : {"k", "v"}) Linear(builder, all, part);
    for (const std::string part : {"q2", "k", "v"}) {
      builder.Node("Reshape", {part, "heads"}, {part + "h"});
      builder.Node("Transpose", {part + "h"}, {part + "t"},
                   {{"perm", part == "k" ? std::vector<int64_t>{0, 2, 3, 1} : std::vector<int64_t>{0, 2, 1, 3}}});
    }
    builder.Node("MatMul", {"q2t", "kt"}, {"scores"}).Node("Softmax", {"scores"}, {"powers"}, {{"axis", int64_t{-1}}});
    builder.Node("MatMul", {"powers", "vt"}, {"sums"});
    builder.Node("Transpose", {"sums"}, {"pooled"}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
    builder.Node("Reshape", {"pooled", "joined"}, {"one"}).Output("one");
    const RegionalProgram regional = Plan(builder);
    ExpectOneRegion(regional);
    for (const int64_t batch : {1, 3}) ExpectSame(regional, {{batch, 3, 8, 8}});
  }
}

// A length is asked for in lists that may hold nothing, as the exporter of torch.nn.MultiheadAttention does.
TEST_F(SequenceRegionsTest, ShapesMayBeJoinedWithNothing) {
  OnnxBuilder builder = Starting({-1, 7, kChannels});
  builder.Node("Shape", {"x"}, {"shape"}).Int64s("nought", {1}, {0}).Int64s("two", {1}, {2}).Int64s("three", {1}, {3});
  builder.Int64s("end", {1}, {1000}).Int64s("split", {2}, {2, 4});
  builder.Node("Slice", {"shape", "nought", "two"}, {"leading"}).Node("Slice", {"shape", "three", "end"}, {"nothing"});
  builder.Node("Concat", {"leading", "split", "nothing"}, {"all"}, {{"axis", int64_t{0}}});
  builder.Output(TwoLayers(builder, "x", "all"));
  const RegionalProgram regional = Plan(builder);
  ExpectOneRegion(regional);
  ExpectSame(regional, {{3, 7, kChannels}});
}

TEST_F(SequenceRegionsTest, AsksAGateBetweenSteps) {
  OnnxBuilder builder = Starting({-1, 7, kChannels});
  builder.Output(TwoLayers(builder, "x"));
  const RegionalProgram regional = Plan(builder);
  swizzle::testing::CountingGate gate;
  ASSERT_THAT(Run(*regional.program, {{3, 7, kChannels}}, {}, &gate), IsOk());
  EXPECT_GE(gate.asked, 9) << "once before each operator";
}

}  // namespace
}  // namespace swizzle::regions

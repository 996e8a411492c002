#include "model_loader/regions/sequence_regions.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/model_loader/regions/planned_programs.h"
#include "tests/support/counting_gate.h"

namespace swizzle::regions {
namespace {

using swizzle::testing::IsOk;
using swizzle::testing::OnnxBuilder;

constexpr int64_t kChannels = 8;

// Encoders whose tokens come from elsewhere, of two heads of four channels.
class SequenceRegionsTest : public PlannedPrograms {
 protected:
  OnnxBuilder Starting(const Shape& shape) {
    OnnxBuilder builder;
    builder.Input("x", shape).Floats("scale", {}, {0.5f}).Floats("ones", {kChannels}, std::vector<float>(8, 1.0f));
    builder.Int64s("heads", {4}, {0, -1, 2, 4}).Int64s("joined", {3}, {0, -1, kChannels});
    return builder;
  }

  void Linear(OnnxBuilder& builder, const std::string& from, const std::string& to) {
    builder.Floats("w" + to, {kChannels, kChannels}, Weights(64)).Node("MatMul", {from, "w" + to}, {to});
  }

  // Attention of `from` to `keys`, with a residual and a norm behind it; heads are told apart as `heads` says.
  std::string Layer(OnnxBuilder& builder, const std::string& from, const std::string& keys, const std::string& name,
                    const std::string& heads = "heads") {
    for (const std::string part : {"q", "k", "v"}) {
      Linear(builder, part == "q" ? from : keys, name + part);
      builder.Node("Reshape", {name + part, heads}, {name + part + "2"});
      builder.Node("Transpose", {name + part + "2"}, {name + part + "3"},
                   {{"perm", part == "k" ? std::vector<int64_t>{0, 2, 3, 1} : std::vector<int64_t>{0, 2, 1, 3}}});
    }
    builder.Node("MatMul", {name + "q3", name + "k3"}, {name + "product"});
    builder.Node("Mul", {name + "product", "scale"}, {name + "scores"});
    builder.Node("Softmax", {name + "scores"}, {name + "powers"}, {{"axis", int64_t{-1}}});
    builder.Node("MatMul", {name + "powers", name + "v3"}, {name + "sums"});
    builder.Node("Transpose", {name + "sums"}, {name + "tokens"}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
    builder.Node("Reshape", {name + "tokens", "joined"}, {name + "attended"});
    builder.Node("Add", {name + "attended", from}, {name + "sum"});
    builder.Node("LayerNormalization", {name + "sum", "ones"}, {name + "norm"}, {{"axis", int64_t{-1}}});
    return name + "norm";
  }

  // Four patches of an image [3, 8, 8], as planes.
  OnnxBuilder Patches(int64_t batch = -1) {
    OnnxBuilder builder = Starting({batch, 3, 8, 8});
    builder.Floats("patch", {kChannels, 3, 4, 4}, Weights(kChannels * 48)).Floats("shift", {kChannels}, Weights(8));
    builder.Node("Conv", {"x", "patch", "shift"}, {"planes"}, {{"strides", std::vector<int64_t>{4, 4}}});
    builder.Int64s("rows", {3}, {0, kChannels, -1});
    return builder;
  }

  // The planes as tokens behind a class token, positions added.
  std::string WithClassToken(OnnxBuilder& builder) {
    builder.Node("Reshape", {"planes", "rows"}, {"patches"});
    builder.Node("Transpose", {"patches"}, {"tokens"}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
    builder.Node("Shape", {"x"}, {"shape"}).Int64s("zero", {1}, {0}).Int64s("vector", {2}, {1, kChannels});
    builder.Node("Gather", {"shape", "zero"}, {"batch"}).Floats("class", {1, 1, kChannels}, Weights(8));
    builder.Node("Concat", {"batch", "vector"}, {"sizes"}, {{"axis", int64_t{0}}});
    builder.Node("Expand", {"class", "sizes"}, {"classes"});
    builder.Node("Concat", {"classes", "tokens"}, {"all"}, {{"axis", int64_t{1}}});
    builder.Floats("positions", {1, 5, kChannels}, Weights(40)).Node("Add", {"all", "positions"}, {"placed"});
    return "placed";
  }

  std::string TwoLayers(OnnxBuilder& builder, const std::string& from, const std::string& heads = "heads") {
    const std::string first = Layer(builder, from, from, "a", heads);
    return Layer(builder, first, first, "b", heads);
  }
};

TEST_F(SequenceRegionsTest, AnEncoderIsOneRegionForAnyBatch) {
  OnnxBuilder builder = Starting({-1, 7, kChannels});
  builder.Output(TwoLayers(builder, "x"));
  const RegionalProgram regional = Plan(builder);
  ASSERT_EQ(regional.regions.size(), 1u) << regional.unplanned;
  EXPECT_EQ(regional.program->OperatorCounts(), "");
  EXPECT_EQ(regional.regions[0]->plan()->network().sequences->length, 7);
  for (const int64_t batch : {1, 3, 150}) ExpectSame(regional, {{batch, 7, kChannels}});
}

TEST_F(SequenceRegionsTest, AnEncoderTakesAnyLengthWhereThatIsFree) {
  OnnxBuilder builder = Starting({-1, -1, kChannels});
  builder.Output(TwoLayers(builder, "x"));
  const RegionalProgram regional = Plan(builder);
  ASSERT_EQ(regional.regions.size(), 1u) << regional.unplanned;
  EXPECT_EQ(regional.program->OperatorCounts(), "");
  for (const int64_t length : {1, 5, 300}) ExpectSame(regional, {{3, length, kChannels}});
  ExpectSame(regional, {{70, 9, kChannels}});
}

TEST_F(SequenceRegionsTest, AnEncoderOfAFixedBatchIsOneRegion) {
  OnnxBuilder builder = Starting({2, 7, kChannels});
  builder.Int64s("all", {4}, {2, 7, 2, 4});
  builder.Output(TwoLayers(builder, "x", "all"));
  const RegionalProgram regional = Plan(builder);
  ASSERT_EQ(regional.regions.size(), 1u) << regional.unplanned;
  EXPECT_EQ(regional.program->OperatorCounts(), "");
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
  ASSERT_EQ(regional.regions.size(), 1u) << regional.unplanned;
  EXPECT_EQ(regional.program->OperatorCounts(), "");
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

int64_t CountOf(const RegionalProgram& regional, Op op) {
  return std::ranges::count(regional.regions[0]->plan()->network().layers, op, &Layer::op);
}

TEST_F(SequenceRegionsTest, AnEncoderBeginsWithTheImageOfItsPatches) {
  OnnxBuilder builder = Patches();
  builder.Int64s("first", {}, {0})
      .Node("Gather", {TwoLayers(builder, WithClassToken(builder)), "first"}, {"row"}, {{"axis", int64_t{1}}});
  builder.Output("row");
  const RegionalProgram regional = Plan(builder);
  ASSERT_EQ(regional.regions.size(), 1u) << regional.unplanned;
  EXPECT_EQ(regional.program->OperatorCounts(), "");
  EXPECT_EQ(CountOf(regional, Op::kPlaneTokens), 1);
  EXPECT_EQ(CountOf(regional, Op::kEmbedding), 0) << "its vectors hold the positions";
  for (const int64_t batch : {1, 3, 70}) ExpectSame(regional, {{batch, 3, 8, 8}});
}

TEST_F(SequenceRegionsTest, AnEncoderOfAFixedBatchBeginsWithItsImages) {
  OnnxBuilder builder = Patches(2);
  builder.Output(TwoLayers(builder, WithClassToken(builder)));
  const RegionalProgram regional = Plan(builder);
  ASSERT_EQ(regional.regions.size(), 1u) << regional.unplanned;
  EXPECT_EQ(regional.program->OperatorCounts(), "");
  ExpectSame(regional, {{2, 3, 8, 8}});
}

TEST_F(SequenceRegionsTest, PatchesMayLieChannelsLast) {
  OnnxBuilder builder = Patches();
  builder.Node("Transpose", {"planes"}, {"last"}, {{"perm", std::vector<int64_t>{0, 2, 3, 1}}});
  builder.Int64s("flat", {3}, {0, -1, kChannels}).Node("Reshape", {"last", "flat"}, {"tokens"});
  builder.Output(TwoLayers(builder, "tokens"));
  const RegionalProgram regional = Plan(builder);
  ASSERT_EQ(regional.regions.size(), 1u) << regional.unplanned;
  EXPECT_EQ(regional.program->OperatorCounts(), "");
  ExpectSame(regional, {{3, 3, 8, 8}});
}

// As in Whisper's encoder.
TEST_F(SequenceRegionsTest, AnEncoderBeginsWithTheSoundOfItsFrames) {
  OnnxBuilder builder = Starting({-1, 4, 12});
  builder.Floats("wide", {kChannels, 4, 3}, Weights(kChannels * 12));
  builder.Node("Conv", {"x", "wide"}, {"planes"}).Node("Relu", {"planes"}, {"frames"});
  builder.Node("Transpose", {"frames"}, {"tokens"}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
  builder.Floats("positions", {10, kChannels}, Weights(80)).Node("Add", {"tokens", "positions"}, {"placed"});
  builder.Output(TwoLayers(builder, "placed"));
  const RegionalProgram regional = Plan(builder);
  ASSERT_EQ(regional.regions.size(), 1u) << regional.unplanned;
  EXPECT_EQ(regional.program->OperatorCounts(), "");
  ExpectSame(regional, {{3, 4, 12}});
}

TEST_F(SequenceRegionsTest, PatchesThatOthersReadAreOfARegionOfTheirOwn) {
  OnnxBuilder builder = Patches();
  builder.Output(TwoLayers(builder, WithClassToken(builder))).Output("planes");
  const RegionalProgram regional = Plan(builder);
  ASSERT_EQ(regional.regions.size(), 2u) << regional.unplanned;
  ExpectSame(regional, {{3, 3, 8, 8}});
}

// A convolution of the planes that is added to their tokens, which the region then reads as well.
TEST_F(SequenceRegionsTest, TokensMayBeReadBesideWhatIsMadeOfThem) {
  OnnxBuilder builder = Starting({-1, 4, 12});
  builder.Floats("wide", {kChannels, 4, 3}, Weights(kChannels * 12));
  builder.Node("Conv", {"x", "wide"}, {"planes"});
  builder.Node("Transpose", {"planes"}, {"tokens"}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
  builder.Node("Transpose", {"tokens"}, {"back"}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
  builder.Floats("near", {kChannels, kChannels, 3}, Weights(kChannels * kChannels * 3));
  builder.Node("Conv", {"back", "near"}, {"moved"}, {{"pads", std::vector<int64_t>{1, 1}}});
  builder.Node("Transpose", {"moved"}, {"positions"}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
  builder.Node("Add", {"tokens", "positions"}, {"placed"});
  builder.Output(TwoLayers(builder, "placed"));
  ExpectSame(Plan(builder), {{3, 4, 12}});
}

// Each token is of its place alone where planes hold it in another order.
TEST_F(SequenceRegionsTest, PlanesInAnotherOrderAreNoTokens) {
  OnnxBuilder builder = Patches();
  builder.Node("Transpose", {"planes"}, {"turned"}, {{"perm", std::vector<int64_t>{0, 3, 2, 1}}});
  builder.Int64s("flat", {3}, {0, -1, kChannels}).Node("Reshape", {"turned", "flat"}, {"tokens"});
  builder.Output(TwoLayers(builder, "tokens"));
  const RegionalProgram regional = Plan(builder);
  ExpectSame(regional, {{3, 3, 8, 8}});
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

#include "model_loader/regions/token_stem.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/model_loader/regions/region_encoders.h"

namespace swizzle::regions {
namespace {

class TokenStemTest : public RegionEncoders {};

TEST_F(TokenStemTest, AnEncoderBeginsWithTheImageOfItsPatches) {
  OnnxBuilder builder = Patches();
  builder.Int64s("first", {}, {0})
      .Node("Gather", {TwoLayers(builder, WithClassToken(builder)), "first"}, {"row"}, {{"axis", int64_t{1}}});
  builder.Output("row");
  const RegionalProgram regional = Plan(builder);
  ExpectOneRegion(regional);
  EXPECT_EQ(CountOf(regional, Op::kPlaneTokens), 1);
  EXPECT_EQ(CountOf(regional, Op::kEmbedding), 0) << "its vectors hold the positions";
  for (const int64_t batch : {1, 3, 70}) ExpectSame(regional, {{batch, 3, 8, 8}});
}

TEST_F(TokenStemTest, AnEncoderOfAFixedBatchBeginsWithItsImages) {
  OnnxBuilder builder = Patches(2);
  builder.Output(TwoLayers(builder, WithClassToken(builder)));
  const RegionalProgram regional = Plan(builder);
  ExpectOneRegion(regional);
  ExpectSame(regional, {{2, 3, 8, 8}});
}

TEST_F(TokenStemTest, PatchesMayLieChannelsLast) {
  OnnxBuilder builder = Patches();
  builder.Node("Transpose", {"planes"}, {"last"}, {{"perm", std::vector<int64_t>{0, 2, 3, 1}}});
  builder.Int64s("flat", {3}, {0, -1, kChannels}).Node("Reshape", {"last", "flat"}, {"tokens"});
  builder.Output(TwoLayers(builder, "tokens"));
  const RegionalProgram regional = Plan(builder);
  ExpectOneRegion(regional);
  ExpectSame(regional, {{3, 3, 8, 8}});
}

// As in Whisper's encoder.
TEST_F(TokenStemTest, AnEncoderBeginsWithTheSoundOfItsFrames) {
  OnnxBuilder builder = Starting({-1, 4, 12});
  builder.Floats("wide", {kChannels, 4, 3}, Weights(kChannels * 12));
  builder.Node("Conv", {"x", "wide"}, {"planes"}).Node("Relu", {"planes"}, {"frames"});
  builder.Node("Transpose", {"frames"}, {"tokens"}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
  builder.Floats("positions", {10, kChannels}, Weights(80)).Node("Add", {"tokens", "positions"}, {"placed"});
  builder.Output(TwoLayers(builder, "placed"));
  const RegionalProgram regional = Plan(builder);
  ExpectOneRegion(regional);
  ExpectSame(regional, {{3, 4, 12}});
}

// As in DINOv2 with registers: vectors between the class token and the patches, behind the sum with positions.
TEST_F(TokenStemTest, RegistersMayStandBetweenTokens) {
  OnnxBuilder builder = Patches();
  const std::string placed = WithClassToken(builder);
  builder.Int64s("one", {1}, {1}).Int64s("end", {1}, {1000});
  builder.Node("Slice", {placed, "zero", "one", "one"}, {"head"})
      .Node("Slice", {placed, "one", "end", "one"}, {"tail"});
  builder.Floats("register", {1, 2, kChannels}, Weights(16)).Int64s("two", {2}, {2, kChannels});
  builder.Node("Concat", {"batch", "two"}, {"sizes2"}, {{"axis", int64_t{0}}});
  builder.Node("Expand", {"register", "sizes2"}, {"registers"});
  builder.Node("Concat", {"head", "registers", "tail"}, {"seven"}, {{"axis", int64_t{1}}});
  builder.Output(TwoLayers(builder, "seven"));
  const RegionalProgram regional = Plan(builder);
  ExpectOneRegion(regional);
  ExpectSame(regional, {{3, 3, 8, 8}});
}

// As in DeiT III: positions are of the patches alone.
TEST_F(TokenStemTest, PositionsMayBeAddedBeforeTheClassToken) {
  OnnxBuilder builder = Patches();
  builder.Node("Reshape", {"planes", "rows"}, {"patches"});
  builder.Node("Transpose", {"patches"}, {"tokens"}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
  builder.Floats("positions", {1, 4, kChannels}, Weights(32)).Node("Add", {"positions", "tokens"}, {"placed"});
  builder.Node("Shape", {"x"}, {"shape"}).Int64s("zero", {1}, {0}).Int64s("vector", {2}, {1, kChannels});
  builder.Node("Gather", {"shape", "zero"}, {"batch"}).Floats("class", {1, 1, kChannels}, Weights(8));
  builder.Node("Concat", {"batch", "vector"}, {"sizes"}, {{"axis", int64_t{0}}});
  builder.Node("Expand", {"class", "sizes"}, {"classes"});
  builder.Node("Concat", {"classes", "placed"}, {"all"}, {{"axis", int64_t{1}}});
  builder.Output(TwoLayers(builder, "all"));
  const RegionalProgram regional = Plan(builder);
  ExpectOneRegion(regional);
  ExpectSame(regional, {{3, 3, 8, 8}});
}

TEST_F(TokenStemTest, ChannelsInAnotherOrderAreNotTheirs) {
  for (const int64_t axis : {0, 1, 2}) {
    OnnxBuilder builder = Patches();
    builder.Node("Reshape", {"planes", "rows"}, {"patches"});
    builder.Node("Transpose", {"patches"}, {"tokens"}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
    builder.Int64s("from", {1}, {-1}).Int64s("to", {1}, {-1000}).Int64s("axis", {1}, {axis}).Int64s("step", {1}, {-1});
    builder.Node("Slice", {"tokens", "from", "to", "axis", "step"}, {"flipped"});
    builder.Output(TwoLayers(builder, "flipped"));
    const RegionalProgram regional = Plan(builder);
    EXPECT_EQ(CountOf(regional, Op::kPlaneTokens), 0) << axis;
    ExpectSame(regional, {{3, 3, 8, 8}});
  }
}

// What is behind the planes' positions is no part of a stem.
TEST_F(TokenStemTest, TokensThatEndInVectorsBeginElsewhere) {
  OnnxBuilder builder = Patches(2);
  builder.Node("Reshape", {"planes", "rows"}, {"patches"});
  builder.Node("Transpose", {"patches"}, {"tokens"}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
  builder.Floats("vector", {1, 1, kChannels}, Weights(8)).Int64s("sizes", {3}, {2, 1, kChannels});
  builder.Node("Expand", {"vector", "sizes"}, {"last"});
  builder.Node("Concat", {"tokens", "last"}, {"all"}, {{"axis", int64_t{1}}});
  builder.Output(TwoLayers(builder, "all"));
  const RegionalProgram regional = Plan(builder);
  EXPECT_EQ(CountOf(regional, Op::kPlaneTokens), 0);
  ExpectSame(regional, {{2, 3, 8, 8}});
}

TEST_F(TokenStemTest, PatchesThatOthersReadAreOfARegionOfTheirOwn) {
  OnnxBuilder builder = Patches();
  builder.Output(TwoLayers(builder, WithClassToken(builder))).Output("planes");
  const RegionalProgram regional = Plan(builder);
  ASSERT_EQ(regional.regions.size(), 2u) << regional.unplanned;
  ExpectSame(regional, {{3, 3, 8, 8}});
}

// A convolution of the planes that is added to their tokens, which the region then reads as well.
TEST_F(TokenStemTest, TokensMayBeReadBesideWhatIsMadeOfThem) {
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
TEST_F(TokenStemTest, PlanesInAnotherOrderAreNoTokens) {
  OnnxBuilder builder = Patches();
  builder.Node("Transpose", {"planes"}, {"turned"}, {{"perm", std::vector<int64_t>{0, 3, 2, 1}}});
  builder.Int64s("flat", {3}, {0, -1, kChannels}).Node("Reshape", {"turned", "flat"}, {"tokens"});
  builder.Output(TwoLayers(builder, "tokens"));
  const RegionalProgram regional = Plan(builder);
  ExpectSame(regional, {{3, 3, 8, 8}});
}

}  // namespace
}  // namespace swizzle::regions

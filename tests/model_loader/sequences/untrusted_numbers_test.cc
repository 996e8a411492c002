// Numbers of any size where nodes say what to take: what lies outside is clamped or refused, and nothing overflows
// (which builds with sanitizers see).
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/recognised.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using testing::Embedded;
using testing::IsError;
using testing::IsOk;
using testing::OnnxBuilder;
using testing::Recognised;
using Ints = std::vector<int64_t>;

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

// "x", whose four channels may be taken apart, as "h".
OnnxBuilder Linear() {
  OnnxBuilder builder = Embedded();
  builder.Counting("w", {4, 4}).Node("MatMul", {"x", "w"}, {"h"});
  return builder;
}

// The channels of the sliced "h", as rows of the weight, which count 1, 2, 3, 4 in their first column.
StatusOr<std::vector<float>> ChannelsOfSlice(int64_t start, int64_t end) {
  OnnxBuilder builder = Linear();
  builder.Int64s("from", {1}, {start}).Int64s("to", {1}, {end}).Int64s("axis", {1}, {-1});
  builder.Node("Slice", {"h", "from", "to", "axis"}, {"y"}).Output("y");
  SWIZZLE_ASSIGN_OR_RETURN(const Graph graph, Recognised(builder));
  const Tensor& weight = *graph.values[graph.nodes.back().inputs[1]].constant;
  std::vector<float> channels;
  for (int64_t row = 0; row < weight.shape[0]; ++row) channels.push_back(weight.floats()[row * weight.shape[1]]);
  return channels;
}

TEST(UntrustedNumbersTest, SlicesAreClampedToTheChannels) {
  EXPECT_EQ(*ChannelsOfSlice(1, 3), (std::vector<float>{2, 3}));
  EXPECT_EQ(*ChannelsOfSlice(-100, 2), (std::vector<float>{1, 2}));
  EXPECT_EQ(*ChannelsOfSlice(kLeast, 1), (std::vector<float>{1}));
  EXPECT_EQ(*ChannelsOfSlice(-2, kMost), (std::vector<float>{3, 4}));
  EXPECT_EQ(*ChannelsOfSlice(kLeast, kMost), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_THAT(ChannelsOfSlice(kMost, kMost).status(), IsError(StatusCode::kUnimplemented, "it takes nothing"));
  EXPECT_THAT(ChannelsOfSlice(3, -4).status(), IsError(StatusCode::kUnimplemented, "it takes nothing"));
}

Status SplitInto(const Ints& parts) {
  OnnxBuilder builder = Linear();
  builder.Int64s("parts", {static_cast<int64_t>(parts.size())}, parts);
  std::vector<std::string> outputs;
  for (size_t i = 0; i < parts.size(); ++i) outputs.push_back(Concat("y", i));
  builder.Node("Split", {"h", "parts"}, outputs, {{"axis", int64_t{2}}}).Output("y0");
  return Recognised(builder).status();
}

TEST(UntrustedNumbersTest, PartsOfASplitAddUp) {
  const auto refused = IsError(StatusCode::kUnimplemented, "Split node 'y0_node'");
  EXPECT_THAT(SplitInto({1, 3}), IsOk());
  EXPECT_THAT(SplitInto({1, 2}), refused);
  EXPECT_THAT(SplitInto({5, -1}), refused);
  EXPECT_THAT(SplitInto({4, kMost}), refused);
  EXPECT_THAT(SplitInto({kMost, kMost, 6}), refused);
}

TEST(UntrustedNumbersTest, HugeDimensionsHaveEqualParts) {
  OnnxBuilder builder = Embedded();
  builder.Int64s("huge", {1}, {kMost}).Node("ConstantOfShape", {"huge"}, {"zeros"});
  builder.Node("Split", {"zeros"}, {"a", "b"}).Output("x");
  EXPECT_THAT(Recognised(builder), IsOk());
}

TEST(UntrustedNumbersTest, HiddenSizesOfPackedAttentionAddUp) {
  const auto attention = [](const Ints& sizes) {
    OnnxBuilder builder = Embedded();
    builder.Counting("w", {4, 6}).Floats("b", {6}, {1, 2, 3, 4, 5, 6});
    builder.MicrosoftNode("Attention", {"x", "w", "b"}, {"y"},
                          {{"num_heads", int64_t{1}}, {"qkv_hidden_sizes", sizes}});
    return Recognised(builder.Output("y")).status();
  };
  const auto refused = IsError(StatusCode::kUnimplemented, "does not divide into queries, keys and values");
  EXPECT_THAT(attention({2, 2, 2}), IsOk());
  EXPECT_THAT(attention({kMost, kMost, 8}), refused) << "whose sum wraps to 6";
  EXPECT_THAT(attention({7, -3, 2}), refused);
  EXPECT_THAT(attention({6, 0, 0}), refused);
}

// A constant as an index, a place to begin at, a diagonal.
TEST(UntrustedNumbersTest, IndicesAreThoseOfTheChannels) {
  const auto taken = [](int64_t index) {
    OnnxBuilder builder = Linear();
    builder.Int64s("at", {}, {index}).Node("Gather", {"h", "at"}, {"y"}, {{"axis", int64_t{2}}}).Output("y");
    return Recognised(builder).status();
  };
  EXPECT_THAT(taken(3), IsOk());
  EXPECT_THAT(taken(-1), IsOk());
  for (const int64_t index : {int64_t{4}, int64_t{-5}, kMost, kLeast}) {
    EXPECT_THAT(taken(index), IsError(StatusCode::kUnimplemented, "Gather node 'y_node'")) << index;
  }
}

TEST(UntrustedNumbersTest, RowsAreThoseOfTheTable) {
  const auto row = [](int64_t index) {
    OnnxBuilder builder = Embedded();
    builder.Counting("table", {3, 4}).Int64s("at", {1, 1}, {index}).Node("Gather", {"table", "at"}, {"r"});
    return Recognised(builder.Node("Add", {"x", "r"}, {"y"}).Output("y")).status();
  };
  EXPECT_THAT(row(2), IsOk());
  EXPECT_THAT(row(-3), IsOk());
  for (const int64_t index : {int64_t{3}, int64_t{-4}, kMost, kLeast}) EXPECT_FALSE(row(index).ok()) << index;
}

TEST(UntrustedNumbersTest, RangesMayCountBackwards) {
  const auto range = [](int64_t start, int64_t limit) {
    OnnxBuilder builder = Embedded();
    builder.Int64s("start", {}, {start}).Int64s("limit", {}, {limit}).Int64s("one", {}, {1});
    for (int i = 0; i < 3; ++i) builder.Node("Range", {"start", "limit", "one"}, {Concat("r", i)});
    return Recognised(builder.Output("x")).status();
  };
  EXPECT_THAT(range(int64_t{1} << 62, -(int64_t{1} << 62)), IsOk());
  EXPECT_THAT(range(kMost, kLeast), IsOk());
  EXPECT_THAT(range(kMost - 2, kMost), IsOk());
}

// Numbers that count up to the largest, as long as sequences may be.
TEST(UntrustedNumbersTest, PositionsBeginWhereATableHasRows) {
  const auto positions = [](int64_t first, int64_t from) {
    OnnxBuilder builder = Embedded();
    builder.Int64s("numbers", {1, 3}, {first, first + 1, first + 2}).Counting("places", {9, 4});
    builder.Int64s("from", {1}, {from}).Int64s("one", {1}, {1}).Node("Shape", {"ids"}, {"s"});
    builder.Node("Gather", {"s", "one"}, {"n"});
    builder.Node("Slice", {"numbers", "from", "n", "one"}, {"p"}).Node("Gather", {"places", "p"}, {"r"});
    return Recognised(builder.Node("Add", {"x", "r"}, {"y"}).Output("y")).status();
  };
  EXPECT_THAT(positions(2, 0), IsOk());
  EXPECT_FALSE(positions(kMost - 2, 0).ok());
  EXPECT_FALSE(positions(kLeast, -3).ok());
}

TEST(UntrustedNumbersTest, PlacesOfSequencesWithoutEndAreNotListed) {
  for (const int64_t length : {int64_t{1} << 40, int64_t{1} << 62}) {
    for (const std::string reader : {"Neg", "ReduceMean", "Concat"}) {
      OnnxBuilder builder;
      builder.Int64Input("ids", {-1, length}).Counting("words", {5, 4}).Node("Gather", {"words", "ids"}, {"x"});
      builder.Int64s("one", {1}, {1}).Int64s("end", {1}, {kMost});
      builder.Node("Slice", {"x", "one", "end", "one"}, {"part"});
      if (reader == "Neg") builder.Node("Neg", {"part"}, {"y"});
      if (reader == "ReduceMean") builder.Node("ReduceMean", {"part"}, {"y"}, {{"axes", Ints{1}}});
      if (reader == "Concat") builder.Node("Concat", {"part", "part"}, {"y"}, {{"axis", int64_t{1}}});
      EXPECT_FALSE(Recognised(builder.Output("y")).ok()) << length << " " << reader;
    }
  }
}

}  // namespace
}  // namespace swizzle

// What is claimed of operators' arguments, of sizes and of malformed graphs.
#include <gtest/gtest.h>

#include <limits>

#include "model_loader/shapes/batch_proof.h"
#include "tests/model_loader/shapes/batch_holds.h"

namespace swizzle {
namespace {

using swizzle::testing::Attributes;
using swizzle::testing::Holds;
using swizzle::testing::Ints;
using swizzle::testing::OfAnyLength;
using swizzle::testing::OneNode;
using swizzle::testing::OnnxBuilder;

// Lists and shapes that double with each node, numbers that overflow, sizes below 0.
TEST(BatchClaims, MalformedGraphsProveNothingAndTakeNoMemory) {
  EXPECT_FALSE(OfAnyLength({-1, -1, 6}, [](OnnxBuilder& b) {
    std::string list = "heads", shape = "zero", product = "large";
    b.Int64s("large", {1}, {int64_t{1} << 62}).Int64s("below", {3}, {0, -7, 2});
    for (int i = 0; i < 60; ++i) {
      const std::string n = std::to_string(i);
      b.Node("Concat", {list, list}, {"list" + n}, {{"axis", int64_t{0}}})
          .Node("Gather", {shape, shape}, {"shape" + n});
      b.Node("Mul", {product, "large"}, {"product" + n}).Node("Add", {product, "large"}, {"sum" + n});
      list = "list" + n, shape = "shape" + n, product = i % 2 == 0 ? "product" + n : "sum" + n;
    }
    b.Node("Reshape", {"x", "below"}, {"r"}).Node("Split", {"r"}, {"s1", "s2"}, {{"axis", int64_t{1}}});
    b.Node("Slice", {"s1", "zero", "large", "one"}, {"t"}).Node("Reshape", {"t", list}, {"u"});
    b.Node("Tile", {"u", product}, {"v"}).Node("Gather", {"v", shape}, {"out"});
  }));
  OnnxBuilder conv;
  conv.Input("x", {-1, 1, 4, 4}).Counting("w", {1, 1, 2, 2});
  const Ints huge = {int64_t{1} << 62, int64_t{1} << 62};
  conv.Node("Conv", {"x", "w"}, {"y"},
            {{"strides", huge}, {"dilations", huge}, {"auto_pad", std::string("SAME_UPPER")}});
  EXPECT_TRUE(Holds(conv.Output("y"), {-1, 1, 1, 1})) << "rows stay apart, whatever becomes of planes";
}

// x, of shape [-1, 4, 6], turned to have its rows in dimension 1, through an operator and back.
bool Turned(int64_t opset, const std::string& op, const std::vector<std::string>& inputs, const Shape& constant,
            const Attributes& attributes = {}, const Shape& input = {-1, 4, 6}) {
  OnnxBuilder builder(opset);
  builder.Input("x", input).Counting("c", constant).Node("Transpose", {"x"}, {"t"}, {{"perm", Ints{1, 0, 2}}});
  builder.Node(op, inputs, {"u"}, attributes).Node("Transpose", {"u"}, {"y"}, {{"perm", Ints{1, 0, 2}}}).Output("y");
  return Holds(builder, {-1, -1, -1});
}

TEST(BatchClaims, SoftmaxOfOldRunsFromDimensionOneOn) {
  EXPECT_FALSE(Turned(11, "Softmax", {"t"}, {1}));
  EXPECT_FALSE(Turned(11, "Hardmax", {"t"}, {1}));
  EXPECT_TRUE(Turned(11, "LogSoftmax", {"t"}, {1}, {{"axis", int64_t{2}}}));
  EXPECT_TRUE(Turned(13, "Softmax", {"t"}, {1}));
}

TEST(BatchClaims, ConcatWithoutAnAxisIsOfDimensionOne) {
  EXPECT_FALSE(Turned(17, "Concat", {"t", "t"}, {1}));
  EXPECT_TRUE(OneNode("Concat", {"x", "x"}, {}, {-1, 8, 6}));
}

TEST(BatchClaims, SlopesOfOldAreOfChannels) {
  EXPECT_FALSE(Turned(8, "PRelu", {"t", "c"}, {6})) << "of rows, in a batch of 6";
  EXPECT_TRUE(Turned(9, "PRelu", {"t", "c"}, {6}));
  const auto merged = [](int64_t opset) {
    OnnxBuilder builder(opset);
    builder.Input("x", {-1, 4, 1}).Counting("c", {4}).Int64s("to", {2}, {-1, 16}).Int64s("from", {3}, {-1, 4, 4});
    builder.Node("PRelu", {"x", "c"}, {"p"}).Node("Reshape", {"p", "to"}, {"u"});
    builder.Node("Relu", {"u"}, {"v"}).Node("Reshape", {"v", "from"}, {"y"}).Output("y");
    return Holds(builder, {-1, 4, 4});
  };
  EXPECT_FALSE(merged(8)) << "the slope makes no dimension of 4";
  EXPECT_FALSE(merged(17));
}

TEST(BatchClaims, ReadsTheArgumentsThatAreRun) {
  OnnxBuilder slice(9);
  slice.Input("x", {-1, 4}).Int64s("zero", {1}, {0}).Int64s("one", {1}, {1});
  slice.Node("Slice", {"x", "zero", "one"}, {"first"}).Node("Add", {"x", "first"}, {"y"}).Output("y");
  EXPECT_FALSE(Holds(slice, {-1, 4})) << "inputs, of an opset with attributes";
  OnnxBuilder column;
  column.Input("x", {-1, 4, 6})
      .Int64s("table", {2, 2}, {-1, 6, 48, 0})
      .Int64s("zero", {1}, {0})
      .Int64s("one", {1}, {1});
  column.Int64s("flat", {1}, {2}).Int64s("back", {3}, {-1, 4, 6});
  column.Node("Slice", {"table", "zero", "one"}, {"s"}, {{"axes", Ints{1}}}).Node("Reshape", {"s", "flat"}, {"to"});
  column.Node("Reshape", {"x", "to"}, {"u"}).Node("Softmax", {"u"}, {"v"}).Node("Reshape", {"v", "back"}, {"y"});
  EXPECT_FALSE(Holds(column.Output("y"), {-1, 4, 6})) << "an attribute beside inputs";
  OnnxBuilder upsample(8);
  upsample.Input("x", {-1, 1, 2, 2}).Floats("c", {4}, {1, 1, 1, 1});
  upsample.Node("Upsample", {"x", "c"}, {"y"}, {{"scales", std::vector<float>{2, 1, 1, 1}}}).Output("y");
  EXPECT_FALSE(Holds(upsample, {-1, 1, 2, 2})) << "an input beside an attribute";
}

TEST(BatchClaims, ScalesDoNotBroadcast) {
  OnnxBuilder add;
  add.Input("x", {-1, 6}).Floats("s", {}, {0.5f}).Floats("wide", {1, 1, 1}, {0.5f}).Int64s("n", {}, {0});
  add.Int64s("to", {3}, {1, -1, 6}).Node("Cast", {"n"}, {"z"}, {{"to", int64_t{2}}});
  add.Node("QuantizeLinear", {"x", "s", "z"}, {"q"})
      .MicrosoftNode("QLinearAdd", {"q", "s", "z", "q", "s", "z", "wide", "z"}, {"a"});
  add.Node("DequantizeLinear", {"a", "s", "z"}, {"d"}).Node("Softmax", {"d"}, {"m"}, {{"axis", int64_t{0}}});
  add.Node("Reshape", {"m", "to"}, {"u"}).Int64s("first", {1}, {0}).Node("Squeeze", {"u", "first"}, {"y"}).Output("y");
  EXPECT_FALSE(Holds(add, {-1, 6}));
  OnnxBuilder zero;
  zero.Input("x", {-1, 6}).Floats("s", {}, {0.5f}).Int64s("n", {4}, {0, 1, 2, 3});
  zero.Node("Cast", {"n"}, {"z"}, {{"to", int64_t{2}}});
  zero.Node("QuantizeLinear", {"x", "s", "z"}, {"y"}, {{"axis", int64_t{0}}}).Output("y");
  EXPECT_FALSE(Holds(zero, {-1, 6})) << "a zero point for each of four rows";
}

TEST(BatchClaims, NoRowsAreNoSize) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 6}).Int64s("zero", {1}, {0}).Int64s("one", {1}, {1}).Int64s("six", {1}, {6});
  builder.Int64s("threes", {2}, {-1, 3}).Int64s("fours", {2}, {-1, 4}).Node("Shape", {"x"}, {"back"});
  builder.Node("Slice", {"x", "zero", "zero", "one"}, {"none"}).Node("Reshape", {"none", "threes"}, {"still"});
  builder.Node("Shape", {"still"}, {"s"}).Node("Gather", {"s", "zero"}, {"n"});
  builder.Node("Concat", {"n", "six"}, {"to"}, {{"axis", int64_t{0}}}).Node("Reshape", {"x", "to"}, {"u"});
  builder.Node("Reshape", {"u", "fours"}, {"v"}).Node("Softmax", {"v"}, {"w"}).Node("Reshape", {"w", "back"}, {"y"});
  EXPECT_FALSE(Holds(builder.Output("y"), {-1, 6})) << "a size of 0 is that of the input";
}

TEST(BatchClaims, OfTwoLengthsEitherMayBeOne) {
  OnnxBuilder builder;
  builder.Input("x", {-1, -1}).Input("y", {-1, -1}).Int64s("minus", {1}, {-1}).Int64s("one", {1}, {1});
  builder.Node("Add", {"y", "x"}, {"sum"}).Node("Shape", {"sum"}, {"sizes"}).Node("Gather", {"sizes", "one"}, {"n"});
  builder.Node("Concat", {"minus", "n"}, {"to"}, {{"axis", int64_t{0}}}).Node("Shape", {"x"}, {"back"});
  builder.Node("Reshape", {"x", "to"}, {"u"}).Node("Softmax", {"u"}, {"v"}).Node("Reshape", {"v", "back"}, {"out"});
  EXPECT_FALSE(Holds(builder.Output("out"), {-1, -1})) << "x may have one column, and y two";
}

TEST(BatchClaims, NumbersOf32BitsWrap) {
  OnnxBuilder cut;
  cut.Input("x", {-1, 4}).Int64s("zero", {1}, {0}).Int64s("wide", {1}, {(int64_t{1} << 32) + 1});
  cut.Node("Cast", {"wide"}, {"one"}, {{"to", int64_t{6}}}).Node("Cast", {"one"}, {"end"}, {{"to", int64_t{7}}});
  cut.Node("Slice", {"x", "zero", "end"}, {"first"}).Node("Add", {"x", "first"}, {"y"}).Output("y");
  EXPECT_FALSE(Holds(cut, {-1, 4}));
  const auto times = [](int64_t factor, int64_t type) {
    OnnxBuilder b;
    b.Input("x", {-1, 6}).Int64s("zero", {1}, {0}).Int64s("minus", {1}, {-1}).Int64s("k", {1}, {factor});
    b.Int64s("six", {2}, {-1, 6}).Node("Shape", {"x"}, {"s"}).Node("Gather", {"s", "zero"}, {"n"});
    b.Node("Cast", {"n"}, {"n32"}, {{"to", type}}).Node("Cast", {"k"}, {"k32"}, {{"to", type}});
    b.Node("Mul", {"n32", "k32"}, {"more"}).Node("Div", {"more", "k32"}, {"same"});
    b.Node("Cast", {"same"}, {"rows"}, {{"to", int64_t{7}}});
    b.Node("Concat", {"rows", "minus"}, {"to"}, {{"axis", int64_t{0}}}).Node("Reshape", {"x", "to"}, {"u"});
    b.Node("Softmax", {"u"}, {"v"}).Node("Reshape", {"v", "six"}, {"y"}).Output("y");
    return Holds(b, {-1, 6});
  };
  EXPECT_TRUE(times(64, 6));
  EXPECT_FALSE(times(int64_t{1} << 30, 6)) << "a batch of 5 would be of one row";
}

TEST(BatchClaims, SizesMayBeComputedByRealNumbers) {
  EXPECT_TRUE(OfAnyLength({-1, -1, -1}, [](OnnxBuilder& b) {
    b.Node("Cast", {"length1"}, {"f"}, {{"to", int64_t{1}}}).Node("Floor", {"f"}, {"g"});
    b.Node("Cast", {"g"}, {"rounded"}, {{"to", int64_t{7}}});
    b.Node("Concat", {"batch1", "rounded", "minus"}, {"to"}, {{"axis", int64_t{0}}})
        .Node("Reshape", {"x", "to"}, {"out"});
  }));
  EXPECT_FALSE(OfAnyLength({-1, -1, -1}, [](OnnxBuilder& b) {
    b.Node("Cast", {"batch1"}, {"f"}, {{"to", int64_t{1}}}).Node("Floor", {"f"}, {"g"});
    b.Node("Cast", {"g"}, {"rounded"}, {{"to", int64_t{7}}});
    b.Node("Concat", {"minus", "rounded", "six"}, {"to"}, {{"axis", int64_t{0}}}).Node("Reshape", {"x", "to"}, {"out"});
  })) << "of the batch";
}

TEST(BatchClaims, RowsThatASliceTakesWholeAreKept) {
  const auto sliced = [](const char* start, const char* end, const char* axis) {
    return OfAnyLength({-1, -1, 6}, [&](OnnxBuilder& b) { b.Node("Slice", {"x", start, end, axis}, {"out"}); });
  };
  EXPECT_TRUE(sliced("zero", "batch1", "zero"));
  EXPECT_FALSE(sliced("one", "batch1", "zero"));
  EXPECT_FALSE(sliced("zero", "length1", "zero"));
  EXPECT_FALSE(sliced("zero", "batch1", "one")) << "as many positions as there are requests";
}

TEST(BatchClaims, ProductsThatRunAlongAnAxisAreTold) {
  const auto along = [](int64_t axis) {
    OnnxBuilder builder(26);
    builder.Input("x", {-1, 4}).Int64s("axis", {}, {axis}).Node("CumProd", {"x", "axis"}, {"y"}).Output("y");
    return Holds(builder, {-1, 4});
  };
  EXPECT_TRUE(along(1));
  EXPECT_TRUE(along(-1));
  EXPECT_FALSE(along(0));
}

// What is wrong with `add`'s nodes is found when they run, not before; u is theirs.
template <typename Add>
bool Stands(const Add& add) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 4}).Int64s("zero", {1}, {0}).Int64s("one", {1}, {1}).Int64s("minus", {1}, {-5});
  builder.Int64s("four", {4}, {1, 2, 3, 4}).Int64s("six", {2}, {2, 3}).Int64s("few", {2}, {-2, -2});
  add(builder);
  return Holds(builder.Node("Relu", {"x"}, {"y"}).Output("y"), {-1, 4});
}

TEST(BatchClaims, LargeImagesAreResizedWithRounding) {
  const auto resized = [](int64_t size) {
    OnnxBuilder builder;
    builder.Input("x", {-1, size}).Floats("scales", {2}, {1, 1023}).Int64s("to", {2}, {-1, 3});
    builder.Int64s("from", {2}, {-1, size * 1023}).Node("Resize", {"x", "", "scales"}, {"u"});
    builder.Node("Reshape", {"u", "to"}, {"v"}).Node("Softmax", {"v"}, {"w"}).Node("Reshape", {"w", "from"}, {"y"});
    return Holds(builder.Output("y"), {-1, size * 1023});
  };
  EXPECT_TRUE(resized(30));
  EXPECT_FALSE(resized(1048575)) << "elements are one fewer";
}

TEST(BatchClaims, SizesBelowZeroAreNone) {
  EXPECT_TRUE(
      Stands([](OnnxBuilder& b) { b.Node("ConstantOfShape", {"minus"}, {"n"}).Node("Identity", {"n"}, {"u"}); }));
  EXPECT_TRUE(Stands([](OnnxBuilder& b) {
    b.Node("Reshape", {"four", "few"}, {"n"}).Node("Transpose", {"n"}, {"u"});
  }));
  EXPECT_TRUE(Stands([](OnnxBuilder& b) {
    b.Node("Expand", {"one", "few"}, {"n"}).Node("Slice", {"n", "zero", "one"}, {"u"});
  }));
}

TEST(BatchClaims, ListsHaveAsManyElementsAsTheirShape) {
  EXPECT_TRUE(Stands([](OnnxBuilder& b) {
    b.Node("Reshape", {"four", "six"}, {"n"}).Node("Transpose", {"n"}, {"u"});
  }));
  EXPECT_TRUE(Stands([](OnnxBuilder& b) {
    b.Node("Reshape", {"four", "six"}, {"n"}).Node("Slice", {"n", "one", "six", "zero"}, {"u"});
  }));
  EXPECT_TRUE(Stands([](OnnxBuilder& b) {
    b.Node("Reshape", {"four", "six"}, {"n"}).Node("Slice", {"n", "one", "four", "zero"}, {"v"});
    b.Int64s("long", {1}, {9}).Node("Slice", {"n", "one", "long", "zero"}, {"u"});
  }));
}

TEST(BatchClaims, EmptyListsMayBeOfAnyShape) {
  const auto loads = [](const std::string& op, const std::vector<std::string>& inputs, const Shape& shape) {
    OnnxBuilder builder;
    builder.Input("x", {-1, 4}).Int64s("empty", shape, {}).Int64s("zero", {1}, {0}).Int64s("one", {1}, {1});
    builder.Node(op, inputs, {"u"}).Node("Relu", {"x"}, {"y"}).Output("y");
    return interpreter::ReadProgram(std::span<const std::byte>(builder.Bytes()), {}, interpreter::Nodes::kAll).ok();
  };
  constexpr int64_t kLong = int64_t{1} << 31;
  EXPECT_FALSE(loads("Slice", {"empty", "zero", "one"}, {0, kLong, kLong - 1})) << "it is too large, once it is read";
  EXPECT_FALSE(loads("Slice", {"empty", "zero", "one", "one"}, {int64_t{1} << 40, 0}));
  EXPECT_FALSE(loads("Transpose", {"empty"}, {0, int64_t{1} << 40}));
}

TEST(BatchClaims, ListsAndRanksDoNotGrowWithoutBounds) {
  EXPECT_TRUE(Stands([](OnnxBuilder& b) {
    b.Node("Identity", {"zero"}, {"0"});
    for (int i = 0; i < 60; ++i) {
      const std::string from = std::to_string(i);
      b.Node("Concat", {from, from}, {std::to_string(i + 1)}, {{"axis", int64_t{0}}});
    }
  })) << "lists";
  EXPECT_TRUE(Stands([](OnnxBuilder& b) {
    b.Int64s("cube", {1, 1, 1}, {0}).Node("Identity", {"cube"}, {"0"});
    for (int i = 0; i < 60; ++i) {
      const std::string from = std::to_string(i);
      b.Node("Gather", {from, from}, {std::to_string(i + 1)});
    }
  })) << "ranks";
}

TEST(BatchClaims, NumbersMayBeAsLargeAsTheyCome) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_TRUE(Stands([](OnnxBuilder& b) {
    b.Int64s("most", {1}, {kMost}).Node("Add", {"most", "most"}, {"u"}).Node("Mul", {"most", "most"}, {"v"});
    b.Int64s("least", {1}, {-kMost}).Node("Sub", {"least", "most"}, {"w"}).Node("Div", {"least", "minus"}, {"d"});
  }));
  EXPECT_TRUE(Stands([](OnnxBuilder& b) {
    b.Input("image", {-1, 1, int64_t{1} << 62, 8}).Counting("w", {1, 1, 1, 1});
    b.Node("MaxPool", {"image"}, {"u"},
           {{"kernel_shape", Ints{kMost, 2}},
            {"strides", Ints{1, kMost}},
            {"dilations", Ints{kMost, kMost}},
            {"auto_pad", std::string("SAME_UPPER")}});
    b.Node("Conv", {"image", "w"}, {"v"}, {{"pads", Ints{kMost, 1, kMost, 1}}}).Node("Flatten", {"image"}, {"f"});
  }));
}

}  // namespace
}  // namespace swizzle

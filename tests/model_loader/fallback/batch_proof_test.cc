#include "model_loader/fallback/batch_proof.h"

#include <gtest/gtest.h>

#include <limits>

#include "model_loader/fallback/load.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/status_matchers.h"

namespace swizzle::fallback {
namespace {

using swizzle::testing::OnnxBuilder;
using Attributes = std::map<std::string, Attribute>;
using Ints = std::vector<int64_t>;

// Whether the rows of `builder`, with an output of this shape, are proven to be independent.
bool Holds(OnnxBuilder& builder, const Shape& output) {
  auto& shape = *builder.graph().mutable_output(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
  for (const int64_t dimension : output) {
    auto& added = *shape.add_dim();
    if (dimension != -1) added.set_dim_value(dimension);
  }
  const auto program = ReadProgram(std::span<const std::byte>(builder.Bytes()));
  EXPECT_TRUE(program.ok()) << program.status();
  return program.ok() && (*program)->rows_are_independent();
}

// One node from x, of shape [-1, 4, 6], and an initializer c.
bool OneNode(const std::string& op, const std::vector<std::string>& inputs, const Attributes& attributes,
             const Shape& output, const Shape& constant = {1}) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 4, 6}).Counting("c", constant).Int64s("zero", {1}, {0}).Int64s("two", {1}, {2});
  builder.Int64s("keep", {2}, {0, -1}).Int64s("flat", {2}, {-1, 24});
  builder.Node(op, inputs, {"y"}, attributes).Output("y");
  return Holds(builder, output);
}

TEST(BatchProof, AcceptsAConvolutionalNetwork) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 3, 8, 8}).Counting("w", {4, 3, 3, 3}).Counting("m", {4, 5}).Counting("b", {5});
  builder.Node("Conv", {"x", "w"}, {"c"}).Node("Elu", {"c"}, {"e"}).Node("Add", {"e", "c"}, {"s"});
  builder.Node("GlobalAveragePool", {"s"}, {"p"}).Node("Flatten", {"p"}, {"f"});
  builder.Node("Gemm", {"f", "m", "b"}, {"g"}).Node("LogSoftmax", {"g"}, {"y"}).Output("y");
  EXPECT_TRUE(Holds(builder, {-1, 5}));
}

TEST(BatchProof, KnowsOperatorsOfMicrosoft) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 4}).Floats("s", {}, {0.5f}).Int64s("n", {}, {0});
  builder.Node("Cast", {"n"}, {"z"}, {{"to", int64_t{2}}}).Node("QuantizeLinear", {"x", "s", "z"}, {"q"});
  builder.MicrosoftNode("QLinearSigmoid", {"q", "s", "z", "s", "z"}, {"r"});
  builder.Node("DequantizeLinear", {"r", "s", "z"}, {"y"}).Output("y");
  EXPECT_TRUE(Holds(builder, {-1, 4}));
}

TEST(BatchProof, FollowsDimensionZero) {
  EXPECT_TRUE(OneNode("ReduceSum", {"x", "two"}, {}, {-1, 4, 1}));
  EXPECT_FALSE(OneNode("ReduceSum", {"x", "zero"}, {}, {-1, 4, 6}));
  EXPECT_FALSE(OneNode("ReduceSum", {"x"}, {}, {-1, 1, 1}));
  EXPECT_TRUE(OneNode("ReduceMax", {"x"}, {{"axes", Ints{-1}}, {"keepdims", int64_t{0}}}, {-1, 4}));
  EXPECT_TRUE(OneNode("Softmax", {"x"}, {{"axis", int64_t{-2}}}, {-1, 4, 6}));
  EXPECT_FALSE(OneNode("Softmax", {"x"}, {{"axis", int64_t{-3}}}, {-1, 4, 6}));
  EXPECT_FALSE(OneNode("ArgMax", {"x"}, {}, {-1, 4, 6}));
  EXPECT_TRUE(OneNode("ArgMax", {"x"}, {{"axis", int64_t{1}}}, {-1, 1, 6}));
  EXPECT_TRUE(OneNode("Transpose", {"x"}, {{"perm", Ints{0, 2, 1}}}, {-1, 6, 4}));
  EXPECT_FALSE(OneNode("Transpose", {"x"}, {{"perm", Ints{1, 0, 2}}}, {-1, 4, 6}));
  EXPECT_TRUE(OneNode("Reshape", {"x", "keep"}, {}, {-1, 24}));
  EXPECT_TRUE(OneNode("Reshape", {"x", "flat"}, {}, {-1, 24}));
  EXPECT_TRUE(OneNode("Concat", {"x", "x"}, {{"axis", int64_t{1}}}, {-1, 8, 6}));
  EXPECT_FALSE(OneNode("Concat", {"x", "x"}, {{"axis", int64_t{0}}}, {-1, 4, 6}));
}

TEST(BatchProof, KnowsWhatBroadcastsOverRows) {
  EXPECT_TRUE(OneNode("Mul", {"x", "c"}, {}, {-1, 4, 6}, {4, 1}));
  EXPECT_TRUE(OneNode("Mul", {"x", "c"}, {}, {-1, 4, 6}, {1, 4, 6}));
  EXPECT_FALSE(OneNode("Mul", {"x", "c"}, {}, {-1, 4, 6}, {2, 4, 6}));
  EXPECT_FALSE(OneNode("Mul", {"c", "x"}, {}, {-1, 4, 6}, {1, 1, 4, 6}));
  EXPECT_TRUE(OneNode("MatMul", {"x", "c"}, {}, {-1, 4, 2}, {6, 2}));
  EXPECT_TRUE(OneNode("MatMul", {"c", "x"}, {}, {-1, 4, 6}, {4, 4}));
  EXPECT_FALSE(OneNode("MatMul", {"c", "x"}, {}, {-1, 4, 6}, {2, 4, 4}));
}

TEST(BatchProof, WantsTheBatchDeclared) {
  const auto relu = [](const Shape& input, const Shape& output) {
    OnnxBuilder builder;
    builder.Input("x", input).Node("Relu", {"x"}, {"y"}).Output("y");
    return Holds(builder, output);
  };
  EXPECT_TRUE(relu({-1, 3}, {-1, 3}));
  EXPECT_FALSE(relu({2, 3}, {2, 3}));
  EXPECT_TRUE(relu({-1, -1}, {-1, -1})) << "of one length";
  EXPECT_FALSE(relu({-1, 3}, {4, 3}));
}

TEST(BatchProof, RefusesWhatLooksAtTheWholeBatch) {
  OnnxBuilder pool;
  pool.Input("x", {-1, 1, 4, 4}).Node("MaxPool", {"x"}, {"p", "y"}, {{"kernel_shape", Ints{2, 2}}}).Output("y");
  EXPECT_FALSE(Holds(pool, {-1, 1, 3, 3}));
  OnnxBuilder quantise;
  quantise.Input("x", {-1, 4}).Node("DynamicQuantizeLinear", {"x"}, {"y", "s", "z"}).Output("y");
  EXPECT_FALSE(Holds(quantise, {-1, 4}));
}

// [batch, 5, 4] through a network whose first state is made of the batch size, as PyTorch writes it.
bool Recurrent(const Ints& state, const std::string& mask, const Shape& output, int64_t first_axis = 1) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 5, 4}).Counting("w", {2, 24, 4}).Counting("r", {2, 24, 6}).Int64s("at", {}, {first_axis});
  builder.Int64s("zero", {1}, {0}).Int64s("two", {1}, {2}).Int64s("six", {1}, {6}).Int64s("keep", {3}, {0, 0, -1});
  builder.Int64s("fixed", {static_cast<int64_t>(state.size())}, state).Counting("fixed_state", {2, 1, 6});
  builder.Node("Transpose", {"x"}, {"t"}, {{"perm", Ints{1, 0, 2}}});
  builder.Node("Shape", {"t"}, {"s"}).Node("Gather", {"s", "at"}, {"n"}).Node("Unsqueeze", {"n", "zero"}, {"n1"});
  builder.Node("Concat", {"two", "n1", "six"}, {"sizes"}, {{"axis", int64_t{0}}});
  builder.Node("ConstantOfShape", {state.empty() ? "sizes" : "fixed"}, {"h"});
  builder.Node("LSTM", {"t", "w", "r", "", "", mask.empty() ? "h" : mask, "h"}, {"l", "last"},
               {{"direction", std::string("bidirectional")}});
  builder.Node("Transpose", {"l"}, {"lt"}, {{"perm", Ints{0, 2, 1, 3}}}).Node("Reshape", {"lt", "keep"}, {"lr"});
  builder.Node("Transpose", {"lr"}, {"y"}, {{"perm", Ints{1, 0, 2}}});
  builder.Node("Transpose", {"last"}, {"z"}, {{"perm", Ints{1, 0, 2}}});
  builder.Output(output.size() == 3 && output[1] == 5 ? "y" : "z");
  return Holds(builder, output);
}

TEST(BatchProof, FollowsTheBatchThroughRecurrentNetworks) {
  EXPECT_TRUE(Recurrent({}, "", {-1, 5, 12}));
  EXPECT_TRUE(Recurrent({}, "", {-1, 2, 6}));
  EXPECT_FALSE(Recurrent({2, 1, 6}, "", {-1, 5, 12}));
  EXPECT_FALSE(Recurrent({}, "fixed_state", {-1, 5, 12}));
  EXPECT_FALSE(Recurrent({}, "", {-1, 5, 12}, 0)) << "the state has as many rows as steps";
}

TEST(BatchProof, RowsMayLieInAnyDimension) {
  const auto turned = [](const std::string& op, const std::vector<std::string>& inputs, const Attributes& attributes) {
    OnnxBuilder builder;
    builder.Input("x", {-1, 4, 6}).Counting("c", {6, 6}).Counting("bias", {4, 1, 6}).Counting("each", {4, 2, 6});
    builder.Int64s("axis1", {1}, {1}).Int64s("axis0", {1}, {0});
    builder.Node("Transpose", {"x"}, {"t"}, {{"perm", Ints{1, 0, 2}}}).Node(op, inputs, {"u"}, attributes);
    builder.Node("Transpose", {"u"}, {"y"}, {{"perm", Ints{1, 0, 2}}}).Output("y");
    return Holds(builder, {-1, 4, 6});
  };
  EXPECT_TRUE(turned("Relu", {"t"}, {}));
  EXPECT_TRUE(turned("MatMul", {"t", "c"}, {}));
  EXPECT_TRUE(turned("Add", {"t", "bias"}, {}));
  EXPECT_FALSE(turned("Add", {"t", "each"}, {}));
  EXPECT_FALSE(turned("Add", {"t", "x"}, {}));
  EXPECT_TRUE(turned("Softmax", {"t"}, {{"axis", int64_t{0}}}));
  EXPECT_FALSE(turned("Softmax", {"t"}, {{"axis", int64_t{1}}}));
  EXPECT_TRUE(turned("ReduceMax", {"t"}, {{"axes", Ints{0}}}));
  EXPECT_FALSE(turned("ReduceMax", {"t"}, {{"axes", Ints{1}}}));
  EXPECT_TRUE(turned("Concat", {"t", "t"}, {{"axis", int64_t{0}}}));
  EXPECT_FALSE(turned("Concat", {"t", "t"}, {{"axis", int64_t{1}}}));
  EXPECT_FALSE(turned("GlobalAveragePool", {"t"}, {}));
}

TEST(BatchProof, FollowsTheBatchThroughEquations) {
  const auto einsum = [](const std::string& equation, const std::vector<std::string>& inputs, const Shape& output) {
    OnnxBuilder builder;
    builder.Input("x", {-1, 4, 6}).Counting("c", {6, 3}).Node("Einsum", inputs, {"y"}, {{"equation", equation}});
    builder.Output("y");
    return Holds(builder, output);
  };
  EXPECT_TRUE(einsum("bij,jk->bik", {"x", "c"}, {-1, 4, 3}));
  EXPECT_TRUE(einsum("...ij,jk->...ik", {"x", "c"}, {-1, 4, 3}));
  EXPECT_TRUE(einsum("bij,bkj->bik", {"x", "x"}, {-1, 4, 4}));
  EXPECT_FALSE(einsum("bij,jk->ibk", {"x", "c"}, {-1, 4, 3}));
  EXPECT_FALSE(einsum("bij,jk->ik", {"x", "c"}, {-1, 3}));
  EXPECT_FALSE(einsum("bij,cij->bic", {"x", "x"}, {-1, 4, 4}));
  EXPECT_FALSE(einsum("bij,jb->bi", {"x", "c"}, {-1, 4}));
}

TEST(BatchProof, FollowsSizesOnlyAsFarAsTheyAreLists) {
  const auto filled = [](const std::vector<std::string>& sizes) {
    OnnxBuilder builder;
    builder.Input("x", {-1, 4}).Int64s("zero", {1}, {0}).Int64s("four", {1}, {4}).Int64s("both", {2}, {0, 1});
    builder.Node("Shape", {"x"}, {"s"}).Node("Gather", {"s", "zero"}, {"n"}).Node("Gather", {"s", "both"}, {"nc"});
    builder.Node("Unsqueeze", {"nc", "zero"}, {"matrix"}).Node("Gather", {"matrix", "zero"}, {"row"});
    builder.Node("Concat", sizes, {"to"}, {{"axis", int64_t{0}}}).Node("ConstantOfShape", {"to"}, {"z"});
    builder.Node("Add", {"x", "z"}, {"y"}).Output("y");
    return Holds(builder, {-1, 4});
  };
  EXPECT_TRUE(filled({"n", "four"}));
  EXPECT_TRUE(filled({"nc"}));
  EXPECT_FALSE(filled({"four", "n"}));
  EXPECT_FALSE(filled({"n", "n"}));
  EXPECT_FALSE(filled({"row"}));
}

// x [batch, length, 6] and y [batch, length], through nodes that `add` adds, to "out" of the shape [batch, ...].
template <typename Add>
bool OfAnyLength(const Shape& output, const Add& add) {
  OnnxBuilder builder;
  builder.Input("x", {-1, -1, 6}).Input("y", {-1, -1}).Counting("table", {32, 6}).Counting("square", {1, 1, 9, 9});
  builder.Int64s("zero", {1}, {0}).Int64s("one", {1}, {1}).Int64s("two", {1}, {2}).Int64s("minus", {1}, {-1});
  builder.Int64s("0", {}, {0}).Int64s("1", {}, {1}).Int64s("heads", {4}, {0, 0, 2, 3}).Int64s("six", {1}, {6});
  builder.Node("Shape", {"x"}, {"sizes"}).Node("Gather", {"sizes", "1"}, {"length"});
  builder.Node("Gather", {"sizes", "0"}, {"batch"}).Node("Range", {"0", "length", "1"}, {"places"});
  builder.Node("Unsqueeze", {"length", "zero"}, {"length1"}).Node("Unsqueeze", {"batch", "zero"}, {"batch1"});
  add(builder);
  builder.Output("out");
  return Holds(builder, output);
}

TEST(BatchProof, RequestsOfOneLengthMakeABatch) {
  EXPECT_TRUE(OfAnyLength({-1, -1, 6}, [](OnnxBuilder& b) {
    b.Node("Gather", {"table", "places"}, {"p"})
        .Node("Unsqueeze", {"p", "zero"}, {"p1"})
        .Node("Add", {"x", "p1"}, {"out"});
  })) << "positions";
  EXPECT_FALSE(OfAnyLength({-1, -1, 6}, [](OnnxBuilder& b) {
    b.Node("Gather", {"table", "places"}, {"p"})
        .Node("Unsqueeze", {"p", "one"}, {"p1"})
        .Node("Add", {"x", "p1"}, {"out"});
  })) << "positions of requests: a batch as long as its sequences would run";
  EXPECT_TRUE(OfAnyLength({-1, -1, -1}, [](OnnxBuilder& b) {
    b.Node("Slice", {"square", "zero", "length1", "two"}, {"s"}).Node("Squeeze", {"s", "zero"}, {"bias"});
    b.Node("Transpose", {"x"}, {"t"}, {{"perm", Ints{0, 2, 1}}}).Node("MatMul", {"x", "t"}, {"scores"});
    b.Node("Add", {"scores", "bias"}, {"out"});
  })) << "a bias, cut to the length";
  EXPECT_FALSE(OfAnyLength({-1, -1, 6}, [](OnnxBuilder& b) {
    b.Node("Slice", {"x", "zero", "one", "zero"}, {"first"}).Node("Add", {"x", "first"}, {"out"});
  })) << "the first of the batch";
  EXPECT_FALSE(OfAnyLength({-1, -1, 6}, [](OnnxBuilder& b) {
    b.Node("Range", {"0", "batch", "1"}, {"rows"}).Node("Gather", {"table", "rows"}, {"r"});
    b.Node("Unsqueeze", {"r", "one"}, {"r1"}).Node("Add", {"x", "r1"}, {"out"});
  })) << "numbers of requests";
  EXPECT_FALSE(OfAnyLength({-1, -1, 6}, [](OnnxBuilder& b) {
    b.Node("Slice", {"table", "zero", "batch1", "zero"}, {"r"}).Node("Unsqueeze", {"r", "one"}, {"r1"});
    b.Node("Add", {"x", "r1"}, {"out"});
  })) << "as many as the batch has";
  EXPECT_FALSE(OfAnyLength({-1, -1, 6}, [](OnnxBuilder& b) {
    b.Node("Mul", {"batch", "length"}, {"n"}).Node("Cast", {"n"}, {"f"}, {{"to", int64_t{1}}});
    b.Node("Mul", {"x", "f"}, {"out"});
  })) << "a number that goes by the batch";
  EXPECT_TRUE(OfAnyLength({-1, -1, 6}, [](OnnxBuilder& b) {
    b.Node("Cast", {"length"}, {"f"}, {{"to", int64_t{1}}}).Node("Mul", {"x", "f"}, {"out"});
  })) << "a number that goes by the length";
  EXPECT_FALSE(OfAnyLength({-1, -1, 6}, [](OnnxBuilder& b) {
    b.Node("Transpose", {"x"}, {"t"}, {{"perm", Ints{1, 0, 2}}})
        .Node("Concat", {"length1", "batch1", "six"}, {"to"}, {{"axis", int64_t{0}}});
    b.Node("Reshape", {"t", "to"}, {"out"});
  })) << "length and batch have changed places";
}

TEST(BatchProof, ReshapesThatMergeRequestsAreFollowedAsFarAsRequestsLieTogether) {
  const auto through = [](const Ints& there, const Ints& back, const std::string& op = "Relu") {
    OnnxBuilder builder;
    builder.Input("x", {-1, 4, 6}).Int64s("there", {static_cast<int64_t>(there.size())}, there);
    builder.Int64s("back", {static_cast<int64_t>(back.size())}, back).Node("Reshape", {"x", "there"}, {"u"});
    builder.Node(op, {"u"}, {"v"}).Node("Reshape", {"v", "back"}, {"y"}).Output("y");
    return Holds(builder, {-1, 4, 6});
  };
  EXPECT_TRUE(through({-1, 6}, {-1, 4, 6}));
  EXPECT_TRUE(through({-1, 2, 3}, {-1, 4, 6}));
  EXPECT_TRUE(through({0, 0, 2, 3}, {0, 0, 6}));
  EXPECT_FALSE(through({-1, 16}, {-1, 4, 6})) << "windows of 16 elements reach into the next request";
  EXPECT_FALSE(through({1, -1, 6}, {-1, 4, 6})) << "a dimension before the batch's";
  EXPECT_FALSE(through({-1, 6}, {-1, 2, 6}));
  EXPECT_FALSE(through({3, -1}, {-1, 4, 6}));
  EXPECT_FALSE(through({-1, 6}, {0, 6, 1}));
}

TEST(BatchProof, FollowsSizesTimesTheBatch) {
  const auto merged = [](const std::string& op, const std::string& back) {
    return OfAnyLength({-1, -1, 6}, [&](OnnxBuilder& b) {
      b.Node(op, {"batch1", "two"}, {"merged"})
          .Node("Concat", {"merged", "minus", "six"}, {"to"}, {{"axis", int64_t{0}}});
      b.Node("Concat", {back, "minus", "six"}, {"from"}, {{"axis", int64_t{0}}});
      b.Node("Reshape", {"x", "to"}, {"u"}).Node("Relu", {"u"}, {"v"}).Node("Reshape", {"v", "from"}, {"out"});
    });
  };
  EXPECT_TRUE(merged("Mul", "batch1"));
  EXPECT_FALSE(merged("Add", "batch1"));
  EXPECT_FALSE(merged("Mul", "length1"));
  EXPECT_FALSE(merged("Mul", "merged"));
}

// Lists and shapes that double with each node, numbers that overflow, sizes below 0.
TEST(BatchProof, MalformedGraphsProveNothingAndTakeNoMemory) {
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

TEST(BatchProof, WhatMovesElementsLeavesTheRowsDimensionAsItIs) {
  const auto moved = [](const std::string& op, const std::vector<std::string>& inputs, const Shape& output,
                        const Attributes& attributes = {}) {
    OnnxBuilder builder;
    builder.Input("x", {-1, 4, 6}).Int64s("zero", {1}, {0}).Int64s("one", {1}, {1}).Int64s("two", {1}, {2});
    builder.Int64s("inner", {6}, {0, 1, 2, 0, 0, 1}).Int64s("outer", {6}, {1, 0, 0, 0, 0, 0});
    builder.Int64s("twice", {3}, {1, 2, 1}).Int64s("both", {3}, {2, 1, 1}).Floats("larger", {3}, {1, 1, 2});
    builder.Floats("longer", {3}, {2, 1, 1}).Node("Identity", {"x"}, {"index"}).Node(op, inputs, {"y"}, attributes);
    builder.Output("y");
    return Holds(builder, output);
  };
  EXPECT_TRUE(moved("Slice", {"x", "one", "two", "one"}, {-1, 1, 6}));
  EXPECT_FALSE(moved("Slice", {"x", "one", "two", "zero"}, {-1, 4, 6}));
  EXPECT_FALSE(moved("Slice", {"x", "one", "two"}, {-1, 4, 6})) << "of axis 0";
  EXPECT_TRUE(moved("Pad", {"x", "inner"}, {-1, 5, 9}));
  EXPECT_FALSE(moved("Pad", {"x", "outer"}, {-1, 4, 6}));
  EXPECT_TRUE(moved("Tile", {"x", "twice"}, {-1, 8, 6}));
  EXPECT_FALSE(moved("Tile", {"x", "both"}, {-1, 4, 6}));
  EXPECT_TRUE(moved("Resize", {"x", "", "larger"}, {-1, 4, 12}));
  EXPECT_FALSE(moved("Resize", {"x", "", "longer"}, {-1, 4, 6}));
  EXPECT_TRUE(moved("CumSum", {"x", "one"}, {-1, 4, 6}));
  EXPECT_FALSE(moved("CumSum", {"x", "zero"}, {-1, 4, 6}));
  EXPECT_TRUE(moved("Trilu", {"x"}, {-1, 4, 6}));
}

// x, of shape [-1, 4, 6], turned to have its rows in dimension 1, through an operator and back.
bool Turned(int64_t opset, const std::string& op, const std::vector<std::string>& inputs, const Shape& constant,
            const Attributes& attributes = {}, const Shape& input = {-1, 4, 6}) {
  OnnxBuilder builder(opset);
  builder.Input("x", input).Counting("c", constant).Node("Transpose", {"x"}, {"t"}, {{"perm", Ints{1, 0, 2}}});
  builder.Node(op, inputs, {"u"}, attributes).Node("Transpose", {"u"}, {"y"}, {{"perm", Ints{1, 0, 2}}}).Output("y");
  return Holds(builder, {-1, -1, -1});
}

TEST(BatchProof, SoftmaxOfOldRunsFromDimensionOneOn) {
  EXPECT_FALSE(Turned(11, "Softmax", {"t"}, {1}));
  EXPECT_FALSE(Turned(11, "Hardmax", {"t"}, {1}));
  EXPECT_TRUE(Turned(11, "LogSoftmax", {"t"}, {1}, {{"axis", int64_t{2}}}));
  EXPECT_TRUE(Turned(13, "Softmax", {"t"}, {1}));
}

TEST(BatchProof, ConcatWithoutAnAxisIsOfDimensionOne) {
  EXPECT_FALSE(Turned(17, "Concat", {"t", "t"}, {1}));
  EXPECT_TRUE(OneNode("Concat", {"x", "x"}, {}, {-1, 8, 6}));
}

TEST(BatchProof, SlopesOfOldAreOfChannels) {
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

TEST(BatchProof, ReadsTheArgumentsThatAreRun) {
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

TEST(BatchProof, ScalesDoNotBroadcast) {
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

TEST(BatchProof, NoRowsAreNoSize) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 6}).Int64s("zero", {1}, {0}).Int64s("one", {1}, {1}).Int64s("six", {1}, {6});
  builder.Int64s("threes", {2}, {-1, 3}).Int64s("fours", {2}, {-1, 4}).Node("Shape", {"x"}, {"back"});
  builder.Node("Slice", {"x", "zero", "zero", "one"}, {"none"}).Node("Reshape", {"none", "threes"}, {"still"});
  builder.Node("Shape", {"still"}, {"s"}).Node("Gather", {"s", "zero"}, {"n"});
  builder.Node("Concat", {"n", "six"}, {"to"}, {{"axis", int64_t{0}}}).Node("Reshape", {"x", "to"}, {"u"});
  builder.Node("Reshape", {"u", "fours"}, {"v"}).Node("Softmax", {"v"}, {"w"}).Node("Reshape", {"w", "back"}, {"y"});
  EXPECT_FALSE(Holds(builder.Output("y"), {-1, 6})) << "a size of 0 is that of the input";
}

TEST(BatchProof, OfTwoLengthsEitherMayBeOne) {
  OnnxBuilder builder;
  builder.Input("x", {-1, -1}).Input("y", {-1, -1}).Int64s("minus", {1}, {-1}).Int64s("one", {1}, {1});
  builder.Node("Add", {"y", "x"}, {"sum"}).Node("Shape", {"sum"}, {"sizes"}).Node("Gather", {"sizes", "one"}, {"n"});
  builder.Node("Concat", {"minus", "n"}, {"to"}, {{"axis", int64_t{0}}}).Node("Shape", {"x"}, {"back"});
  builder.Node("Reshape", {"x", "to"}, {"u"}).Node("Softmax", {"u"}, {"v"}).Node("Reshape", {"v", "back"}, {"out"});
  EXPECT_FALSE(Holds(builder.Output("out"), {-1, -1})) << "x may have one column, and y two";
}

TEST(BatchProof, NumbersOf32BitsWrap) {
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

// What is wrong with `add`'s nodes is found when they run, not before; u is theirs.
template <typename Add>
bool Stands(const Add& add) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 4}).Int64s("zero", {1}, {0}).Int64s("one", {1}, {1}).Int64s("minus", {1}, {-5});
  builder.Int64s("four", {4}, {1, 2, 3, 4}).Int64s("six", {2}, {2, 3}).Int64s("few", {2}, {-2, -2});
  add(builder);
  return Holds(builder.Node("Relu", {"x"}, {"y"}).Output("y"), {-1, 4});
}

TEST(BatchProof, LargeImagesAreResizedWithRounding) {
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

TEST(BatchProof, SizesBelowZeroAreNone) {
  EXPECT_TRUE(
      Stands([](OnnxBuilder& b) { b.Node("ConstantOfShape", {"minus"}, {"n"}).Node("Identity", {"n"}, {"u"}); }));
  EXPECT_TRUE(Stands([](OnnxBuilder& b) {
    b.Node("Reshape", {"four", "few"}, {"n"}).Node("Transpose", {"n"}, {"u"});
  }));
  EXPECT_TRUE(Stands([](OnnxBuilder& b) {
    b.Node("Expand", {"one", "few"}, {"n"}).Node("Slice", {"n", "zero", "one"}, {"u"});
  }));
}

TEST(BatchProof, ListsHaveAsManyElementsAsTheirShape) {
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

TEST(BatchProof, EmptyListsMayBeOfAnyShape) {
  const auto loads = [](const std::string& op, const std::vector<std::string>& inputs, const Shape& shape) {
    OnnxBuilder builder;
    builder.Input("x", {-1, 4}).Int64s("empty", shape, {}).Int64s("zero", {1}, {0}).Int64s("one", {1}, {1});
    builder.Node(op, inputs, {"u"}).Node("Relu", {"x"}, {"y"}).Output("y");
    return ReadProgram(std::span<const std::byte>(builder.Bytes())).ok();
  };
  constexpr int64_t kLong = int64_t{1} << 31;
  EXPECT_FALSE(loads("Slice", {"empty", "zero", "one"}, {0, kLong, kLong - 1})) << "it is too large, once it is read";
  EXPECT_FALSE(loads("Slice", {"empty", "zero", "one", "one"}, {int64_t{1} << 40, 0}));
  EXPECT_FALSE(loads("Transpose", {"empty"}, {0, int64_t{1} << 40}));
}

TEST(BatchProof, ListsAndRanksDoNotGrowWithoutBounds) {
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

TEST(BatchProof, NumbersMayBeAsLargeAsTheyCome) {
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
}  // namespace swizzle::fallback

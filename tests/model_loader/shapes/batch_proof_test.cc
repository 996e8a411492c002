#include "model_loader/shapes/batch_proof.h"

#include <gtest/gtest.h>

#include "tests/model_loader/shapes/batch_holds.h"

namespace swizzle {
namespace {

using swizzle::testing::Attributes;
using swizzle::testing::Holds;
using swizzle::testing::Ints;
using swizzle::testing::OfAnyLength;
using swizzle::testing::OneNode;
using swizzle::testing::OnnxBuilder;

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

// As torch.nn.MultiheadAttention does: length first, the length and the batch become one dimension, then two again.
TEST(BatchProof, WhatStandsBeforeRowsMayBecomeOneWithThem) {
  const auto holds = [](const Ints& to, const std::string& op, const Ints& back, const Ints& order = {1, 0, 2}) {
    OnnxBuilder builder;
    builder.Input("x", {-1, 4, 6}).Counting("m", {6, 6}).Int64s("axes", {1}, {0});
    builder.Node("Transpose", {"x"}, {"first"}, {{"perm", Ints{1, 0, 2}}});
    builder.Int64s("to", {static_cast<int64_t>(to.size())}, to).Node("Reshape", {"first", "to"}, {"u"});
    if (op == "Gemm") builder.Node(op, {"u", "m"}, {"v"});
    if (op == "Relu" || op == "Softmax") builder.Node(op, {"u"}, {"v"});
    if (op == "ReduceSum") builder.Node(op, {"u", "axes"}, {"v"});
    builder.Int64s("back", {static_cast<int64_t>(back.size())}, back).Node("Reshape", {"v", "back"}, {"w"});
    builder.Node("Transpose", {"w"}, {"y"}, {{"perm", order}}).Output("y");
    return Holds(builder, {-1, 4, 6});
  };
  EXPECT_TRUE(holds({-1, 6}, "Relu", {4, -1, 6}));
  EXPECT_TRUE(holds({-1, 6}, "Gemm", {4, -1, 6}));
  EXPECT_TRUE(holds({-1, 6}, "Softmax", {4, -1, 6}));
  EXPECT_TRUE(holds({2, -1, 6}, "Relu", {4, -1, 6}));
  EXPECT_TRUE(holds({-1, 3}, "Relu", {4, -1, 6})) << "of each request two for one";
  EXPECT_FALSE(holds({-1, 6}, "ReduceSum", {4, -1, 6}));
  EXPECT_FALSE(holds({-1, 6}, "Relu", {-1, 4, 6}, {0, 1, 2})) << "rows of other requests";
  EXPECT_FALSE(holds({-1, 12}, "Relu", {4, -1, 6})) << "two requests in one";
}

TEST(BatchProof, ReshapesThatMergeRequestsAreFollowedAsFarAsRequestsLieTogether) {
  const auto through = [](const Ints& there, const Ints& back, const std::string& op = "Relu", int64_t allow_zero = 0) {
    OnnxBuilder builder;
    builder.Input("x", {-1, 4, 6}).Int64s("there", {static_cast<int64_t>(there.size())}, there);
    builder.Int64s("back", {static_cast<int64_t>(back.size())}, back)
        .Node("Reshape", {"x", "there"}, {"u"}, {{"allowzero", allow_zero}});
    builder.Node(op, {"u"}, {"v"}).Node("Reshape", {"v", "back"}, {"y"}).Output("y");
    return Holds(builder, {-1, 4, 6});
  };
  EXPECT_TRUE(through({-1, 6}, {-1, 4, 6}));
  EXPECT_TRUE(through({-1, 2, 3}, {-1, 4, 6}));
  EXPECT_TRUE(through({0, 0, 2, 3}, {0, 0, 6}));
  EXPECT_TRUE(through({-1, 2, 3}, {-1, 4, 6}, "Relu", 1)) << "as torch.export writes it";
  EXPECT_FALSE(through({0, 4, 2, 3}, {-1, 4, 6}, "Relu", 1)) << "no elements";
  EXPECT_FALSE(through({-1, 16}, {-1, 4, 6})) << "windows of 16 elements reach into the next request";
  EXPECT_TRUE(through({1, -1, 6}, {-1, 4, 6}));
  EXPECT_FALSE(through({-1, 6}, {-1, 2, 6}));
  EXPECT_FALSE(through({3, -1}, {-1, 4, 6}));
  EXPECT_FALSE(through({-1, 6}, {0, 6, 1}));
}

TEST(BatchProof, ALengthStandsForOneDimensionAlone) {
  OnnxBuilder builder;
  builder.Input("x", {-1, 4, -1, 3}).Int64s("minus", {1}, {-1}).Int64s("two", {1}, {2}).Int64s("zero", {1}, {0});
  builder.Node("Shape", {"x"}, {"back"}).Node("Gather", {"back", "two"}, {"length"});
  builder.Node("Concat", {"minus", "length", "zero", "two"}, {"to"}, {{"axis", int64_t{0}}});
  builder.Node("Reshape", {"x", "to"}, {"u"}).Node("Relu", {"u"}, {"v"}).Node("Reshape", {"v", "back"}, {"y"});
  EXPECT_FALSE(Holds(builder.Output("y"), {-1, 4, -1, 3})) << "once as a length, once as what it was";
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

}  // namespace
}  // namespace swizzle

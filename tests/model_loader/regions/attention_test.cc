#include "model_loader/regions/attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/cpu/cpu_backend.h"
#include "model_loader/interpreter/run/load.h"
#include "model_loader/regions/plan_regions.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/status_matchers.h"

namespace swizzle::regions {
namespace {

using interpreter::Array;
using swizzle::testing::IsOk;
using swizzle::testing::OnnxBuilder;

constexpr int64_t kHeads = 2, kTokens = 20, kChannels = 4, kPlaces = 11;

// Regular, and below 1.5 in magnitude.
std::vector<float> Drawn(int64_t count, int64_t step) {
  std::vector<float> drawn(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) drawn[static_cast<size_t>(i)] = static_cast<float>(i * step % 23 - 11) / 8;
  return drawn;
}

class AttentionTest : public ::testing::Test {
 protected:
  // The first output for these inputs, of the program as it is or of its regions.
  StatusOr<Array> Run(const interpreter::Program& program, const std::vector<Shape>& shapes,
                      const std::vector<std::vector<float>>& inputs) {
    std::vector<TensorView> views;
    for (size_t i = 0; i < shapes.size(); ++i) {
      views.push_back({DType::kFloat32, shapes[i], std::as_bytes(std::span(inputs[i]))});
    }
    SWIZZLE_ASSIGN_OR_RETURN(const std::unique_ptr<Stream> stream, backend_->NewStream(2));
    SWIZZLE_ASSIGN_OR_RETURN(std::vector<Array> outputs, program.Run(views, *stream));
    return outputs.at(0);
  }

  RegionalProgram Plan(const OnnxBuilder& builder) {
    program_ = *interpreter::ReadProgram(std::span<const std::byte>(builder.Bytes()));
    return PlanRegions(program_, *backend_, {.threads = 2, .tuning_budget = absl::ZeroDuration()});
  }

  void ExpectSame(const RegionalProgram& regional, const std::vector<Shape>& shapes,
                  const std::vector<std::vector<float>>& inputs) {
    const auto expected = Run(*program_, shapes, inputs), actual = Run(*regional.program, shapes, inputs);
    ASSERT_THAT(expected, IsOk());
    ASSERT_THAT(actual, IsOk());
    ASSERT_EQ(actual->shape, expected->shape);
    for (size_t i = 0; i < expected->As<float>().size(); ++i) {
      ASSERT_NEAR(actual->As<float>()[i], expected->As<float>()[i], 1e-4) << i;
    }
  }

  const std::unique_ptr<Backend> backend_ = NewCpuBackend();
  std::shared_ptr<const interpreter::Program> program_;
};

// x -> queries q, keys k, of which kt is the transpose, and values v, [batch, heads, tokens, channels].
void AddOperands(OnnxBuilder& builder) {
  builder.Int64s("heads", {4}, {0, kTokens, kHeads, kChannels});
  for (const std::string name : {"q", "k", "v"}) {
    const int64_t side = kHeads * kChannels;
    builder.Floats("w" + name, {side, side}, Drawn(side * side, name[0]));
    builder.Node("MatMul", {"x", "w" + name}, {name + "1"}).Node("Reshape", {name + "1", "heads"}, {name + "2"});
    builder.Node("Transpose", {name + "2"}, {name}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
  }
  builder.Node("Transpose", {"k"}, {"kt"}, {{"perm", std::vector<int64_t>{0, 1, 3, 2}}});
}

OnnxBuilder Operands() {
  OnnxBuilder builder;
  builder.Input("x", {-1, kTokens, kHeads * kChannels});
  AddOperands(builder);
  return builder;
}

std::vector<float> Tokens(int64_t batch) { return Drawn(batch * kTokens * kHeads * kChannels, 7); }

// Keys whose number is not positive are left out, before softmax and, if `again`, behind it.
OnnxBuilder LeavingOut(float number, bool again) {
  OnnxBuilder builder = Operands();
  builder.Input("kept", {-1, 1, 1, kTokens}).Floats("zero", {}, {0}).Floats("number", {}, {number});
  builder.Node("Greater", {"kept", "zero"}, {"keeps"}).Node("Not", {"keeps"}, {"drops"});
  builder.Node("MatMul", {"q", "kt"}, {"s"}).Node("Where", {"drops", "number", "s"}, {"t"});
  builder.Node("Softmax", {"t"}, {"p"}, {{"axis", int64_t{-1}}});
  if (again) builder.Node("Where", {"drops", "zero", "p"}, {"r"});
  builder.Node("MatMul", {again ? "r" : "p", "v"}, {"y"}).Output("y");
  return builder;
}

TEST_F(AttentionTest, ConditionsLeaveKeysOut) {
  std::vector<float> kept = Drawn(3 * kTokens, 5);
  std::fill_n(kept.begin() + kTokens, kTokens, -1.0f);  // none of the second sequence
  for (const bool again : {false, true}) {
    const RegionalProgram regional = Plan(LeavingOut(std::numeric_limits<float>::lowest(), again));
    EXPECT_EQ(regional.program->OperatorCounts(), "Greater:1,Not:1,Reshape:3");
    ExpectSame(regional, {{3, kTokens, kHeads * kChannels}, {3, 1, 1, kTokens}}, {Tokens(3), kept});
  }
}

TEST_F(AttentionTest, NumbersThatScoresMayReachReplaceThem) {
  const RegionalProgram regional = Plan(LeavingOut(-2.0f, false));
  EXPECT_NE(regional.program->OperatorCounts().find("Where:1"), std::string::npos);
  ExpectSame(regional, {{2, kTokens, kHeads * kChannels}, {2, 1, 1, kTokens}}, {Tokens(2), Drawn(2 * kTokens, 5)});
}

// Of each image as many sequences as it has windows, whose scores have a bias by place and a mask by window.
TEST_F(AttentionTest, WindowsHaveMasksByTurns) {
  constexpr int64_t kWindows = 3, kPairs = kTokens * kTokens;
  const auto windows = [&](bool biased) {
    OnnxBuilder builder;
    builder.Input("images", {-1, kWindows, kTokens, kHeads * kChannels});
    builder.Int64s("tokens", {3}, {-1, kTokens, kHeads * kChannels}).Node("Reshape", {"images", "tokens"}, {"x"});
    AddOperands(builder);
    builder.Floats("bias", {1, kHeads, kTokens, kTokens}, Drawn(kHeads * kPairs, 5));
    builder.Floats("mask", {1, kWindows, 1, kTokens, kTokens}, Drawn(kWindows * kPairs, 3));
    builder.Int64s("split", {5}, {-1, kWindows, kHeads, kTokens, kTokens});
    builder.Int64s("joined", {4}, {-1, kHeads, kTokens, kTokens});
    builder.Node("MatMul", {"q", "kt"}, {"s"});
    if (biased) builder.Node("Add", {"s", "bias"}, {"t"});
    builder.Node("Reshape", {biased ? "t" : "s", "split"}, {"u"}).Node("Add", {"mask", "u"}, {"m"});
    builder.Node("Reshape", {"m", "joined"}, {"w"}).Node("Softmax", {"w"}, {"p"}, {{"axis", int64_t{-1}}});
    return builder.Node("MatMul", {"p", "v"}, {"y"}).Output("y");
  };
  for (const bool biased : {false, true}) {
    const RegionalProgram regional = Plan(windows(biased));
    EXPECT_EQ(regional.program->OperatorCounts(), "Reshape:4");
    for (const int64_t images : {1, 4}) {
      ExpectSame(regional, {{images, kWindows, kTokens, kHeads * kChannels}}, {Tokens(images * kWindows)});
    }
  }
}

// As deep as a file likes: what is added is then made before the call, and reading it takes no more of the stack.
TEST_F(AttentionTest, LongSumsAreNotFollowedToTheirEnd) {
  constexpr int kSums = 30'000;
  OnnxBuilder builder = Operands();
  builder.Node("MatMul", {"q", "kt"}, {"sum0"}).Floats("one", {1}, {0x1p-16f});
  for (int i = 0; i < kSums; ++i) {
    builder.Node("Add", {"sum" + std::to_string(i), "one"}, {"sum" + std::to_string(i + 1)});
  }
  builder.Node("Softmax", {"sum" + std::to_string(kSums)}, {"p"}, {{"axis", int64_t{-1}}});
  builder.Node("MatMul", {"p", "v"}, {"y"}).Output("y");
  const RegionalProgram regional = Plan(builder);
  EXPECT_FALSE(regional.program->OperatorCounts().empty());
}

// The same of factors.
TEST_F(AttentionTest, LongProductsAreNotFollowedToTheirEnd) {
  constexpr int kProducts = 100;
  OnnxBuilder builder = Operands();
  builder.Floats("two", {1}, {2}).Floats("half", {1}, {0.5f});
  std::string queries = "q";
  for (int i = 0; i < kProducts; ++i) {
    const std::string next = "q" + std::to_string(100 + i);
    builder.Node("Mul", {queries, i % 2 == 0 ? "two" : "half"}, {next});
    queries = next;
  }
  builder.Node("MatMul", {queries, "kt"}, {"s"}).Node("Softmax", {"s"}, {"p"}, {{"axis", int64_t{-1}}});
  builder.Node("MatMul", {"p", "v"}, {"y"}).Output("y");
  const RegionalProgram regional = Plan(builder);
  EXPECT_NE(regional.program->OperatorCounts().find("Mul"), std::string::npos);
  ExpectSame(regional, {{2, kTokens, kHeads * kChannels}}, {Tokens(2)});
}

// Scores with products at places, of queries and of keys; the indices are an input, or ones that follow from the pair.
// They are of one sequence and head, and expanded to all.
OnnxBuilder WithPlaces(bool indices_are_input, bool expanded = true) {
  OnnxBuilder builder = Operands();
  builder.Floats("root", {}, {1.5f})
      .Floats("places", {1, kHeads, kChannels, kPlaces}, Drawn(kHeads * kChannels * kPlaces, 3));
  builder.Int64s("zero", {1}, {0}).Int64s("one", {1}, {1}).Int64s("rest", {3}, {kHeads, kTokens, kTokens});
  if (indices_are_input) {
    builder.Input("i", {1, 1, kTokens, kTokens}).Node("Cast", {"i"}, {"index"}, {{"to", int64_t{7}}});
  } else {
    std::vector<int64_t> index;
    for (int64_t i = 0; i < kTokens * kTokens; ++i) index.push_back((i / kTokens * 3 + i % kTokens) % kPlaces);
    builder.Int64s("index", {1, 1, kTokens, kTokens}, index);
  }
  for (const std::string of : {"q", "k"}) {
    builder.Node("MatMul", {of, "places"}, {of + "_all"});
    if (expanded) {
      builder.Node("Shape", {of + "_all"}, {of + "_shape"});
      builder.Node("Slice", {of + "_shape", "zero", "one"}, {of + "_batch"});
      builder.Node("Concat", {of + "_batch", "rest"}, {of + "_pairs"}, {{"axis", int64_t{0}}});
      builder.Node("Expand", {"index", of + "_pairs"}, {of + "_index"});
    }
    const std::string indices = expanded ? of + "_index" : "index";
    builder.Node("GatherElements", {of + "_all", indices}, {of + "_picked"}, {{"axis", int64_t{-1}}});
    builder.Node("Div", {of + "_picked", "root"}, {of + "_placed"});
  }
  builder.Node("Transpose", {"k_placed"}, {"turned"}, {{"perm", std::vector<int64_t>{0, 1, 3, 2}}});
  builder.Node("MatMul", {"q", "kt"}, {"s"}).Node("Add", {"s", "q_placed"}, {"t"}).Node("Add", {"t", "turned"}, {"u"});
  builder.Node("Softmax", {"u"}, {"p"}, {{"axis", int64_t{-1}}}).Node("MatMul", {"p", "v"}, {"y"}).Output("y");
  return builder;
}

TEST_F(AttentionTest, ProductsAtPlacesAreOfAttention) {
  const RegionalProgram regional = Plan(WithPlaces(false));
  EXPECT_EQ(regional.program->OperatorCounts(), "Reshape:3");
  for (const int64_t batch : {1, 3}) ExpectSame(regional, {{batch, kTokens, kHeads * kChannels}}, {Tokens(batch)});
}

TEST_F(AttentionTest, PlacesMayCountFromTheLastAndHaveToExist) {
  const RegionalProgram regional = Plan(WithPlaces(true));
  EXPECT_EQ(regional.program->OperatorCounts(), "Cast:1,Reshape:3");
  const std::vector<Shape> shapes = {{2, kTokens, kHeads * kChannels}, {1, 1, kTokens, kTokens}};
  std::vector<float> index(kTokens * kTokens, 2);
  ExpectSame(regional, shapes, {Tokens(2), index});
  index[7] = -1;
  ExpectSame(regional, shapes, {Tokens(2), index});
  for (const float wrong : {static_cast<float>(kPlaces), static_cast<float>(-kPlaces - 1)}) {
    index[7] = wrong;
    EXPECT_FALSE(Run(*regional.program, shapes, {Tokens(2), index}).ok());
  }
}

// What is gathered then is of the first sequence and head alone, and the same for all.
TEST_F(AttentionTest, IndicesOfOneSequenceAreOfTheFirst) {
  const RegionalProgram regional = Plan(WithPlaces(false, false));
  for (const int64_t batch : {1, 3}) ExpectSame(regional, {{batch, kTokens, kHeads * kChannels}}, {Tokens(batch)});
}

// Queries, keys and values as slices of one product, in this order.
OnnxBuilder Packed(const std::vector<int64_t>& slices) {
  constexpr int64_t kSide = kHeads * kChannels;
  OnnxBuilder builder;
  builder.Input("x", {-1, kTokens, kSide}).Floats("w", {kSide, 3 * kSide}, Drawn(3 * kSide * kSide, 5));
  builder.Int64s("parts", {5}, {0, -1, 3, kHeads, kChannels}).Node("MatMul", {"x", "w"}, {"qkv"});
  builder.Node("Reshape", {"qkv", "parts"}, {"qkv5"});
  builder.Node("Transpose", {"qkv5"}, {"turned"}, {{"perm", std::vector<int64_t>{2, 0, 3, 1, 4}}});
  const char* const names[] = {"q", "k", "v"};
  for (size_t i = 0; i < 3; ++i) {
    const std::string name = names[i];
    builder.Int64s("i" + name, {}, {slices[i]}).Node("Gather", {"turned", "i" + name}, {name}, {{"axis", int64_t{0}}});
  }
  builder.Node("Transpose", {"k"}, {"kt"}, {{"perm", std::vector<int64_t>{0, 1, 3, 2}}});
  builder.Node("MatMul", {"q", "kt"}, {"s"}).Node("Softmax", {"s"}, {"p"}, {{"axis", int64_t{-1}}});
  builder.Node("MatMul", {"p", "v"}, {"y"}).Output("y");
  return builder;
}

TEST_F(AttentionTest, SlicesOfOneProductAreReadWhereTheyAre) {
  for (const std::vector<int64_t>& slices : {std::vector<int64_t>{0, 1, 2}, {-1, 0, -2}}) {
    const RegionalProgram regional = Plan(Packed(slices));
    EXPECT_EQ(regional.program->OperatorCounts(), "Reshape:1");
    for (const int64_t batch : {1, 3}) ExpectSame(regional, {{batch, kTokens, kHeads * kChannels}}, {Tokens(batch)});
  }
}

}  // namespace
}  // namespace swizzle::regions

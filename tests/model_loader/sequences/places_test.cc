// Attention whose scores have products of queries and keys with vectors of places (DeBERTa): what of a graph becomes
// the weight of a plan's disentangled attention.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/operator/place_vectors.h"
#include "model_loader/passes/lower.h"
#include "tests/support/recognised.h"

namespace swizzle {
namespace {

using testing::IsError;
using testing::IsOk;
using testing::Lowered;
using testing::OnnxBuilder;
using Ints = std::vector<int64_t>;

constexpr int64_t kHeads = 2, kSize = 2, kPlaceChannels = kHeads * kSize, kPlaces = 6;

// Element [channel][place] of the vectors that queries or keys meet.
float VectorOf(bool of_keys, int64_t channel, int64_t place) {
  return static_cast<float>(100 * (of_keys ? 1 : 0) + 10 * channel + place);
}

std::vector<float> Vectors(bool of_keys) {  // [heads, kSize, kPlaces]
  std::vector<float> vectors;
  for (int64_t i = 0; i < kPlaceChannels * kPlaces; ++i) vectors.push_back(VectorOf(of_keys, i / kPlaces, i % kPlaces));
  return vectors;
}

// Ids [batch, length], queries "q" and values [batch, heads, length, size], keys "k" likewise and, transposed, in the
// scores "s", the indices "places" [1, 1, length, length] of which query and key are as far apart as `distance` says.
OnnxBuilder Before(const std::string& distance = "Sub", const std::string& rows = "i", const std::string& columns = "j",
                   int64_t length = -1) {
  OnnxBuilder builder;
  builder.Int64Input("ids", {-1, length}).Counting("words", {5, 4}).Node("Gather", {"words", "ids"}, {"x"});
  builder.Counting("wq", {4, 4}).Counting("wk", {4, 4}).Int64s("heads", {4}, {0, 0, kHeads, kSize});
  for (const std::string name : {"q", "k"}) {
    builder.Node("MatMul", {"x", "w" + name}, {name + ".m"}).Node("Reshape", {name + ".m", "heads"}, {name + ".h"});
    builder.Node("Transpose", {name + ".h"}, {name}, {{"perm", Ints{0, 2, 1, 3}}});
  }
  builder.Node("Transpose", {"k"}, {"k.t"}, {{"perm", Ints{0, 1, 3, 2}}}).Node("MatMul", {"q", "k.t"}, {"s"});
  builder.Int64s("zero", {}, {0}).Int64s("one", {}, {1}).Int64s("first", {1}, {0}).Int64s("second", {1}, {1});
  builder.Node("Shape", {"ids"}, {"shape"}).Node("Gather", {"shape", "one"}, {"length"});
  builder.Node("Range", {"zero", "length", "one"}, {"all"});
  builder.Node("Unsqueeze", {"all", "second"}, {"i"}).Node("Unsqueeze", {"all", "first"}, {"j"});
  builder.Int64s("middle", {}, {kPlaces / 2}).Int64s("last", {}, {kPlaces - 1}).Int64s("both", {2}, {0, 1});
  builder.Node(distance, {rows, columns}, {"apart"}).Node("Add", {"apart", "middle"}, {"moved"});
  builder.Node("Max", {"moved", "zero"}, {"least"}).Node("Min", {"least", "last"}, {"kept"});
  builder.Node("Unsqueeze", {"kept", "both"}, {"square"}).Node("Shape", {"s"}, {"scores"});
  builder.Node("Expand", {"square", "scores"}, {"places"});
  builder.Floats("of.q", {1, kHeads, kSize, kPlaces}, Vectors(false));
  return builder.Floats("of.k", {1, kHeads, kSize, kPlaces}, Vectors(true));
}

// The products of "q" or "k" with its vectors at the places, of keys turned so that they go with the scores.
OnnxBuilder& Placed(OnnxBuilder& builder, const std::string& tokens, const std::string& vectors,
                    const std::string& to) {
  builder.Node("MatMul", {tokens, vectors}, {to + ".all"});
  if (vectors == "of.q") return builder.Node("GatherElements", {to + ".all", "places"}, {to}, {{"axis", int64_t{3}}});
  builder.Node("GatherElements", {to + ".all", "places"}, {to + ".rows"}, {{"axis", int64_t{-1}}});
  return builder.Node("Transpose", {to + ".rows"}, {to}, {{"perm", Ints{0, 1, 3, 2}}});
}

OnnxBuilder AttendPlaces(OnnxBuilder builder, const std::string& scores) {
  builder.Node("Softmax", {scores}, {"p"}, {{"axis", int64_t{-1}}}).Node("MatMul", {"p", "q"}, {"y"});
  builder.Node("Transpose", {"y"}, {"merged"}, {{"perm", Ints{0, 2, 1, 3}}}).Int64s("rows", {3}, {0, 0, 4});
  return builder.Node("Reshape", {"merged", "rows"}, {"out"}).Output("out");
}

int64_t PlaceOf(int64_t apart) { return std::clamp<int64_t>(apart + kPlaces / 2, 0, kPlaces - 1); }

struct Expected {
  float scale = 1.0f, of_queries = 1.0f, of_keys = 1.0f;  // what products are multiplied by
};

// Places of queries go by query - key, those of keys by key - query.
void ExpectPlaces(const OnnxBuilder& builder, const Expected& expected) {
  const auto network = Lowered(builder);
  ASSERT_THAT(network, IsOk());
  ASSERT_THAT(network->Validate(), IsOk());
  const Layer& layer = network->layers.back();
  ASSERT_EQ(layer.op, Op::kDisentangledAttention);
  EXPECT_EQ(layer.attention().scale, expected.scale);
  const DenseMatrix& weight = *network->weights[layer.weight].matrix.As<DenseMatrix>();
  ASSERT_EQ(weight.rows, 2 * kPlaceChannels + 1);
  ASSERT_EQ(weight.cols, layer.attention().places);
  const DistancePlaces places(weight);
  for (int64_t distance = -20; distance <= 20; ++distance) {
    for (int64_t channel = 0; channel < kPlaceChannels; ++channel) {
      const auto at = [&](int64_t row) { return weight.values[row * weight.cols + places.At(distance)]; };
      EXPECT_EQ(at(channel), expected.of_queries * VectorOf(false, channel, PlaceOf(-distance))) << distance;
      EXPECT_EQ(at(kPlaceChannels + channel), expected.of_keys * VectorOf(true, channel, PlaceOf(distance)))
          << distance;
    }
  }
}

TEST(PlacesTest, ProductsOfQueriesAndOfKeys) {
  OnnxBuilder builder = Before();
  Placed(builder, "q", "of.q", "a");
  Placed(builder, "k", "of.k", "b").Node("Add", {"a", "b"}, {"sum"}).Node("Add", {"s", "sum"}, {"t"});
  ExpectPlaces(AttendPlaces(builder, "t"), {});
}

TEST(PlacesTest, ProductsOfOneOfThem) {
  OnnxBuilder of_queries = Before();
  Placed(of_queries, "q", "of.q", "a").Node("Add", {"a", "s"}, {"t"});
  ExpectPlaces(AttendPlaces(of_queries, "t"), {.of_keys = 0});
  OnnxBuilder of_keys = Before();
  Placed(of_keys, "k", "of.k", "b").Node("Add", {"s", "b"}, {"t"});
  ExpectPlaces(AttendPlaces(of_keys, "t"), {.of_queries = 0});
}

// All numbers of a fixed length are listed, so that its indices are no distances at first.
TEST(PlacesTest, IndicesOfAFixedLength) {
  OnnxBuilder builder = Before("Sub", "i", "j", /*length=*/12);
  Placed(builder, "q", "of.q", "a");
  Placed(builder, "k", "of.k", "b").Node("Add", {"a", "b"}, {"sum"}).Node("Add", {"s", "sum"}, {"t"});
  ExpectPlaces(AttendPlaces(builder, "t"), {});
  OnnxBuilder by_sum = Before("Add", "i", "j", /*length=*/12);
  Placed(by_sum, "q", "of.q", "a").Node("Add", {"s", "a"}, {"t"});
  EXPECT_THAT(Lowered(AttendPlaces(by_sum, "t")), IsError(StatusCode::kUnimplemented, "not supported"));
}

// Each product may be scaled by itself, and all together.
TEST(PlacesTest, Scales) {
  OnnxBuilder builder = Before();
  builder.Floats("two", {}, {2}).Floats("four", {}, {4}).Floats("eight", {}, {8});
  builder.Node("Div", {"s", "two"}, {"s.half"});
  Placed(builder, "q", "of.q", "a").Node("Mul", {"a", "four"}, {"a.more"}).Node("Add", {"s.half", "a.more"}, {"u"});
  Placed(builder, "k", "of.k", "b").Node("Div", {"b", "eight"}, {"b.less"}).Node("Add", {"u", "b.less"}, {"v"});
  builder.Node("Mul", {"v", "two"}, {"t"});
  ExpectPlaces(AttendPlaces(builder, "t"), {.scale = 1.0f, .of_queries = 8.0f, .of_keys = 0.25f});
}

// What transformers writes: vectors repeated for each sequence, batch and heads in one dimension.
TEST(PlacesTest, VectorsRepeatedForEachSequence) {
  OnnxBuilder builder = Before();
  builder.Int64s("flat", {3}, {-1, 0, kSize}).Int64s("zeroth", {1}, {0}).Int64s("kept.all", {2}, {1, 1});
  builder.Node("Slice", {"shape", "first", "second"}, {"batch"});
  builder.Node("Concat", {"batch", "kept.all"}, {"repeats"}, {{"axis", int64_t{0}}});
  builder.Floats("of.heads", {kHeads, kSize, kPlaces}, Vectors(false)).Node("Tile", {"of.heads", "repeats"}, {"tiled"});
  builder.Int64s("minus", {1}, {-1}).Node("Slice", {"shape", "second", "two"}, {"sides"}).Int64s("two", {1}, {2});
  builder.Node("Concat", {"minus", "sides", "two"}, {"flat.shape"}, {{"axis", int64_t{0}}});
  builder.Node("Reshape", {"q", "flat.shape"}, {"q.flat"}).Node("MatMul", {"q.flat", "tiled"}, {"all.places"});
  builder.Node("Concat", {"minus", "sides", "sides"}, {"pairs"}, {{"axis", int64_t{0}}});
  builder.Node("Reshape", {"places", "pairs"}, {"places.flat"}).Node("Reshape", {"s", "pairs"}, {"s.flat"});
  builder.Node("GatherElements", {"all.places", "places.flat"}, {"a"}, {{"axis", int64_t{2}}});
  builder.Node("Add", {"s.flat", "a"}, {"u"}).Node("Reshape", {"u", "scores"}, {"t"});
  ExpectPlaces(AttendPlaces(builder, "t"), {.of_keys = 0});
}

// Embeddings of masked tokens are nothing, and their probabilities are set to nothing once more.
TEST(PlacesTest, TokensTimesTheMask) {
  const auto with_mask = [](bool masks_attention) {
    OnnxBuilder builder = Before();
    builder.Int64Input("mask", {-1, -1}).Int64s("end", {1}, {2}).Int64s("sides.of", {2}, {1, 2});
    builder.Node("Unsqueeze", {"mask", "end"}, {"m"}).Node("Cast", {"m"}, {"f"}, {{"to", int64_t{1}}});
    builder.Node("Mul", {"x", "f"}, {"masked"}).Node("MatMul", {"masked", "wq"}, {"v.m"});
    builder.Node("Reshape", {"v.m", "heads"}, {"v.h"}).Node("Transpose", {"v.h"}, {"v"}, {{"perm", Ints{0, 2, 1, 3}}});
    builder.Node("Unsqueeze", {"mask", "sides.of"}, {"wide"}).Node("Cast", {"wide"}, {"b"}, {{"to", int64_t{9}}});
    builder.Floats("low", {}, {-1e9f}).Floats("none", {}, {0}).Node("Where", {"b", "s", "low"}, {"s.masked"});
    builder.Node("Softmax", {masks_attention ? "s.masked" : "s"}, {"p"}, {{"axis", int64_t{-1}}});
    if (masks_attention) builder.Node("Where", {"b", "p", "none"}, {"p.masked"});
    builder.Node("MatMul", {masks_attention ? "p.masked" : "p", "v"}, {"y"}).Int64s("rows", {3}, {0, 0, 4});
    builder.Node("Transpose", {"y"}, {"merged"}, {{"perm", Ints{0, 2, 1, 3}}});
    return builder.Node("Reshape", {"merged", "rows"}, {"out"}).Output("out");
  };
  const auto network = Lowered(with_mask(true));
  ASSERT_THAT(network, IsOk());
  EXPECT_TRUE(network->sequences->skips_masked);
  EXPECT_EQ(network->layers.back().op, Op::kAttention);
  EXPECT_THAT(Lowered(with_mask(false)), IsError(StatusCode::kUnimplemented, "tokens are multiplied by the mask"));
}

// What goes wrong would give other numbers, were it taken for a product with places.
TEST(PlacesTest, WhatIsNone) {
  const auto refused = [](OnnxBuilder builder, const std::string& why) {
    EXPECT_THAT(Lowered(AttendPlaces(std::move(builder), "t")), IsError(StatusCode::kUnimplemented, why)) << why;
  };
  OnnxBuilder of_others = Before();
  Placed(of_others, "k", "of.q", "a").Node("Add", {"s", "a"}, {"t"});
  refused(of_others, "products of other tokens than the scores'");
  OnnxBuilder not_turned = Before();
  not_turned.Node("MatMul", {"k", "of.k"}, {"b.all"});
  not_turned.Node("GatherElements", {"b.all", "places"}, {"b"}, {{"axis", int64_t{3}}}).Node("Add", {"s", "b"}, {"t"});
  refused(not_turned, "products of other tokens than the scores'");
  OnnxBuilder multiplied = Before();
  Placed(multiplied, "q", "of.q", "a").Node("Mul", {"s", "a"}, {"t"});
  refused(multiplied, "it does not add products with vectors of places");
  OnnxBuilder subtracted = Before();
  Placed(subtracted, "q", "of.q", "a").Node("Sub", {"s", "a"}, {"t"});
  refused(subtracted, "it does not add products with vectors of places");
  OnnxBuilder by_sum = Before("Add");
  Placed(by_sum, "q", "of.q", "a").Node("Add", {"s", "a"}, {"t"});
  refused(by_sum, "not supported in a model of token sequences");
  OnnxBuilder along_queries = Before();
  along_queries.Node("MatMul", {"q", "of.q"}, {"a.all"});
  along_queries.Node("GatherElements", {"a.all", "places"}, {"a"}, {{"axis", int64_t{2}}});
  refused(along_queries.Node("Add", {"s", "a"}, {"t"}), "its indices are not whole numbers that go by distance alone");
}

// Products of all heads' channels with the same vectors, which are no head's own.
TEST(PlacesTest, ProductsOfAllChannels) {
  OnnxBuilder builder = Before();
  builder.Floats("of.all", {1, 1, kPlaceChannels, kPlaces}, Vectors(false)).Int64s("second.axis", {1}, {1});
  builder.Node("Unsqueeze", {"q.m", "second.axis"}, {"q.one"}).Node("MatMul", {"q.one", "of.all"}, {"a.all"});
  builder.Node("Shape", {"ids"}, {"sizes"}).Int64s("ends", {1}, {2}).Node("Slice", {"sizes", "first", "second"}, {"b"});
  builder.Node("Slice", {"sizes", "second", "ends"}, {"l"});
  builder.Node("Concat", {"b", "second", "l", "l"}, {"one.head"}, {{"axis", int64_t{0}}});
  builder.Node("Expand", {"square", "one.head"}, {"index"});
  builder.Node("GatherElements", {"a.all", "index"}, {"a"}, {{"axis", int64_t{3}}}).Node("Add", {"s", "a"}, {"t"});
  EXPECT_THAT(Lowered(AttendPlaces(builder, "t")), IsError(StatusCode::kUnimplemented, "does not go with"));
}

// An index that is narrower takes the first sequence's and head's products for all.
TEST(PlacesTest, IndicesOfOneHead) {
  OnnxBuilder builder = Before();
  builder.Node("MatMul", {"q", "of.q"}, {"a.all"});
  builder.Node("GatherElements", {"a.all", "square"}, {"a"}, {{"axis", int64_t{3}}}).Node("Add", {"s", "a"}, {"t"});
  EXPECT_THAT(Lowered(AttendPlaces(builder, "t")),
              IsError(StatusCode::kUnimplemented, "its indices are not whole numbers that go by distance alone"));
}

// Places that were put in another order before they are taken.
TEST(PlacesTest, PlacesInAnotherOrder) {
  OnnxBuilder builder = Before();
  builder.Node("MatMul", {"q", "of.q"}, {"a.all"});
  builder.Int64s("joined.shape", {4}, {0, 0, -1, kPlaces}).Node("Reshape", {"a.all", "split.of"}, {"a.split"});
  builder.Int64s("split.of", {5}, {0, kHeads, -1, 2, 3});
  builder.Node("Transpose", {"a.split"}, {"a.turned"}, {{"perm", Ints{0, 1, 2, 4, 3}}});
  builder.Node("Reshape", {"a.turned", "joined.shape"}, {"a.mixed"});
  builder.Node("GatherElements", {"a.mixed", "places"}, {"a"}, {{"axis", int64_t{3}}}).Node("Add", {"s", "a"}, {"t"});
  const auto network = Lowered(AttendPlaces(builder, "t"));
  EXPECT_EQ(network.status().code(), StatusCode::kUnimplemented) << network.status();
}

// Heads that were exchanged since they were multiplied go with no scores, nor do scores with values.
TEST(PlacesTest, HeadsInAnotherOrder) {
  const auto exchanged = [](bool of_scores) {
    OnnxBuilder builder = Before();
    builder.Counting("w", {4, 4}).Node("MatMul", {"x", "w"}, {"m"}).Int64s("by.four", {5}, {0, 0, 2, 2, 1});
    builder.Node("Reshape", {"m", "by.four"}, {"split"})
        .Node("Transpose", {"split"}, {"e"}, {{"perm", Ints{0, 2, 3, 1, 4}}});
    builder.Node("Transpose", {"e"}, {"e.t"}, {{"perm", Ints{0, 1, 2, 4, 3}}}).Node("MatMul", {"e", "e.t"}, {"four"});
    builder.Node("Transpose", {"four"}, {"four.x"}, {{"perm", Ints{0, 2, 1, 3, 4}}});
    builder.Node("Softmax", {of_scores ? "four.x" : "four"}, {"p"}, {{"axis", int64_t{-1}}});
    builder.Node("MatMul", {"p", "e"}, {"y"}).Node("Transpose", {"y"}, {"z"}, {{"perm", Ints{0, 3, 1, 2, 4}}});
    return builder.Int64s("rows", {3}, {0, 0, 4}).Node("Reshape", {"z", "rows"}, {"out"}).Output("out");
  };
  EXPECT_THAT(Lowered(exchanged(false)), IsOk());
  EXPECT_THAT(Lowered(exchanged(true)),
              IsError(StatusCode::kUnimplemented, "it is not the product of attention's probabilities and values"));
}

// Steps that samples of an activation do not show.
TEST(PlacesTest, StepsOfActivationsAreNoFunctionsOfTheirs) {
  for (const char* op : {"Ceil", "Floor", "Sign"}) {
    OnnxBuilder builder = Before();
    builder.Floats("four", {}, {4}).Node("Mul", {"x", "four"}, {"more"}).Node(op, {"more"}, {"stepped"});
    builder.Node("Div", {"stepped", "four"}, {"out"}).Output("out");
    EXPECT_THAT(Lowered(builder), IsError(StatusCode::kUnimplemented, "it makes steps of an activation")) << op;
  }
}

// What a mask of queries and of keys says of queries that are there.
TEST(PlacesTest, MasksOfPairs) {
  const auto masked = [](const char* op) {
    OnnxBuilder builder = Before();
    builder.Int64Input("mask", {-1, -1}).Int64s("keys", {2}, {1, 2}).Int64s("queries", {2}, {1, 3});
    builder.Node("Cast", {"mask"}, {"b"}, {{"to", int64_t{9}}}).Node("Unsqueeze", {"b", "keys"}, {"of.keys"});
    builder.Node("Unsqueeze", {"b", "queries"}, {"of.queries"}).Node(op, {"of.queries", "of.keys"}, {"pairs"});
    builder.Floats("low", {}, {-1e9f}).Node("Where", {"pairs", "s", "low"}, {"t"});
    return Lowered(AttendPlaces(builder, "t"));
  };
  const auto both = masked("And");
  ASSERT_THAT(both, IsOk());
  EXPECT_TRUE(both->sequences->skips_masked);
  const auto either = masked("Or");  // to a query that is there it lets all through
  ASSERT_THAT(either, IsOk());
  EXPECT_FALSE(either->sequences->skips_masked);
  EXPECT_THAT(masked("Xor"), IsError(StatusCode::kUnimplemented, "its condition is no mask of tokens"));
}

// A branch that the length decides passes on what it reads; others are not followed.
TEST(PlacesTest, BranchesThatTheLengthDecides) {
  const auto with_branch = [](const std::string& condition, const char* op) {
    OnnxBuilder builder = Before();
    builder.Int64s("five", {}, {5})
        .Node(condition == "Equal" ? "Equal" : "Less", {"length", condition == "Equal" ? "length" : "five"}, {"is"});
    OnnxBuilder same, other;
    same.Node(op, {"s"}, {"passed"}).Output("passed");
    other.Node("Neg", {"s"}, {"negative"}).Output("negative");
    builder.Node("If", {"is"}, {"t"}).Body("then_branch", {}, same).Body("else_branch", {}, other);
    return Lowered(AttendPlaces(builder, "t"));
  };
  EXPECT_THAT(with_branch("Equal", "Identity"), IsOk());
  EXPECT_THAT(with_branch("Equal", "Neg"), IsError(StatusCode::kUnimplemented, "the branch that it takes computes"));
  EXPECT_THAT(with_branch("Less", "Identity"),
              IsError(StatusCode::kUnimplemented, "its result depends on the batch or the length"));
}

}  // namespace
}  // namespace swizzle

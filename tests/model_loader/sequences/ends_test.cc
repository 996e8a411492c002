// Sequences that are read at the first token that holds a number, or the largest, in all that exporters write for it.
#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "model_loader/passes/lower.h"
#include "tests/support/recognised.h"

namespace swizzle {
namespace {

using testing::IsError;
using testing::IsOk;
using testing::Lowered;
using testing::OnnxBuilder;

// One head over ids [batch, 3], "x", whose tokens attend to themselves and those before, as "y"; `seen` is added to the
// scores of the others.
OnnxBuilder AttendingBack(float seen = -1e9f) {
  OnnxBuilder builder;
  builder.Int64Input("ids", {-1, 3}).Counting("words", {5, 4}).Node("Gather", {"words", "ids"}, {"x"});
  builder.Node("Transpose", {"x"}, {"k"}, {{"perm", std::vector<int64_t>{0, 2, 1}}}).Node("MatMul", {"x", "k"}, {"q"});
  builder.Floats("back", {3, 3}, {0, seen, seen, 0, 0, seen, 0, 0, 0}).Node("Add", {"q", "back"}, {"t"});
  builder.Node("Softmax", {"t"}, {"p"}, {{"axis", int64_t{-1}}}).Node("MatMul", {"p", "x"}, {"y"});
  builder.Int64s("zero", {}, {0}).Int64s("one", {}, {1}).Int64s("first", {1}, {0}).Int64s("last", {1}, {-1});
  return builder;
}

OnnxBuilder& ArgMax(OnnxBuilder& builder, const std::string& of, int64_t keepdims) {
  return builder.Node("ArgMax", {of}, {"end"}, {{"axis", int64_t{-1}}, {"keepdims", keepdims}});
}

// The first place of the number 4.
OnnxBuilder& FindFour(OnnxBuilder& builder) {
  builder.Int64s("four", {}, {4})
      .Node("Equal", {"ids", "four"}, {"is"})
      .Node("Cast", {"is"}, {"i"}, {{"to", int64_t{6}}});
  return ArgMax(builder, "i", 0);
}

// "rows" counts the sequences of the batch.
OnnxBuilder& CountRows(OnnxBuilder& builder) {
  builder.Node("Shape", {"ids"}, {"shape"}).Node("Gather", {"shape", "zero"}, {"batch"});
  return builder.Node("Range", {"zero", "batch", "one"}, {"rows"});
}

void ExpectEnd(const OnnxBuilder& builder, const SequenceEnd& end) {
  const auto network = Lowered(builder);
  ASSERT_THAT(network, IsOk());
  ASSERT_THAT(network->Validate(), IsOk());
  EXPECT_EQ(network->sequences->end, end);
  const auto takes = std::ranges::find(network->layers, Op::kSelectToken, &Layer::op);
  ASSERT_NE(takes, network->layers.end());
  EXPECT_EQ(takes->token_choice().token, -1);
}

TEST(EndsTest, TheLargestIdByElements) {
  OnnxBuilder builder = AttendingBack();
  ArgMax(builder, "ids", 1).Int64s("second", {1}, {2}).Node("Unsqueeze", {"end", "second"}, {"e"});
  builder.Int64s("all", {3}, {1, 1, 4}).Node("Expand", {"e", "all"}, {"places"});
  builder.Node("GatherElements", {"y", "places"}, {"taken"}, {{"axis", int64_t{1}}}).Output("taken");
  ExpectEnd(builder, {0, true, 0});
}

TEST(EndsTest, ANumberByPlacesOfAllTokens) {
  OnnxBuilder builder = AttendingBack();
  CountRows(FindFour(builder)).Int64s("length", {1}, {3}).Node("Mul", {"rows", "length"}, {"starts"});
  builder.Node("Add", {"end", "starts"}, {"places"}).Node("Flatten", {"y"}, {"flat"}, {{"axis", int64_t{2}}});
  builder.Node("Gather", {"flat", "places"}, {"taken"}).Output("taken");
  ExpectEnd(builder, {0, false, 4});
}

TEST(EndsTest, ANumberByPairsOfPlaces) {
  OnnxBuilder builder = AttendingBack();
  CountRows(FindFour(builder)).Node("Unsqueeze", {"rows", "last"}, {"r"}).Node("Unsqueeze", {"end", "last"}, {"e"});
  builder.Node("Concat", {"r", "e"}, {"pairs"}, {{"axis", int64_t{-1}}});
  builder.Node("GatherND", {"y", "pairs"}, {"taken"}).Output("taken");
  ExpectEnd(builder, {0, false, 4});
}

OnnxBuilder TakenOf(OnnxBuilder builder) {
  CountRows(FindFour(builder)).Node("Unsqueeze", {"rows", "last"}, {"r"}).Node("Unsqueeze", {"end", "last"}, {"e"});
  builder.Node("Concat", {"r", "e"}, {"pairs"}, {{"axis", int64_t{-1}}});
  return builder.Node("GatherND", {"y", "pairs"}, {"taken"}).Output("taken");
}

TEST(EndsTest, WhatAttendsToLaterTokensIsRefused) {
  EXPECT_THAT(Lowered(TakenOf(AttendingBack(-1.0f))).status(),
              IsError(StatusCode::kUnimplemented, "tokens attend to what is behind these"));
}

TEST(EndsTest, TokensBehindTheEndMayNotBeRead) {
  OnnxBuilder all = TakenOf(AttendingBack()), mean = TakenOf(AttendingBack()), other = TakenOf(AttendingBack());
  EXPECT_THAT(Lowered(all.Output("y")).status(), IsError(StatusCode::kUnimplemented, "output 'y' is of all tokens"));
  mean.Node("ReduceMean", {"y"}, {"mean"}, {{"axes", std::vector<int64_t>{1}}}).Output("mean");
  EXPECT_THAT(Lowered(mean).status(), IsError(StatusCode::kUnimplemented, "at their ends and elsewhere"));
  other.Node("Gather", {"y", "last"}, {"row"}, {{"axis", int64_t{1}}}).Output("row");
  EXPECT_THAT(Lowered(other).status(), IsError(StatusCode::kUnimplemented, "at their ends and elsewhere"));
}

TEST(EndsTest, WhatElseIsMadeOfPlacesIsRefused) {
  OnnxBuilder chosen = AttendingBack(), shaped = AttendingBack();
  FindFour(chosen).Node("Equal", {"end", "zero"}, {"none"}).Node("Where", {"none", "zero", "end"}, {"place"});
  EXPECT_THAT(Lowered(chosen.Output("place")).status(), IsError(StatusCode::kUnimplemented, "places of tokens"));
  CountRows(FindFour(shaped)).Node("Unsqueeze", {"rows", "last"}, {"r"}).Node("Unsqueeze", {"end", "last"}, {"e"});
  shaped.Node("Concat", {"r", "e"}, {"pairs"}, {{"axis", int64_t{-1}}}).Int64s("middle", {1}, {1});
  shaped.Node("Unsqueeze", {"pairs", "middle"}, {"p1"}).Node("GatherND", {"y", "p1"}, {"taken"}).Output("taken");
  EXPECT_THAT(Lowered(shaped).status(), IsError(StatusCode::kUnimplemented, "one token of each sequence"));
}

// The largest of what is left of ids of 8 bits may be of another token.
TEST(EndsTest, NarrowIdsAreRefused) {
  for (const int64_t narrow : {2, 3, 5}) {
    OnnxBuilder ids = AttendingBack(), places = AttendingBack();
    ids.Node("Cast", {"ids"}, {"few"}, {{"to", narrow}});
    EXPECT_THAT(Lowered(ArgMax(ids, "few", 0).Output("end")).status(),
                IsError(StatusCode::kUnimplemented, "no input as it is"));
    ArgMax(places, "ids", 0).Node("Cast", {"end"}, {"few"}, {{"to", narrow}}).Output("few");
    EXPECT_THAT(Lowered(places).status(), IsError(StatusCode::kUnimplemented, "something else of places"));
  }
}

TEST(EndsTest, TheLastOfSeveralIsRefused) {
  OnnxBuilder builder = AttendingBack();
  builder.Node("ArgMax", {"ids"}, {"end"}, {{"axis", int64_t{1}}, {"select_last_index", int64_t{1}}}).Output("end");
  EXPECT_THAT(Lowered(builder).status(), IsError(StatusCode::kUnimplemented, "does not find the first"));
}

}  // namespace
}  // namespace swizzle

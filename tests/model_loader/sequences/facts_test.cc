#include "model_loader/sequences/facts.h"

#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace swizzle::sequences {
namespace {

using swizzle::testing::IsError;
using swizzle::testing::IsOk;

// Inputs 0 and 1 of a canonical graph.
Graph TwoInputs() {
  Graph graph;
  for (const char* name : {"ids", "mask"}) {
    Value value;
    value.name = name;
    graph.inputs.push_back(graph.AddValue(std::move(value)));
  }
  return graph;
}

auto Refused(const std::string& why) { return IsError(StatusCode::kUnimplemented, why); }

TEST(SequenceFactsTest, AMaskThatExcludesLetsTokensBeSkipped) {
  for (const float bias : {-1e4f, -100.0f}) {
    const Graph graph = TwoInputs();
    SequenceFacts facts{GraphSequences()};
    facts.ReadAsIds(0);
    EXPECT_THAT(facts.AttendWithMask(graph, 1, bias), IsOk());
    EXPECT_THAT(facts.Finish(graph), IsOk());
    EXPECT_EQ(facts.sequences().mask, 1);
    EXPECT_EQ(facts.sequences().masked_bias, bias);
    EXPECT_EQ(facts.sequences().skips_masked, bias == -1e4f);
  }
}

TEST(SequenceFactsTest, NothingIsSkippedWithoutAMask) {
  SequenceFacts facts{GraphSequences()};
  facts.AttendWithoutMask();
  facts.TakePlainMean();
  EXPECT_THAT(facts.Finish(TwoInputs()), IsOk());
  EXPECT_EQ(facts.sequences().mask, kNoValue);
  EXPECT_FALSE(facts.sequences().skips_masked);
}

TEST(SequenceFactsTest, WhatNeedsAllTokensGoesWithNoMask) {
  const Graph graph = TwoInputs();
  SequenceFacts permuted{GraphSequences()}, ended{GraphSequences()}, two{GraphSequences()};
  permuted.PermuteTokens();
  EXPECT_THAT(permuted.Finish(graph), IsOk());
  EXPECT_THAT(permuted.AttendWithMask(graph, 1, -1e4f), IsOk());
  EXPECT_THAT(permuted.Finish(graph), Refused("a mask may leave some out"));
  EXPECT_THAT(ended.EndAt(1, true, 0), IsOk());
  EXPECT_THAT(ended.Finish(graph), IsOk());
  EXPECT_THAT(ended.ReadAsMask(graph, 1), IsOk());
  EXPECT_THAT(ended.Finish(graph), Refused("at ends that their mask tells"));
  EXPECT_THAT(two.EndAt(0, false, 3), IsOk());
  EXPECT_THAT(two.EndAt(0, false, 4), Refused("read at two ends"));
}

TEST(SequenceFactsTest, PositionsAreCountedInOneWay) {
  const Graph graph = TwoInputs();
  SequenceFacts facts{GraphSequences()};
  EXPECT_THAT(facts.CountTokens(0, 1), IsOk());
  EXPECT_THAT(facts.CountTokens(0, 1), IsOk());
  EXPECT_THAT(facts.CountTokens(0, 2), Refused("count other tokens"));
  EXPECT_THAT(facts.CountTokens(1, 1), Refused("count other tokens"));
  EXPECT_THAT(facts.Finish(graph), IsOk());
  EXPECT_EQ(facts.sequences().counted, 0);
  EXPECT_EQ(facts.sequences().padding, 1);
  facts.ReadPositions();
  EXPECT_THAT(facts.Finish(graph), Refused("some count all"));
}

TEST(SequenceFactsTest, ThereIsOneMaskAndOneBias) {
  const Graph graph = TwoInputs();
  SequenceFacts facts{GraphSequences()};
  ASSERT_THAT(facts.AttendWithMask(graph, 1, -1e4f), IsOk());
  EXPECT_THAT(facts.ReadAsMask(graph, 0), Refused("two inputs are read as masks, 'ids' and 'mask'"));
  EXPECT_THAT(facts.AttendWithMask(graph, 1, -1e9f), Refused("its mask's bias is not that of the others"));
}

// As zeros they are read by a token that is chosen by its place; left out they are not.
TEST(SequenceFactsTest, TokensTimesTheMaskAreNotChosenByPlace) {
  const Graph graph = TwoInputs();
  SequenceFacts facts{GraphSequences()};
  ASSERT_THAT(facts.AttendWithMask(graph, 1, -1e4f), IsOk());
  ASSERT_THAT(facts.ReadMaskedTokens(graph, 1), IsOk());
  EXPECT_THAT(facts.Finish(graph), IsOk());
  facts.ReadLaterToken();
  EXPECT_THAT(facts.Finish(graph), Refused("one is read that may be masked"));
}

TEST(SequenceFactsTest, WhatContradictsItselfIsRefused) {
  const Graph graph = TwoInputs();
  SequenceFacts both{GraphSequences()}, some = both, mean = both, plain = both;
  both.ReadAsIds(1);
  ASSERT_THAT(both.AttendWithMask(graph, 1, -1e4f), IsOk());
  EXPECT_THAT(both.Finish(graph), Refused("'mask' is read both as ids and as a mask"));
  some.AttendWithoutMask();
  ASSERT_THAT(some.AttendWithMask(graph, 1, -1e4f), IsOk());
  EXPECT_THAT(some.Finish(graph), Refused("some attention is masked and some is not"));
  ASSERT_THAT(mean.TakeMaskedMean(graph, 1), IsOk());
  EXPECT_THAT(mean.Finish(graph), Refused("the mean of tokens is masked, attention is not"));
  plain.TakePlainMean();
  ASSERT_THAT(plain.AttendWithMask(graph, 1, -1e4f), IsOk());
  EXPECT_THAT(plain.Finish(graph), Refused("the mean of tokens is of masked ones too"));
}

}  // namespace
}  // namespace swizzle::sequences

#include "model_loader/text/pre_tokenizers.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model_loader/text/byte_level.h"
#include "tests/support/status_matchers.h"

namespace swizzle::text {
namespace {

using ::testing::ElementsAre;
using testing::IsOk;

std::vector<std::string> Split(const OwnedPreTokenizer& pre_tokenizer, Pieces pieces) {
  EXPECT_THAT(pre_tokenizer->Apply(pieces), IsOk());
  std::vector<std::string> texts;
  for (const Piece& piece : pieces.list) texts.emplace_back(pieces.Of(piece));
  return texts;
}

std::vector<std::string> Split(const OwnedPreTokenizer& pre_tokenizer, const std::string& text) {
  return Split(pre_tokenizer, Pieces{text, {{0, text.size(), Piece::kNoToken, true}}});
}

TEST(PreTokenizers, BertSplitsAtBlanksAndPunctuation) {
  EXPECT_THAT(Split(MakeBertPreTokenizer(), " don't,  stop。\xC2\xA0x "),
              ElementsAre("don", "'", "t", ",", "stop", "。", "x"));
}

TEST(PreTokenizers, WhitespaceFindsWordsAndTheRest) {
  EXPECT_THAT(Split(MakeWhitespace(), "Hey man!?  x_1é-"), ElementsAre("Hey", "man", "!?", "x_1é", "-"));
  EXPECT_THAT(Split(MakeWhitespaceSplit(), " Hey\tman! "), ElementsAre("Hey", "man!"));
}

TEST(PreTokenizers, ByteLevelHasGpt2sWords) {
  EXPECT_THAT(Split(MakeByteLevel(false, true), "I'll  see 12é's\n\n x"),
              ElementsAre("I", "'ll", "Ġ", "Ġsee", "Ġ12", "Ã©", "'s", "ĊĊ", "Ġx"));
  EXPECT_THAT(Split(MakeByteLevel(true, true), "a  "), ElementsAre("Ġa", "ĠĠ"));
  EXPECT_THAT(Split(MakeByteLevel(true, false), " a b"), ElementsAre("ĠaĠb"));
  EXPECT_EQ(WordEnd("\n a", 0), 1u);  // the last blank goes with the word
  EXPECT_EQ(WordEnd("\na", 0), 1u);
  EXPECT_EQ(WordEnd("'S", 0), 1u);
}

TEST(PreTokenizers, MetaspaceMarksBlanks) {
  const auto with = [](PrependScheme prepend, bool split) { return MakeMetaspace({"_", prepend, split}); };
  EXPECT_THAT(Split(with(PrependScheme::kAlways, true), "a  b"), ElementsAre("_a", "_", "_b"));
  EXPECT_THAT(Split(with(PrependScheme::kAlways, true), " a_b"), ElementsAre("_a", "_b"));
  EXPECT_THAT(Split(with(PrependScheme::kNever, true), "a b"), ElementsAre("a", "_b"));
  EXPECT_THAT(Split(with(PrependScheme::kAlways, false), "a b"), ElementsAre("_a_b"));
  const Pieces two{"ab", {{0, 1, Piece::kNoToken, true}, {1, 2, Piece::kNoToken, false}}};
  EXPECT_THAT(Split(with(PrependScheme::kFirst, true), two), ElementsAre("_a", "b"));
  EXPECT_THAT(Split(MakeMetaspace({}), "é"), ElementsAre("▁é"));
}

TEST(PreTokenizers, DelimitersGoWhereTheyAreTold) {
  const auto at = [](Delimiters delimiters, bool inverted = false) {
    return Split(MakeSplit(Pattern::OfLiteral("-"), delimiters, inverted), "the-final--countdown");
  };
  EXPECT_THAT(at(Delimiters::kRemoved), ElementsAre("the", "final", "countdown"));
  EXPECT_THAT(at(Delimiters::kIsolated), ElementsAre("the", "-", "final", "-", "-", "countdown"));
  EXPECT_THAT(at(Delimiters::kMergedWithPrevious), ElementsAre("the-", "final-", "-", "countdown"));
  EXPECT_THAT(at(Delimiters::kMergedWithNext), ElementsAre("the", "-final", "-", "-countdown"));
  EXPECT_THAT(at(Delimiters::kContiguous), ElementsAre("the", "-", "final", "--", "countdown"));
  EXPECT_THAT(at(Delimiters::kRemoved, true), ElementsAre("-", "-", "-"));
}

TEST(PreTokenizers, SplitAtKindsOfCharacters) {
  EXPECT_THAT(Split(MakePunctuation(Delimiters::kIsolated), "a,b。"), ElementsAre("a", ",", "b", "。"));
  EXPECT_THAT(Split(MakeDigits(true), "a12½"), ElementsAre("a", "1", "2", "½"));
  EXPECT_THAT(Split(MakeDigits(false), "a12½b"), ElementsAre("a", "12½", "b"));
  EXPECT_THAT(Split(MakeCharDelimiterSplit(U'é'), "aébéé"), ElementsAre("a", "b"));
}

TEST(PreTokenizers, LeaveTokensAlone) {
  const Pieces pieces{"a b,[X] c", {{0, 4, Piece::kNoToken, true}, {4, 7, 9, false}, {7, 9, Piece::kNoToken, false}}};
  EXPECT_THAT(Split(MakeBertPreTokenizer(), pieces), ElementsAre("a", "b", ",", "[X]", "c"));
  EXPECT_THAT(Split(MakeByteLevel(false, true), pieces), ElementsAre("a", "Ġb", ",", "[X]", "Ġc"));
  EXPECT_THAT(Split(MakePunctuation(Delimiters::kRemoved), pieces), ElementsAre("a b", "[X]", " c"));
}

TEST(PreTokenizers, ApplyInSequence) {
  std::vector<OwnedPreTokenizer> parts;
  parts.push_back(MakeWhitespaceSplit());
  parts.push_back(MakeDigits(true));
  EXPECT_THAT(Split(MakePreTokenizerSequence(std::move(parts)), "a1 2"), ElementsAre("a", "1", "2"));
}

}  // namespace
}  // namespace swizzle::text

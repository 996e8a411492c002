#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model_loader/text/prefix_trie.h"
#include "model_loader/text/token_model.h"
#include "tests/support/status_matchers.h"

namespace swizzle::text {
namespace {

using ::testing::ElementsAre;
using testing::IsError;
using testing::IsOk;
using ::testing::Pair;

std::vector<int32_t> Ids(const OwnedTokenModel& model, std::string_view piece) {
  std::vector<int32_t> ids;
  EXPECT_THAT(model->Encode(piece, ids), IsOk());
  return ids;
}

// Tokens with the ids 0, 1, 2, ...
TokenIds Numbered(const std::vector<std::string>& tokens) {
  TokenIds ids;
  for (const std::string& token : tokens) ids.push_back({token, static_cast<int32_t>(ids.size())});
  return ids;
}

TEST(PrefixTrie, FindsKeysAndBeginnings) {
  const PrefixTrie trie({{"ab", 1}, {"a", 0}, {"c", 2}, {"", 7}, {"ab", 3}, {"\xFF\xFE", 4}});
  EXPECT_EQ(trie.Find("ab"), 3);  // the last counts
  EXPECT_EQ(trie.Find(""), 7);
  EXPECT_EQ(trie.Find("\xFF\xFE"), 4);
  EXPECT_EQ(trie.Find("abc"), PrefixTrie::kNone);
  EXPECT_EQ(trie.Find("\xFF"), PrefixTrie::kNone);
  EXPECT_EQ(trie.Longest(PrefixTrie::kRoot, "abc").bytes, 2u);
  EXPECT_EQ(trie.Longest(PrefixTrie::kRoot, "x").value, PrefixTrie::kNone);
  std::vector<std::pair<size_t, int32_t>> prefixes;
  trie.ForEachPrefix("abab", [&](size_t bytes, int32_t value) { prefixes.emplace_back(bytes, value); });
  EXPECT_THAT(prefixes, ElementsAre(Pair(1, 0), Pair(2, 3)));
  EXPECT_EQ(PrefixTrie().Find("a"), PrefixTrie::kNone);
}

TEST(PrefixTrie, FindsEachOfManyChildren) {
  std::vector<PrefixTrie::Entry> entries;
  for (int i = 0; i < 256; i += 3) entries.push_back({{'x', static_cast<char>(i)}, i});
  const PrefixTrie trie(entries);
  for (int i = 0; i < 256; ++i) {
    EXPECT_EQ(trie.Find(std::string{'x', static_cast<char>(i)}), i % 3 == 0 ? i : PrefixTrie::kNone) << i;
  }
}

TEST(WordLevel, KnowsWholePieces) {
  const auto model = MakeWordLevel(Numbered({"<unk>", "ab", "a"}), {"<unk>"});
  EXPECT_THAT(Ids(model, "ab"), ElementsAre(1));
  EXPECT_THAT(Ids(model, "abc"), ElementsAre(0));
  std::vector<int32_t> ids;
  EXPECT_THAT(MakeWordLevel(Numbered({"a"}), {"<unk>"})->Encode("b", ids),
              IsError(StatusCode::kInvalidArgument, "no token for 'b', and no unknown token '<unk>'"));
}

TEST(WordPiece, TakesTheLongestTokens) {
  const auto made = MakeWordPiece(Numbered({"[UNK]", "un", "##aff", "##able", "##a", "u", "##é"}),
                                  {.unknown = "[UNK]", .prefix = "##", .most_characters = 9});
  ASSERT_THAT(made, IsOk());
  EXPECT_THAT(Ids(*made, "unaffable"), ElementsAre(1, 2, 3));
  EXPECT_THAT(Ids(*made, "unaffx"), ElementsAre(0));
  EXPECT_THAT(Ids(*made, "aff"), ElementsAre(0));  // no token begins a word so
  EXPECT_THAT(Ids(*made, "uéééééééé"), ElementsAre(5, 6, 6, 6, 6, 6, 6, 6, 6));
  EXPECT_THAT(Ids(*made, "uééééééééé"), ElementsAre(0));                                 // ten characters
  EXPECT_THAT(Ids(*MakeWordPiece(Numbered({"[UNK]", "a"}), {}), "aa"), ElementsAre(0));  // nothing has the prefix
  EXPECT_THAT(MakeWordPiece(Numbered({"a"}), {}),
              IsError(StatusCode::kInvalidArgument, "lacks the unknown token '[UNK]'"));
}

TEST(BytePairs, MergesWhatStandsFirst) {
  const auto made =
      MakeBytePairs(Numbered({"a", "b", "c", "ab", "bc", "abc"}), {{"b", "c"}, {"a", "b"}, {"a", "bc"}}, {});
  ASSERT_THAT(made, IsOk());
  EXPECT_THAT(Ids(*made, "abc"), ElementsAre(5));
  EXPECT_THAT(Ids(*made, "abab"), ElementsAre(3, 3));
  EXPECT_THAT(Ids(*made, "abbc"), ElementsAre(3, 4));
  EXPECT_THAT(Ids(*made, "axb"), ElementsAre(3));  // there is no unknown token: x is nothing
}

TEST(BytePairs, OfEqualPairsTheLeftIsMerged) {
  const auto made = MakeBytePairs(Numbered({"a", "aa"}), {{"a", "a"}}, {});
  EXPECT_THAT(Ids(*made, "aaaaa"), ElementsAre(1, 1, 0));
}

TEST(BytePairs, UnknownCharactersFuseOrNot) {
  BytePairOptions options;
  options.unknown = "<unk>";
  const TokenIds vocabulary = Numbered({"<unk>", "a"});
  EXPECT_THAT(Ids(*MakeBytePairs(vocabulary, {}, options), "xéa中"), ElementsAre(0, 0, 1, 0));
  options.fuse_unknown = true;
  EXPECT_THAT(Ids(*MakeBytePairs(vocabulary, {}, options), "xéa中"), ElementsAre(0, 1, 0));
}

TEST(BytePairs, FallBackToBytesIfThereAreAll) {
  BytePairOptions options;
  options.unknown = "<unk>";
  options.byte_fallback = true;
  const auto made = MakeBytePairs(Numbered({"<unk>", "<0xC3>", "<0xA9>", "<0xa0>", "a"}), {}, options);
  EXPECT_THAT(Ids(*made, "aéà"), ElementsAre(4, 1, 2, 0));
}

// The bytes of an ending that the vocabulary spells stand for nothing of the piece.
TEST(BytePairs, BytesOfEndingsStandNowhereElse) {
  BytePairOptions options;
  options.byte_fallback = true;
  options.suffix = "</w>";
  const auto made = MakeBytePairs(Numbered({"<0x7A>", "<0x3C>", "<0x2F>", "<0x77>", "<0x3E>"}), {}, options);
  std::vector<int32_t> ids;
  std::vector<Range> places;
  EXPECT_THAT((*made)->Encode("z", ids, &places), IsOk());
  EXPECT_THAT(ids, ElementsAre(0, 1, 2, 3, 4));
  ASSERT_EQ(places.size(), 5u);
  for (const Range& place : places) EXPECT_LE(place.end, 1u);
}

TEST(BytePairs, KnowPrefixesSuffixesAndWholePieces) {
  BytePairOptions options;
  options.prefix = "##";
  options.suffix = "</w>";
  const auto made =
      MakeBytePairs(Numbered({"a", "##b", "##c</w>", "ab", "abc</w>"}), {{"a", "##b"}, {"ab", "##c</w>"}}, options);
  ASSERT_THAT(made, IsOk());
  EXPECT_THAT(Ids(*made, "abc"), ElementsAre(4));
  BytePairOptions ignoring;
  ignoring.ignore_merges = true;
  const auto whole = MakeBytePairs(Numbered({"a", "b", "ab"}), {}, ignoring);
  EXPECT_THAT(Ids(*whole, "ab"), ElementsAre(2));
  EXPECT_THAT(Ids(*whole, "aba"), ElementsAre(0, 1, 0));
}

TEST(BytePairs, WhatTheVocabularyLacksIsRefused) {
  EXPECT_THAT(MakeBytePairs(Numbered({"a", "b"}), {{"a", "b"}}, {}),
              IsError(StatusCode::kInvalidArgument, "merge 0 names the token 'ab'"));
  BytePairOptions options;
  options.unknown = "<unk>";
  EXPECT_THAT(MakeBytePairs(Numbered({"a"}), {}, options),
              IsError(StatusCode::kInvalidArgument, "lacks the unknown token '<unk>'"));
  options.unknown.reset();
  options.prefix = "##";
  EXPECT_THAT(MakeBytePairs(Numbered({"a", "b", "ab"}), {{"a", "b"}}, options),
              IsError(StatusCode::kInvalidArgument, "which lacks the prefix '##'"));
}

TEST(BytePairs, LongPiecesTakeNoSquareOfTheirLength) {
  const auto made = MakeBytePairs(Numbered({"a", "aa", "aaaa"}), {{"a", "a"}, {"aa", "aa"}}, {});
  EXPECT_EQ(Ids(*made, std::string(2'000'000, 'a')).size(), 500'000u);
}

UnigramOptions Unknown(int32_t id, bool byte_fallback = false) {
  UnigramOptions options;
  options.unknown = id;
  options.byte_fallback = byte_fallback;
  return options;
}

const std::vector<ScoredToken> kScored = {{"<unk>", 0.0}, {"a", -1.0}, {"b", -1.5}, {"ab", -2.0}, {"abc", -9.0}};

TEST(Unigram, TakesTheGreatestSum) {
  const auto made = MakeUnigram(kScored, Unknown(0));
  ASSERT_THAT(made, IsOk());
  EXPECT_THAT(Ids(*made, "abab"), ElementsAre(3, 3));
  EXPECT_THAT(Ids(*made, "abc"), ElementsAre(4));  // c by itself would cost 19
  EXPECT_THAT(Ids(*made, "xya中"), ElementsAre(0, 1, 0));
}

TEST(Unigram, OfEqualSumsTheLongerLastTokenWins) {
  const auto made = MakeUnigram({{"<unk>", -9}, {"a", -1}, {"aa", -2}}, Unknown(0));
  EXPECT_THAT(Ids(*made, "aa"), ElementsAre(2));
  EXPECT_THAT(Ids(*made, "aaa"), ElementsAre(1, 2));
}

TEST(Unigram, FallsBackToBytes) {
  std::vector<ScoredToken> scored = kScored;
  scored.push_back({"<0xC3>", -20.0});
  scored.push_back({"<0xA9>", -20.0});
  const auto made = MakeUnigram(scored, Unknown(0, true));
  EXPECT_THAT(Ids(*made, "aéb"), ElementsAre(1, 5, 6, 2));
  EXPECT_THAT(Ids(*made, "éx"), ElementsAre(0));  // one run, of which a byte has no token
}

TEST(Unigram, WhatIsNotInTextsIsNotFound) {
  const auto made = MakeUnigram({{"<unk>", 0, false}, {"a", -1}, {"aa", 5, false}}, Unknown(0));
  EXPECT_THAT(Ids(*made, "aa"), ElementsAre(1, 1));
  EXPECT_THAT(Ids(*made, "<unk>"), ElementsAre(0));
}

TEST(Unigram, WhatIsWrongIsRefused) {
  EXPECT_THAT(MakeUnigram({}, {}), IsError(StatusCode::kInvalidArgument, "empty"));
  EXPECT_THAT(MakeUnigram(kScored, Unknown(5)), IsError(StatusCode::kInvalidArgument, "unk_id is 5"));
  EXPECT_THAT(MakeUnigram({{"a", std::numeric_limits<double>::infinity()}}, {}),
              IsError(StatusCode::kInvalidArgument, "not finite"));
  std::vector<int32_t> ids;
  EXPECT_THAT((*MakeUnigram({{"a", -1}}, {}))->Encode("ab", ids),
              IsError(StatusCode::kInvalidArgument, "no token for 'b'"));
}

}  // namespace
}  // namespace swizzle::text

#include "model_loader/text/added_tokens.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace swizzle::text {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::IsOk;

AddedToken Token(std::string content, int32_t id) {
  AddedToken token;
  token.content = std::move(content);
  token.id = id;
  return token;
}

// Texts between tokens, and tokens as "#ID:TEXT".
std::vector<std::string> Split(const std::vector<AddedToken>& tokens, const std::string& text) {
  const auto added = AddedTokens::Of(tokens, nullptr);
  EXPECT_THAT(added, IsOk());
  std::vector<Piece> pieces;
  added->SplitRaw(text, pieces);
  std::vector<std::string> texts;
  for (const Piece& piece : pieces) {
    const std::string id = piece.token == Piece::kNoToken ? "" : Concat("#", piece.token, ":");
    texts.push_back(id + text.substr(piece.begin, piece.end - piece.begin));
  }
  return texts;
}

TEST(AddedTokens, TheFirstAndLongestIsFound) {
  const std::vector tokens = {Token("[A]", 1), Token("[A][B]", 2), Token("[B]", 3)};
  EXPECT_THAT(Split(tokens, "x[A][B][B]y"), ElementsAre("x", "#2:[A][B]", "#3:[B]", "y"));
  EXPECT_THAT(Split(tokens, "[A"), ElementsAre("[A"));
  EXPECT_THAT(Split(tokens, ""), IsEmpty());
  EXPECT_THAT(Split({}, "x"), ElementsAre("x"));
}

TEST(AddedTokens, TakeWhiteSpaceAroundThem) {
  AddedToken left = Token("[L]", 1), right = Token("[R]", 2);
  left.lstrip = right.rstrip = true;
  EXPECT_THAT(Split({left, right}, "a \xC2\xA0[L] b [R]  c"),
              ElementsAre("a", "#1: \xC2\xA0[L]", " b ", "#2:[R]  ", "c"));
  EXPECT_THAT(Split({left, right}, "[R] [L]"), ElementsAre("#2:[R] ", "#1:[L]"));
}

TEST(AddedTokens, SingleWordsStandAlone) {
  AddedToken word = Token("don", 1);
  word.single_word = true;
  EXPECT_THAT(Split({word}, "don't donut éDon-don _don"), ElementsAre("#1:don", "'t donut éDon-", "#1:don", " _don"));
}

TEST(AddedTokens, NormalOnesAreFoundInTheirNormalForm) {
  AddedToken token = Token("ABC", 1), nothing = Token("  ", 2);
  token.normalized = nothing.normalized = true;
  std::vector<OwnedNormalizer> parts;
  parts.push_back(MakeLowercase());
  parts.push_back(MakeStrip(true, true));
  const auto added = AddedTokens::Of({token, nothing}, MakeNormalizerSequence(std::move(parts)).get());
  ASSERT_THAT(added, IsOk());
  std::vector<Piece> raw, normal;
  added->SplitRaw("ABC abc", raw);
  added->SplitNormal("xabc  ", normal);
  EXPECT_EQ(raw.size(), 1u);
  ASSERT_EQ(normal.size(), 3u);  // what a normalizer leaves nothing of is not found
  EXPECT_EQ(normal[1].token, 1);
  EXPECT_TRUE(normal[0].from_start && !normal[1].from_start);
}

TEST(AddedTokens, OfEqualOnesTheSpecialThenTheFirstCounts) {
  AddedToken special = Token("x", 3);
  special.special = true;
  EXPECT_THAT(Split({Token("x", 1), Token("x", 2), special}, "x"), ElementsAre("#3:x"));
  EXPECT_THAT(Split({Token("x", 1), Token("x", 2)}, "x"), ElementsAre("#1:x"));
}

}  // namespace
}  // namespace swizzle::text

#include "model_loader/text/characters.h"

#include <string>

#include "gtest/gtest.h"
#include "model_loader/text/graphemes.h"
#include "model_loader/text/utf8.h"
#include "tests/support/status_matchers.h"

namespace swizzle::text {
namespace {

using testing::IsOk;

TEST(Utf8, WellFormedTextStays) {
  const std::string text("a\0é中😀", 11);
  EXPECT_TRUE(IsWellFormed(text));
  EXPECT_EQ(WellFormed(text), text);
}

// The Unicode Standard 15, tables 3-8 to 3-11.
TEST(Utf8, EveryMaximalSubpartBecomesOneReplacement) {
  const std::string r = "\xEF\xBF\xBD";
  EXPECT_EQ(WellFormed("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"), r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(WellFormed("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"), r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(WellFormed("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"), r + r + r + r + r + "A" + r + r + "B");
  EXPECT_EQ(WellFormed("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), r + r + r + r + "A");
  EXPECT_EQ(WellFormed("a\xF0\x9F\x98"), "a" + r);
}

TEST(Utf8, CodePointsAreReadAndWritten) {
  for (const char32_t c : {U'a', U'\x7F', U'\x80', U'\x7FF', U'\x800', U'\xFFFD', U'\x10000', U'\x10FFFF'}) {
    std::string text = "x";
    Append(c, text);
    EXPECT_EQ(CodePointAt(text, 1).value, c);
    EXPECT_EQ(CodePointBefore(text, text.size()).value, c);
    EXPECT_EQ(CodePointAt(text, 1).bytes, text.size() - 1);
    EXPECT_TRUE(IsWellFormed(text));
  }
}

TEST(Characters, AsciiIsAsIcuHasIt) {
  EXPECT_TRUE(IsWhiteSpace(U'\x0B') && IsWhiteSpace(U' ') && !IsWhiteSpace(U'\x1F'));
  EXPECT_TRUE(IsPunctuation(U'$') && IsPunctuation(U'~') && IsPunctuation(U'_') && !IsPunctuation(U'a'));
  EXPECT_TRUE(IsControl(U'\0') && IsControl(U'\x7F') && !IsControl(U'\n') && !IsControl(U' '));
  EXPECT_TRUE(IsWord(U'_') && IsWord(U'7') && !IsWord(U'-'));
  EXPECT_TRUE(IsLetter(U'Z') && !IsLetter(U'7') && IsNumber(U'7'));
}

TEST(Characters, OthersAreOfTheirVersionOfUnicode) {
  EXPECT_TRUE(IsWhiteSpace(0x85) && IsWhiteSpace(0x3000) && !IsWhiteSpace(0x200B));
  EXPECT_TRUE(IsPunctuation(0x3002));
  EXPECT_FALSE(IsPunctuation(0x2E43));  // of Unicode 9
  EXPECT_TRUE(IsPunctuation(0x166D));   // a symbol since Unicode 12
  EXPECT_TRUE(IsControl(0x200D) && IsControl(0xE000) && !IsControl(0x378) && !IsControl(0x8E2));
  EXPECT_TRUE(IsNonspacingMark(0x301) && IsNonspacingMark(0x1734) && !IsNonspacingMark(0x1885));
  EXPECT_TRUE(IsCombiningMark(0x903) && !IsNonspacingMark(0x903) && IsCombiningMark(0x1CF2));
  EXPECT_TRUE(IsWord(0x24B6) && IsWord(0x200D) && !IsWord(0x2460));
  EXPECT_TRUE(IsNumber(0x2460) && IsNumber(0x216B));
  EXPECT_TRUE(IsChineseCharacter(0x4E2D) && IsChineseCharacter(0x20000) && !IsChineseCharacter(0x3042));
}

TEST(Characters, LowerCaseIsOfEachByItself) {
  std::string text;
  for (const char32_t c : U"AΣÄ\u0130\u1E9E") {
    if (c != 0) AppendLowerCase(c, text);
  }
  EXPECT_EQ(text, "aσäi\xCC\x87ß");
}

TEST(Characters, NormalFormsAreThoseOfUnicode) {
  const auto form = [](std::string_view text, NormalForm which) {
    const auto result = Normalised(text, which);
    EXPECT_THAT(result, IsOk());
    return *result;
  };
  EXPECT_EQ(form("e\xCC\x81", NormalForm::kNfc), "é");
  EXPECT_EQ(form("é", NormalForm::kNfd), "e\xCC\x81");
  EXPECT_EQ(form("ﬁ①", NormalForm::kNfkc), "fi1");
  EXPECT_EQ(form("ｶﾞ", NormalForm::kNfkd), "カ\xE3\x82\x99");
  EXPECT_EQ(form("\xE3\x8B\xBF", NormalForm::kNfkc), "\xE3\x8B\xBF");  // U+32FF, of Unicode 12.1
}

TEST(Graphemes, ClustersHangTogether) {
  const auto first = [](std::string_view text) { return std::string(text.substr(0, GraphemeEnd(text, 0))); };
  EXPECT_EQ(first("ab"), "a");
  EXPECT_EQ(first("\r\nx"), "\r\n");
  EXPECT_EQ(first("\n\xCC\x81"), "\n");
  EXPECT_EQ(first("e\xCC\x81\xCC\xA7x"), "e\xCC\x81\xCC\xA7");
  EXPECT_EQ(first("각ᄀ"), "각");
  EXPECT_EQ(first("\xE1\x84\x80\xE1\x85\xA1\xE1\x86\xA8x"), "\xE1\x84\x80\xE1\x85\xA1\xE1\x86\xA8");  // L V T
  EXPECT_EQ(first("🇩🇪🇫🇷"), "🇩🇪");
  EXPECT_EQ(first("👩‍👧x"), "👩‍👧");
  EXPECT_EQ(first("a\xE2\x80\x8D👧"), "a\xE2\x80\x8D");  // a joiner joins pictographs alone
}

}  // namespace
}  // namespace swizzle::text

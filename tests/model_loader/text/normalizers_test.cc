#include "model_loader/text/normalizers.h"

#include <string>

#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace swizzle::text {
namespace {

using testing::IsOk;

NormalText Apply(const OwnedNormalizer& normalizer, std::string text) {
  NormalText normal{std::move(text), 1};
  EXPECT_THAT(normalizer->Apply(normal), IsOk());
  return normal;
}
std::string Of(const OwnedNormalizer& normalizer, std::string text) { return Apply(normalizer, std::move(text)).text; }
size_t StartOf(const OwnedNormalizer& normalizer, std::string text) {
  return Apply(normalizer, std::move(text)).start_bytes;
}

TEST(BertNormalizer, CleansSeparatesAndLowers) {
  const auto all = MakeBertNormalizer({});
  EXPECT_EQ(Of(all, std::string("A\0B\tc\x7F", 6)), "ab c");
  EXPECT_EQ(Of(all, "Ä\xE2\x80\x8D\xEF\xBF\xBD中\xC2\xA0Ñ"), "a 中  n");
  EXPECT_EQ(Of(MakeBertNormalizer({true, true, false, true}), "Ä中"), "ä 中 ");
  EXPECT_EQ(Of(MakeBertNormalizer({false, false, true, false}), "Ä\t中"), "A\t中");
  EXPECT_EQ(Of(MakeBertNormalizer({false, false, false, false}), "A\t"), "A\t");
}

TEST(Normalizers, DoWhatTheirNamesSay) {
  EXPECT_EQ(Of(MakeLowercase(), "AÀΣ"), "aàσ");
  EXPECT_EQ(Of(MakeStripAccents(), "e\xCC\x81é"), "eé");
  EXPECT_EQ(Of(MakeNormalForm(NormalForm::kNfkc), "ﬁ"), "fi");
  EXPECT_EQ(Of(MakeStrip(true, false),
               " \xE3\x80\x80"
               "a "),
            "a ");
  EXPECT_EQ(Of(MakeStrip(false, true), " a \n"), " a");
  EXPECT_EQ(Of(MakeStrip(true, true), " \t"), "");
  EXPECT_EQ(Of(MakePrepend("▁"), "a"), "▁a");
  EXPECT_EQ(Of(MakePrepend("▁"), ""), "");
  EXPECT_EQ(Of(MakeNmt(),
               "a\x01\tb\xE2\x80\x8B"
               "c\xEF\xBB\xBF"),
            "a b c ");
  EXPECT_EQ(Of(MakeByteNormalizer(), "a é\n"), "aĠÃ©Ċ");
}

TEST(Normalizers, ReplaceTextsAndPatterns) {
  EXPECT_EQ(Of(MakeReplace(Pattern::OfLiteral("aa"), "$0"), "aaaba"), "$0aba");
  EXPECT_EQ(Of(MakeReplace(Pattern::OfLiteral(""), "x"), "ab"), "ab");
  const auto blanks = Pattern::Of(" {2,}");
  ASSERT_THAT(blanks, IsOk());
  EXPECT_EQ(Of(MakeReplace(*blanks, " "), "é  a   b c"), "é a b c");
}

TEST(Normalizers, ApplyInSequence) {
  std::vector<OwnedNormalizer> parts;
  parts.push_back(MakePrepend("_"));
  parts.push_back(MakeReplace(Pattern::OfLiteral("_A"), "B"));
  parts.push_back(MakeLowercase());
  EXPECT_EQ(Of(MakeNormalizerSequence(std::move(parts)), "AC"), "bc");
}

TEST(Normalizers, KnowWhatStemsFromTheStart) {
  EXPECT_EQ(StartOf(MakeLowercase(), "Ab"), 1u);
  EXPECT_EQ(StartOf(MakeBertNormalizer({}),
                    "\x01"
                    "b"),
            0u);
  EXPECT_EQ(StartOf(MakeStrip(true, true), " b"), 0u);
  EXPECT_EQ(StartOf(MakeStrip(true, true), "b "), 1u);
  EXPECT_EQ(StartOf(MakePrepend("xy"), "b"), 3u);
  EXPECT_EQ(StartOf(MakeReplace(Pattern::OfLiteral("a"), ""), "ab"), 0u);
  EXPECT_EQ(StartOf(MakeReplace(Pattern::OfLiteral("b"), ""), "ab"), 1u);
  EXPECT_EQ(StartOf(MakeReplace(Pattern::OfLiteral("a"), "xyz"), "ab"), 3u);
  EXPECT_EQ(StartOf(MakeByteNormalizer(), " b"), 2u);
  // What the blank of a decomposed character leaves is of it, unless another's mark is put before.
  const auto both = [] {
    std::vector<OwnedNormalizer> parts;
    parts.push_back(MakeNormalForm(NormalForm::kNfkd));
    parts.push_back(MakeStrip(true, true));
    return MakeNormalizerSequence(std::move(parts));
  }();
  NormalText overline{
      "\xE2\x80\xBE"
      "a",
      3},
      acute{"\xCB\x9D\xCC\xA2", 2};  // U+203E; U+02DD U+0322
  ASSERT_THAT(both->Apply(overline), IsOk());
  ASSERT_THAT(both->Apply(acute), IsOk());
  EXPECT_EQ(overline.start_bytes, 2u);
  EXPECT_EQ(acute.start_bytes, 0u);
}

}  // namespace
}  // namespace swizzle::text

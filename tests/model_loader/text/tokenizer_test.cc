#include "model_loader/text/tokenizer.h"

#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model_loader/text/tokenizer_files.h"
#include "tests/support/status_matchers.h"

namespace swizzle::text {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::IsError;
using testing::IsOk;

// BERT's, of few tokens: 0 [PAD], 1 [UNK], 2 [CLS], 3 [SEP], 4 [MASK], 5 hello, 6 world, 7 ##s, 8 a.
Tokenizer Bert() {
  auto parts = ParseBertVocabulary("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhello\nworld\n##s\na\n", {});
  EXPECT_THAT(parts, IsOk());
  return Tokenizer(*std::move(parts));
}

TEST(Tokenizer, EncodesOneTextOrTwo) {
  const Tokenizer tokenizer = Bert();
  const auto one = tokenizer.Encode("Hello worlds");
  ASSERT_THAT(one, IsOk());
  EXPECT_THAT(one->ids, ElementsAre(2, 5, 6, 7, 3));
  EXPECT_THAT(one->type_ids, ElementsAre(0, 0, 0, 0, 0));
  EXPECT_FALSE(one->truncated);
  const auto two = tokenizer.Encode("hello", "world");
  ASSERT_THAT(two, IsOk());
  EXPECT_THAT(two->ids, ElementsAre(2, 5, 3, 6, 3));
  EXPECT_THAT(two->type_ids, ElementsAre(0, 0, 0, 1, 1));
}

TEST(Tokenizer, SpecialTokensAreFoundInTexts) {
  EXPECT_THAT(Bert().Encode("hello[MASK]world [SEP]")->ids, ElementsAre(2, 5, 4, 6, 3, 3));
}

TEST(Tokenizer, AddsNoSpecialTokensIfAskedNotTo) {
  EncodeOptions options;
  options.add_special_tokens = false;
  EXPECT_THAT(Bert().Encode("hello", options)->ids, ElementsAre(5));
  EXPECT_THAT(Bert().Encode("", options)->ids, IsEmpty());
  const auto two = Bert().Encode("a", "a", options);
  EXPECT_THAT(two->type_ids, ElementsAre(0, 1));
}

TEST(Tokenizer, OffsetsAreCharactersOfTheText) {
  const auto offsets = [](std::string_view text, EncodeOptions options = {}) {
    options.offsets = true;
    const auto encoding = Bert().Encode(text, options);
    EXPECT_THAT(encoding, IsOk());
    EXPECT_EQ(encoding->offsets.size(), encoding->ids.size());
    std::vector<std::pair<size_t, size_t>> pairs;
    for (const Range its : encoding->offsets) pairs.emplace_back(its.begin, its.end);
    return pairs;
  };
  using ::testing::Pair;
  EXPECT_THAT(offsets("\xFF H\u00e9llo worlds[MASK]"),
              ElementsAre(Pair(0, 0), Pair(2, 7), Pair(8, 13), Pair(13, 14), Pair(14, 20), Pair(0, 0)))
      << "U+FFFD is left out";
  EXPECT_THAT(offsets("He\u0301llo \u4e2d"), ElementsAre(Pair(0, 0), Pair(0, 6), Pair(7, 8), Pair(0, 0)));
  EXPECT_THAT(offsets("a hello world", {.max_tokens = 4}), ElementsAre(Pair(0, 0), Pair(0, 1), Pair(2, 7), Pair(0, 0)));
  EXPECT_THAT(offsets("a", {.add_special_tokens = false}), ElementsAre(Pair(0, 1)));
  EXPECT_THAT(Bert().Encode("hello")->offsets, IsEmpty());
}

// No more is read of a text than can matter, which is seen where all of it is one word.
TEST(Tokenizer, LongTextsAreReadAsFarAsTheyAreKept) {
  const Tokenizer tokenizer = Bert();
  const EncodeOptions options{.max_tokens = 6};
  std::string words = "hello ";
  for (int i = 0; i < 100'000; ++i) words += "world ";
  const auto kept = tokenizer.Encode(words, options);
  ASSERT_THAT(kept, IsOk());
  EXPECT_THAT(kept->ids, ElementsAre(2, 5, 6, 6, 6, 3));
  EXPECT_TRUE(kept->truncated);
  const auto word = tokenizer.Encode(std::string(1 << 20, 'x') + " hello", options);
  ASSERT_THAT(word, IsOk());
  EXPECT_THAT(word->ids, ElementsAre(2, 1, 3)) << "the other word is out of sight";
  EXPECT_TRUE(word->truncated);
  std::string accents;
  for (int i = 0; i < 100'000; ++i) accents += "\u00e4";
  EXPECT_THAT(tokenizer.Encode(accents, options)->ids, ElementsAre(2, 1, 3));
  std::string chinese = "hello ";
  for (int i = 0; i < 100'000; ++i) chinese += "\u4e00";
  EXPECT_THAT(tokenizer.Encode(chinese, options)->ids, ElementsAre(2, 5, 1, 1, 1, 3)) << "its one space is far off";
  // So it is for whoever refuses what is too long; only what may fit is read to its end.
  const EncodeOptions refusing{.max_tokens = 6, .truncate = false};
  EXPECT_THAT(tokenizer.Encode(words, refusing), IsError(StatusCode::kOutOfRange, "the text has more than 6 tokens"));
  EXPECT_THAT(tokenizer.Encode("hello", words, refusing),
              IsError(StatusCode::kOutOfRange, "the pair of texts has more than 6 tokens"));
  const auto whole = tokenizer.Encode(std::string(1 << 20, 'x') + " hello", refusing);
  ASSERT_THAT(whole, IsOk());
  EXPECT_THAT(whole->ids, ElementsAre(2, 1, 5, 3));
  EXPECT_FALSE(whole->truncated);
}

TEST(Tokenizer, TruncatesOrRefuses) {
  EncodeOptions options;
  options.max_tokens = 4;
  const auto cut = Bert().Encode("hello world a", options);
  ASSERT_THAT(cut, IsOk());
  EXPECT_THAT(cut->ids, ElementsAre(2, 5, 6, 3));
  EXPECT_TRUE(cut->truncated);
  EXPECT_FALSE(Bert().Encode("hello world", options)->truncated);
  options.truncate = false;
  EXPECT_THAT(Bert().Encode("hello world a", options),
              IsError(StatusCode::kOutOfRange, "the text has 5 tokens; at most 4 may be"));
  options = {.max_tokens = 2, .truncate = true, .add_special_tokens = true};
  EXPECT_THAT(Bert().Encode("hello", options)->ids, ElementsAre(2, 3));
  options.max_tokens = 1;
  EXPECT_THAT(Bert().Encode("hello", options),
              IsError(StatusCode::kInvalidArgument, "of at most 1 tokens the special ones take 2"));
}

TEST(Tokenizer, OddTextsHaveDefinedIds) {
  const Tokenizer tokenizer = Bert();
  EXPECT_THAT(tokenizer.Encode("")->ids, ElementsAre(2, 3));
  EXPECT_THAT(tokenizer.Encode(std::string("hel\0lo", 6))->ids, ElementsAre(2, 5, 3));
  EXPECT_THAT(tokenizer.Encode("hel\xFFlo")->ids, ElementsAre(2, 5, 3));  // U+FFFD, which BERT leaves out
  EXPECT_THAT(tokenizer.Encode(std::string(101, 'a'))->ids, ElementsAre(2, 1, 3));
  std::string ten_megabytes;
  while (ten_megabytes.size() < 10'000'000) ten_megabytes += "hello worlds a ";
  EXPECT_EQ(tokenizer.Encode(ten_megabytes)->ids.size(), ten_megabytes.size() / 15 * 4 + 2);
}

TEST(Tokenizer, TooLongTextsAreRefused) {
  EXPECT_THAT(Bert().Encode(std::string((size_t{1} << 28) + 1, ' ')),
              IsError(StatusCode::kInvalidArgument, "a text has 268435457 bytes; at most 268435456 may be"));
}

TEST(Tokenizer, KnowsItsVocabulary) {
  const Tokenizer tokenizer = Bert();
  EXPECT_EQ(tokenizer.vocabulary_size(), 9);
  EXPECT_EQ(tokenizer.special_ids().pad, 0);
  EXPECT_EQ(tokenizer.special_ids().mask, 4);
  EXPECT_EQ(tokenizer.Token(7), "##s");
  EXPECT_EQ(tokenizer.max_tokens(), 0);
}

TEST(Tokenizer, ManyThreadsEncodeAtOnce) {
  const Tokenizer tokenizer = Bert();
  std::vector<std::jthread> threads;
  std::vector<int> right(4);
  for (int& count : right) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) count += tokenizer.Encode("Héllo wörlds")->ids.size() == 5 ? 1 : 0;
    });
  }
  threads.clear();
  EXPECT_THAT(right, ElementsAre(200, 200, 200, 200));
}

}  // namespace
}  // namespace swizzle::text

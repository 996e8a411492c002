#include "model_loader/text/tokenizer_files.h"

#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model_loader/text/tokenizer.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace swizzle::text {
namespace {

using ::testing::ElementsAre;
using testing::IsError;
using testing::IsOk;

constexpr char kVocabulary[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nÄ\na\n中\r\n";
constexpr char kJson[] = R"({"model": {"type": "WordLevel", "vocab": {"a": 0}}})";

void Write(const std::filesystem::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary) << text;
}

TEST(TokenizerFiles, AFolderHasOne) {
  const TemporaryFolder folder;
  EXPECT_THAT(Tokenizer::Open(folder.path()), IsError(StatusCode::kNotFound,
                                                      "holds no tokenizer; it has to hold one of "
                                                      "tokenizer.json, vocab.txt"));
  Write(folder / "vocab.txt", kVocabulary);
  EXPECT_THAT(Tokenizer::Open(folder.path())->Encode("a")->ids, ElementsAre(2, 6, 3));
  Write(folder / "tokenizer.json", kJson);
  EXPECT_THAT(Tokenizer::Open(folder.path())->Encode("a")->ids, ElementsAre(0));
  EXPECT_THAT(Tokenizer::Open(folder / "vocab.txt")->Encode("a")->ids, ElementsAre(2, 6, 3));
}

TEST(TokenizerFiles, MessagesNameTheFile) {
  const TemporaryFolder folder;
  EXPECT_THAT(Tokenizer::Open(folder / "tokenizer.json"), IsError(StatusCode::kNotFound, "tokenizer.json"));
  Write(folder / "tokenizer.json", "{}");
  EXPECT_THAT(Tokenizer::Open(folder.path()), IsError(StatusCode::kInvalidArgument, "tokenizer.json: it has no model"));
  Write(folder / "words.csv", "a");
  EXPECT_THAT(Tokenizer::Open(folder / "words.csv"),
              IsError(StatusCode::kInvalidArgument, "end in .json, .txt or .model"));
  Write(folder / "tokenizer_config.json", "[");
  Write(folder / "tokenizer.json", kJson);
  EXPECT_THAT(Tokenizer::Open(folder.path()),
              IsError(StatusCode::kInvalidArgument, "tokenizer_config.json: it is not a"));
  Write(folder / "tokenizer_config.json", R"({"pad_token": 1})");
  EXPECT_THAT(Tokenizer::Open(folder.path()),
              IsError(StatusCode::kInvalidArgument, "pad_token of tokenizer_config.json"));
}

TEST(TokenizerFiles, TheConfigurationSaysWhatTheModelTakes) {
  const TemporaryFolder folder;
  Write(folder / "vocab.txt", kVocabulary);
  EXPECT_EQ(Tokenizer::Open(folder.path())->model_max_tokens(), 0);
  Write(folder / "tokenizer_config.json", R"({"model_max_length": 256})");
  EXPECT_EQ(Tokenizer::Open(folder.path())->model_max_tokens(), 256);
  Write(folder / "tokenizer_config.json", R"({"model_max_length": 1000000000000000019884624838656})");
  EXPECT_EQ(Tokenizer::Open(folder.path())->model_max_tokens(), 0) << "as transformers writes that there is no end";
  Write(folder / "tokenizer_config.json", R"({"model_max_length": "long"})");
  EXPECT_THAT(Tokenizer::Open(folder.path()),
              IsError(StatusCode::kInvalidArgument, "model_max_length of tokenizer_config.json"));
}

StatusOr<Tokenizer> Bert(const std::string& vocabulary, const std::string& config) {
  TokenizerSettings settings;
  settings.tokenizer_config = config;
  SWIZZLE_ASSIGN_OR_RETURN(TokenizerParts parts, ParseBertVocabulary(vocabulary, settings));
  return Tokenizer(std::move(parts));
}

TEST(BertVocabulary, GoesByItsConfiguration) {
  EXPECT_THAT(Bert(kVocabulary, "")->Encode("Äa中")->ids, ElementsAre(2, 1, 7, 3));
  EXPECT_THAT(Bert(kVocabulary, R"({"do_lower_case": false})")->Encode("Ä 中a")->ids, ElementsAre(2, 5, 7, 6, 3));
  EXPECT_THAT(Bert(kVocabulary, R"({"do_lower_case": true, "strip_accents": false})")->Encode("Ä")->ids,
              ElementsAre(2, 1, 3));
  EXPECT_THAT(Bert(kVocabulary, R"({"tokenize_chinese_chars": false})")->Encode("中a")->ids, ElementsAre(2, 1, 3));
  EXPECT_THAT(
      Bert("<s>\n</s>\nx\n?\n", R"({"cls_token": "<s>", "sep_token": "</s>", "unk_token": "?"})")->Encode("x")->ids,
      ElementsAre(0, 2, 1));
}

TEST(BertVocabulary, WhatIsWrongIsNamed) {
  EXPECT_THAT(Bert("[UNK]\n[CLS]\n", ""), IsError(StatusCode::kInvalidArgument, "lacks the sep_token '[SEP]'"));
  EXPECT_THAT(Bert("[CLS]\n[SEP]\n", ""), IsError(StatusCode::kInvalidArgument, "lacks the unknown token '[UNK]'"));
  EXPECT_THAT(Bert("[UNK]\n\xFF\n", ""), IsError(StatusCode::kInvalidArgument, "not UTF-8"));
  EXPECT_THAT(Bert(kVocabulary, R"({"do_lower_case": 1})"), IsError(StatusCode::kInvalidArgument, "do_lower_case"));
  EXPECT_THAT(Bert(kVocabulary, R"({"added_tokens_decoder": {"9": {"content": "new"}, "3": {"content": "[SEP]"}}})"),
              IsError(StatusCode::kUnimplemented, "adds the token 'new'"));
}

}  // namespace
}  // namespace swizzle::text

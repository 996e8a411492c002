#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model_loader/text/tokenizer.h"
#include "model_loader/text/tokenizer_files.h"
#include "tests/support/status_matchers.h"

namespace swizzle::text {
namespace {

using ::testing::ElementsAre;
using testing::IsError;
using testing::IsOk;
using testing::kInvalid;
using testing::kUnsupported;
using Json = nlohmann::json;

// A tokenizer of words, which later sections are added to.
Json Words() {
  return Json::parse(R"({"version": "1.0", "added_tokens": [], "pre_tokenizer": {"type": "Whitespace"}, "model":
      {"type": "WordLevel", "vocab": {"a": 0, "b": 1, "<unk>": 2, "[CLS]": 3, "[SEP]": 4}, "unk_token": "<unk>"}})");
}

StatusOr<Tokenizer> Read(const Json& json, const TokenizerSettings& settings = {}) {
  SWIZZLE_ASSIGN_OR_RETURN(TokenizerParts parts, ParseTokenizerJson(json.dump(), settings));
  return Tokenizer(std::move(parts));
}

StatusOr<Tokenizer> With(const char* section, const char* value) {
  Json json = Words();
  json[section] = Json::parse(value);
  return Read(json);
}

std::vector<int32_t> Ids(const StatusOr<Tokenizer>& tokenizer, std::string_view text) {
  EXPECT_THAT(tokenizer, IsOk());
  const auto encoding = tokenizer->Encode(text);
  EXPECT_THAT(encoding, IsOk());
  return encoding->ids;
}

TEST(TokenizerJson, ReadsEachModel) {
  EXPECT_THAT(Ids(Read(Words()), "a b c"), ElementsAre(0, 1, 2));
  EXPECT_THAT(Ids(With("model", R"({"type": "WordPiece", "vocab": {"[UNK]": 0, "a": 1, "##b": 2}})"), "ab abc"),
              ElementsAre(1, 2, 0));
  EXPECT_THAT(Ids(With("model", R"({"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]})"), "abb"),
              ElementsAre(2, 1));
  EXPECT_THAT(Ids(With("model", R"({"vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]})"), "abb"),
              ElementsAre(2, 1));
  EXPECT_THAT(Ids(With("model", R"({"type": "Unigram", "unk_id": 0, "vocab": [["?", 0], ["a", -1.5]]})"), "ab"),
              ElementsAre(1, 0));
}

TEST(TokenizerJson, ReadsEveryNormalizer) {
  for (const char* normalizer :
       {R"({"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null,
            "lowercase": true})",
        R"({"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}, {"type": "Lowercase"}]})",
        R"({"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "NFKC"}, {"type": "NFKD"}, {"type": "Nmt"},
            {"type": "Strip", "strip_left": true, "strip_right": true}, {"type": "Lowercase"}]})",
        R"({"type": "Replace", "pattern": {"Regex": "A+"}, "content": "a"})",
        R"({"type": "Replace", "pattern": {"String": "A"}, "content": "a"})"}) {
    EXPECT_THAT(Ids(With("normalizer", normalizer), "A b"), ElementsAre(0, 1)) << normalizer;
  }
  EXPECT_THAT(Ids(With("normalizer", R"({"type": "Prepend", "prepend": "b "})"), "a"), ElementsAre(1, 0));
  EXPECT_THAT(Ids(With("normalizer", R"({"type": "ByteLevel"})"), "é"), ElementsAre(2, 2));
}

TEST(TokenizerJson, ReadsEveryPreTokenizer) {
  for (const char* pre_tokenizer :
       {R"({"type": "BertPreTokenizer"})", R"({"type": "Whitespace"})", R"({"type": "WhitespaceSplit"})",
        R"({"type": "CharDelimiterSplit", "delimiter": " "})",
        R"({"type": "Split", "pattern": {"String": " "}, "behavior": "Removed", "invert": false})",
        R"({"type": "Split", "pattern": {"Regex": "\\w"}, "behavior": "Removed", "invert": true})",
        R"({"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, {"type": "Digits",
            "individual_digits": true}, {"type": "Punctuation", "behavior": "Isolated"}, {"type": "ByteLevel",
            "add_prefix_space": false, "use_regex": true}, {"type": "Metaspace", "replacement": "_",
            "prepend_scheme": "never"}]})"}) {
    EXPECT_THAT(Ids(With("pre_tokenizer", pre_tokenizer), "a b"), ElementsAre(0, 1)) << pre_tokenizer;
  }
  EXPECT_THAT(
      Ids(With("pre_tokenizer", R"({"type": "Metaspace", "replacement": "b", "add_prefix_space": true})"), "b "),
      ElementsAre(1, 1));
}

TEST(TokenizerJson, ReadsEveryPostProcessor) {
  constexpr char kTemplate[] = R"({"type": "TemplateProcessing",
      "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 7}}, {"Sequence": {"id": "A", "type_id": 1}}],
      "pair": [{"Sequence": {"id": "B", "type_id": 2}}, {"SpecialToken": {"id": "[CLS]", "type_id": 0}},
               {"Sequence": {"id": "A", "type_id": 0}}],
      "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [3, 4], "tokens": ["[CLS]", "[SEP]"]}}})";
  const auto made = With("post_processor", kTemplate);
  EXPECT_THAT(Ids(made, "a"), ElementsAre(3, 4, 0));
  EXPECT_THAT(made->Encode("a")->type_ids, ElementsAre(7, 7, 1));
  EXPECT_THAT(made->Encode("a", "b")->ids, ElementsAre(1, 3, 4, 0));
  EXPECT_THAT(made->Encode("a", "b")->type_ids, ElementsAre(2, 0, 0, 0));
  EXPECT_THAT(
      Ids(With("post_processor", R"({"type": "BertProcessing", "sep": ["[SEP]", 4], "cls": ["[CLS]", 3]})"), "a"),
      ElementsAre(3, 0, 4));
  const auto roberta = With("post_processor", R"({"type": "RobertaProcessing", "sep": ["s", 4], "cls": ["c", 3]})");
  EXPECT_THAT(roberta->Encode("a", "b")->ids, ElementsAre(3, 0, 4, 4, 1, 4));
  const std::string sequence =
      Concat(R"({"type": "Sequence", "processors": [{"type": "ByteLevel"}, )", kTemplate, "]}");
  EXPECT_THAT(Ids(With("post_processor", sequence.c_str()), "a"), ElementsAre(3, 4, 0));
}

TEST(TokenizerJson, AddedTokensHaveTheIdsThatTheLibraryGivesThem) {
  const auto made = With("added_tokens", R"([{"id": 9, "content": "[X]", "special": true},
      {"id": 3, "content": "[CLS]", "special": true}, {"id": 6, "content": "new", "special": false}])");
  EXPECT_THAT(Ids(made, "a[X][CLS]new"), ElementsAre(0, 5, 3, 6));
  EXPECT_EQ(made->vocabulary_size(), 7);
  EXPECT_EQ(made->Token(5), "[X]");
  EXPECT_EQ(made->Token(7), "");
}

TEST(TokenizerJson, TruncatesAsItSays) {
  const auto made =
      With("truncation", R"({"max_length": 2, "strategy": "LongestFirst", "direction": "Left", "stride": 0})");
  EXPECT_THAT(Ids(made, "a b b"), ElementsAre(1, 1));
  EXPECT_EQ(made->max_tokens(), 2);
}

TEST(TokenizerJson, KnowsItsSpecialIds) {
  TokenizerSettings settings;
  settings.tokenizer_config = R"({"cls_token": "[CLS]", "sep_token": {"content": "[SEP]"}, "mask_token": "none"})";
  settings.special_tokens_map = R"({"unk_token": "<unk>", "cls_token": "a"})";
  Json json = Words();
  json["padding"] = {{"pad_id", 1}};
  const auto made = Read(json, settings);
  ASSERT_THAT(made, IsOk());
  const SpecialIds& ids = made->special_ids();
  EXPECT_EQ(ids.cls, 3);
  EXPECT_EQ(ids.sep, 4);
  EXPECT_EQ(ids.unk, 2);
  EXPECT_EQ(ids.pad, 1);
  EXPECT_FALSE(ids.mask.has_value());
}

struct Fault {
  const char* section;
  const char* value;
  StatusCode code;
  const char* message;
};

TEST(TokenizerJson, WhatIsWrongIsNamed) {
  for (const Fault& fault : std::vector<Fault>{
           {"normalizer", R"({"type": "Magic"})", kUnsupported,
            "normalizer has the type \"Magic\"; supported are Bert"},
           {"normalizer", R"([])", kInvalid, "its normalizer has no type"},
           {"normalizer", R"({"type": "Replace", "content": "x"})", kInvalid, "Replace has no pattern"},
           {"normalizer", R"({"type": "Replace", "pattern": {"Regex": "("}, "content": ""})", kInvalid,
            "Replace: the reg"},
           {"normalizer", R"({"type": "Strip", "strip_left": 1})", kInvalid, "strip_left of its normalizer Strip is 1"},
           {"normalizer", R"({"type": "Precompiled", "precompiled_charsmap": "?"})", kInvalid, "no Base64"},
           {"pre_tokenizer", R"({"type": "UnicodeScripts"})", kUnsupported, "type \"UnicodeScripts\""},
           {"pre_tokenizer", R"({"type": "Metaspace", "replacement": "ab"})", kInvalid, "has to be one character"},
           {"pre_tokenizer", R"({"type": "Metaspace", "prepend_scheme": "x"})", kInvalid, "always, first or never"},
           {"pre_tokenizer", R"({"type": "Punctuation", "behavior": "x"})", kInvalid, "Removed, Isolated, Merged"},
           {"post_processor", R"({"type": "x"})", kUnsupported, "post_processor has the type"},
           {"post_processor", R"({"type": "BertProcessing", "sep": 1})", kInvalid, "has no cls"},
           {"post_processor", R"({"type": "BertProcessing", "sep": ["s", 9], "cls": ["c", 3]})", kInvalid,
            "adds the id 9, but its vocabulary ends before 5"},
           {"post_processor", R"({"type": "TemplateProcessing", "single": [], "pair": []})", kInvalid,
            "the sequence A once"},
           {"post_processor", R"({"type": "TemplateProcessing", "pair": [], "single": [{"SpecialToken": {"id": "[X]",
            "type_id": 0}}]})",
            kInvalid, "the special token \"[X]\""},
           {"post_processor",
            R"({"type": "Sequence", "processors": [{"type": "BertProcessing"}, {"type": "Sequence"}]})", kUnsupported,
            "several parts that add tokens"},
           {"truncation", R"({"max_length": 0})", kInvalid, "max_length of its truncation is 0"},
           {"truncation", R"({"max_length": 5, "strategy": "x"})", kInvalid, "LongestFirst, OnlyFirst or OnlySecond"},
           {"added_tokens", R"([{"id": 1}])", kInvalid, "an added token has no content"},
           {"added_tokens", R"(1)", kInvalid, "the added_tokens of it is 1; it has to be a list"},
           {"model", R"({"type": "Magic"})", kUnsupported, "its model has the type \"Magic\"; supported are BPE"},
           {"model", R"({"type": "BPE", "vocab": {"a": -1}, "merges": []})", kInvalid, "id of the token 'a'"},
           {"model", R"({"type": "BPE", "vocab": {"a": 9999999}, "merges": []})", kInvalid, "id of the token 'a'"},
           {"model", R"({"type": "BPE", "vocab": {"a": 0}, "merges": ["a b c"]})", kInvalid, "has to be two tokens"},
           {"model", R"({"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]})", kInvalid, "names the token 'b'"},
           {"model", R"({"type": "Unigram", "vocab": [["a"]]})", kInvalid, "token 0 of its model Unigram is a list"},
           {"model", R"({"type": "WordPiece", "vocab": {"a": 0}})", kInvalid, "lacks the unknown token '[UNK]'"},
           {"model", "null", kInvalid, "it has no model"},
       }) {
    EXPECT_THAT(With(fault.section, fault.value), IsError(fault.code, fault.message)) << fault.value;
  }
  EXPECT_THAT(ParseTokenizerJson("{\"a\": 1", {}), IsError(kInvalid, "truncated"));
  std::string nested = R"({"type": "NFC"})";
  for (int i = 0; i < 20; ++i) nested = Concat(R"({"type": "Sequence", "normalizers": [)", nested, "]}");
  EXPECT_THAT(With("normalizer", nested.c_str()), IsError(kInvalid, "nests more than 8 deep"));
}

}  // namespace
}  // namespace swizzle::text

#include "model_loader/text/decoders.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model_loader/text/json_parts.h"
#include "tests/support/status_matchers.h"

namespace swizzle::text {
namespace {

using ::testing::ElementsAre;
using testing::IsError;
using testing::IsOk;

std::vector<std::string> Decode(const OwnedDecoder& decoder, std::vector<std::string> tokens) {
  EXPECT_THAT(decoder->Apply(tokens), IsOk());
  return tokens;
}

TEST(Decoders, WordPieceJoinsWhatGoesOn) {
  EXPECT_THAT(Decode(MakeWordPieceDecoder({}), {"##a", "##b", "c", ".", "n't", "do not"}),
              ElementsAre("##a", "b", " c", ".", "n't", " don't"));
  EXPECT_THAT(Decode(MakeWordPieceDecoder({.prefix = "+", .cleanup = false}), {"a", "+b", "."}),
              ElementsAre("a", "b", " ."));
}

TEST(Decoders, BytesOfCharactersAreOneText) {
  EXPECT_THAT(Decode(MakeByteLevelDecoder(), {"Ġa", "Ã", "ģ", "x y", "€"}), ElementsAre(" aÁx y€"));
  EXPECT_THAT(Decode(MakeByteLevelDecoder(), {"âĤ"}), ElementsAre("\xEF\xBF\xBD"));
  EXPECT_THAT(Decode(MakeByteLevelDecoder(), {}), ElementsAre(""));
}

TEST(Decoders, BlanksThatWereAddedGo) {
  EXPECT_THAT(Decode(MakeMetaspaceDecoder({}), {"▁▁a▁b", "▁c"}), ElementsAre("ab", " c"));
  EXPECT_THAT(Decode(MakeMetaspaceDecoder({.prepend = PrependScheme::kNever}), {"▁a▁b", "▁c"}),
              ElementsAre(" a b", " c"));
  EXPECT_THAT(Decode(MakeBytePairDecoder("</w>"), {"a</w>b", "c</w>"}), ElementsAre("a b", "c"));
}

TEST(Decoders, BytesOfTokensAreCharactersTogether) {
  EXPECT_THAT(Decode(MakeByteFallbackDecoder(), {"<0xE2>", "<0x82>", "<0xac>", "a", "<0xC3>", "<0xFG>", "<0x0A>"}),
              ElementsAre("€", "a", "\xEF\xBF\xBD", "<0xFG>", "\n"));
  EXPECT_THAT(Decode(MakeByteFallbackDecoder(), {"<0xE2>", "<0x82>"}), ElementsAre("\xEF\xBF\xBD\xEF\xBF\xBD"));
}

TEST(Decoders, StripsNoMoreThanThereIs) {
  EXPECT_THAT(Decode(MakeStripDecoder("a", 2, 1), {"aaabaa", "ab", "a", "", "b"}),
              ElementsAre("aba", "b", "", "", "b"));
}

TEST(Decoders, PartsFollowEachOther) {
  const auto decoder = ReadDecoder(nlohmann::json::parse(R"({"type": "Sequence", "decoders": [
      {"type": "Replace", "pattern": {"Regex": "_+"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
      {"type": "Strip", "content": " ", "start": 1, "stop": 0}]})"));
  ASSERT_THAT(decoder, IsOk());
  EXPECT_THAT(Decode(*decoder, {"__a", "_b", "<0x2E>"}), ElementsAre("a b."));
}

TEST(Decoders, WhatIsNotReadIsNamed) {
  struct Case {
    const char* json;
    StatusCode code;
    const char* said;
  };
  for (const Case& its : {
           Case{R"({"type": "CTC"})", StatusCode::kUnimplemented, "its decoder has the type \"CTC\"; supported are"},
           Case{R"({"type": "BPEDecoder", "suffix": ""})", StatusCode::kInvalidArgument, "its decoder BPEDecoder"},
           Case{R"({"type": "Strip", "content": "ab"})", StatusCode::kInvalidArgument, "one character"},
           Case{R"({"type": "Metaspace", "prepend_scheme": "often"})", StatusCode::kInvalidArgument, "prepend_scheme"},
           Case{R"({"type": "Sequence"})", StatusCode::kInvalidArgument, "decoders"},
       }) {
    EXPECT_THAT(ReadDecoder(nlohmann::json::parse(its.json)), IsError(its.code, its.said)) << its.json;
  }
}

}  // namespace
}  // namespace swizzle::text

#include "model_loader/text/charsmap.h"

#include <map>
#include <string>

#include "gtest/gtest.h"
#include "model_loader/text/normalizers.h"
#include "tests/model_loader/text/charsmap_builder.h"
#include "tests/support/status_matchers.h"

namespace swizzle::text {
namespace {

using testing::IsError;
using testing::IsOk;

Charsmap Built(const std::map<std::string, std::string>& rules) {
  auto map = Charsmap::Parse(BuildCharsmap(rules));
  EXPECT_THAT(map, IsOk());
  return *std::move(map);
}

TEST(Charsmap, FindsTheShortestAndTheLongest) {
  const Charsmap map = Built({{"a", "x"}, {"ab", "yy"}, {"é", ""}});
  EXPECT_EQ(map.Shortest("abc")->text, "x");
  EXPECT_EQ(map.Longest("abc")->text, "yy");
  EXPECT_EQ(map.Longest("abc")->bytes, 2u);
  EXPECT_EQ(map.Longest("ac")->text, "x");
  EXPECT_EQ(map.Shortest("é")->text, "");
  EXPECT_FALSE(map.Longest("b").has_value());
  EXPECT_FALSE(map.Longest("").has_value());
}

TEST(Charsmap, ReplacesShortClustersAsAWhole) {
  const auto normalizer = MakePrecompiled(Built({{"a", "x"}, {"e", "E"}, {"中", "[C]"}}));
  const auto of = [&](std::string text) {
    NormalText normal{std::move(text), 1};
    EXPECT_THAT(normalizer->Apply(normal), IsOk());
    return normal.text;
  };
  EXPECT_EQ(of("bab"), "bxb");
  EXPECT_EQ(of("e\xCC\x81z"), "Ez");  // three bytes: the mark goes with the letter
  EXPECT_EQ(of("e\xCC\x81\xCC\x81\xCC\x81z"), "E\xCC\x81\xCC\x81\xCC\x81z");  // seven: each by itself
  EXPECT_EQ(of("中"), "[C]");
}

TEST(Charsmap, WhatIsDamagedIsRefused) {
  const std::string good = BuildCharsmap({{"a", "x"}});
  EXPECT_THAT(Charsmap::Parse("abc"), IsError(StatusCode::kInvalidArgument, "shorter than its header"));
  EXPECT_THAT(Charsmap::Parse(good.substr(0, 100)), IsError(StatusCode::kInvalidArgument, "longer than itself"));
  EXPECT_THAT(Charsmap::Parse(std::string("\3\0\0\0abcd", 8)),
              IsError(StatusCode::kInvalidArgument, "no whole number of units"));
  EXPECT_THAT(Charsmap::Parse(good + "\xFF"), IsError(StatusCode::kInvalidArgument, "no UTF-8"));
  EXPECT_THAT(Charsmap::Parse(good + std::string(2000, 'a')), IsError(StatusCode::kInvalidArgument, "too long"));
}

TEST(Base64, IsDecoded) {
  const auto decoded = [](const char* text) { return DecodeBase64(text).value_or("?"); };
  EXPECT_EQ(decoded(""), "");
  EXPECT_EQ(decoded("Zg=="), "f");
  EXPECT_EQ(decoded("Zm8="), "fo");
  EXPECT_EQ(decoded("Zm9vYmE="), "fooba");
  EXPECT_EQ(decoded("+/+/"), "\xFB\xFF\xBF");
  for (const char* wrong : {"Z", "Zg", "Zg=", "Z===", "Zm9*", "Zg==Zg=="}) {
    EXPECT_THAT(DecodeBase64(wrong), IsError(StatusCode::kInvalidArgument, "no Base64")) << wrong;
  }
}

}  // namespace
}  // namespace swizzle::text

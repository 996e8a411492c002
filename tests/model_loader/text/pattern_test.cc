#include "model_loader/text/pattern.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace swizzle::text {
namespace {

using ::testing::ElementsAre;
using testing::IsError;
using testing::IsOk;

// What the expression matches.
std::vector<std::string> Matches(const std::string& expression, const std::string& text) {
  const auto pattern = Pattern::Of(expression);
  EXPECT_THAT(pattern, IsOk());
  std::vector<Range> ranges;
  EXPECT_THAT(pattern->FindAll(text, ranges), IsOk());
  std::vector<std::string> matches;
  for (const Range range : ranges) matches.push_back(text.substr(range.begin, range.end - range.begin));
  return matches;
}

TEST(Pattern, OffsetsAreInBytes) {
  EXPECT_THAT(Matches("[a-z😀é]+", "中é😀a b"), ElementsAre("é😀a", "b"));
  EXPECT_THAT(Matches("😀", "😀😀x😀"), ElementsAre("😀", "😀", "😀"));
}

TEST(Pattern, MeansWhatOnigurumaMeans) {
  EXPECT_THAT(Matches(R"(\s+)", "a\x0B\xC2\x85 b"), ElementsAre("\x0B\xC2\x85 "));
  EXPECT_THAT(Matches(R"([^\S\n]+)", "a \n\t"), ElementsAre(" ", "\t"));
  EXPECT_THAT(Matches(R"(\h+)", "xbeefz 1"), ElementsAre("beef", "1"));
  EXPECT_THAT(Matches(R"(\w+)", "a_é-٣"), ElementsAre("a_é", "٣"));
  EXPECT_THAT(Matches(R"(^b)", "b\nb\rb"), ElementsAre("b", "b"));
  EXPECT_THAT(Matches(R"(.)", "a\r\n"), ElementsAre("a", "\r"));
  EXPECT_THAT(Matches(R"((?i:s))", "sSſ"), ElementsAre("s", "S", "ſ"));
  EXPECT_THAT(Matches(R"(\\s)", "\\s"), ElementsAre("\\s"));
}

TEST(Pattern, AnEmptyMatchStandsNotRightBehindAnother) { EXPECT_THAT(Matches("x*", "axb"), ElementsAre("", "x", "")); }

TEST(Pattern, WhatIcuCanNotIsRefused) {
  EXPECT_THAT(Pattern::Of("(a"), IsError(StatusCode::kInvalidArgument, "regular expression '(a'"));
  EXPECT_THAT(Pattern::Of("a{,2}"), IsError(StatusCode::kInvalidArgument, "ICU"));
  EXPECT_THAT(Pattern::Of("(?m)."), IsError(StatusCode::kUnimplemented, "has the flags 'm'"));
  EXPECT_THAT(Pattern::Of(std::string(70000, 'a')), IsError(StatusCode::kInvalidArgument, "70000 bytes"));
}

TEST(Pattern, WhatTakesTooLongEnds) {
  const auto pattern = Pattern::Of("(a|a)*b");
  ASSERT_THAT(pattern, IsOk());
  std::vector<Range> ranges;
  EXPECT_THAT(pattern->FindAll(std::string(60, 'a'), ranges),
              IsError(StatusCode::kInvalidArgument, "takes too long, or too much memory"));
}

}  // namespace
}  // namespace swizzle::text

#include "model_loader/files/printable_name.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using swizzle::testing::IsError;
using swizzle::testing::IsOk;

TEST(QuotedNameTest, MasksWhatIsNotPrintable) {
  EXPECT_EQ(QuotedName("input_ids"), "'input_ids'");
  EXPECT_EQ(QuotedName("größe"), "'größe'");
  EXPECT_EQ(QuotedName(std::string("a\0b", 3)), "'a?b'");
  EXPECT_EQ(QuotedName("a\nb\r\tc\x1b[31m\x7f"),
            "'a?b?"
            "?c?[31m?'");
  const std::string two = Concat("'", std::string(2, '?'), "'"), three = Concat("'", std::string(3, '?'), "'");
  EXPECT_EQ(QuotedName("\xff\xfe"), two);
  EXPECT_EQ(QuotedName("\xc0\xaf"), two);        // '/' spelt longer than it may be
  EXPECT_EQ(QuotedName("\xed\xa0\x80"), three);  // half of a pair
}

TEST(QuotedNameTest, CutsWhatIsLong) {
  EXPECT_EQ(QuotedName(std::string(128, 'x')), "'" + std::string(128, 'x') + "'");
  EXPECT_EQ(QuotedName(std::string(129, 'x')), "'" + std::string(128, 'x') + "...'");
}

TEST(CheckNameTest, WantsPrintableUtf8AndDoesNotRepeatWhatIsNot) {
  EXPECT_THAT(CheckName("größe", "an input"), IsOk());
  for (const std::string name : {"a\nb", "\xff", "a\x7f", "\xe0\x80\x80", "\xf4\x90\x80\x80", "\xc3"}) {
    EXPECT_THAT(CheckName(name, "an input"),
                IsError(StatusCode::kInvalidArgument, "an input has a name that is not printable UTF-8"));
  }
  EXPECT_THAT(CheckName(std::string(1025, 'x'), "an input"),
              IsError(StatusCode::kInvalidArgument, "an input has a name of 1025 bytes; the limit is 1024"));
}

}  // namespace
}  // namespace swizzle

#include "server/security/auth_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using ::testing::HasSubstr;

TEST(AuthTokensTest, ReadsClassesAndModels) {
  const auto tokens = AuthTokens::Parse(
      "# comment\n"
      "\n"
      "0123456789abcdef\r\n"
      "  control\tABCDEFGHIJKLMNOP==  \n"
      "infer,metrics models=bert,tiny.v2 qrstuvwxyz012345\n"
      "all everything-is-allowed",
      "file");
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_EQ(tokens->size(), 4u);
  EXPECT_TRUE(tokens->limit_models());

  const TokenGrant* const plain = tokens->Find("0123456789abcdef");
  ASSERT_NE(plain, nullptr);
  EXPECT_TRUE(plain->Allows(AccessClass::kInfer));
  EXPECT_TRUE(plain->Allows(AccessClass::kMetadata));
  EXPECT_FALSE(plain->Allows(AccessClass::kControl));
  EXPECT_TRUE(plain->AllowsModel("anything"));

  const TokenGrant* const control = tokens->Find("ABCDEFGHIJKLMNOP==");
  ASSERT_NE(control, nullptr);
  EXPECT_TRUE(control->Allows(AccessClass::kControl));
  EXPECT_FALSE(control->Allows(AccessClass::kInfer));

  const TokenGrant* const limited = tokens->Find("qrstuvwxyz012345");
  ASSERT_NE(limited, nullptr);
  EXPECT_TRUE(limited->Allows(AccessClass::kMetrics));
  EXPECT_TRUE(limited->AllowsModel("tiny.v2"));
  EXPECT_FALSE(limited->AllowsModel("tiny"));
  EXPECT_FALSE(limited->AllowsModel(""));

  const TokenGrant* const all = tokens->Find("everything-is-allowed");
  ASSERT_NE(all, nullptr);
  for (size_t i = 0; i < kAccessClassNames.size(); ++i) EXPECT_TRUE(all->Allows(static_cast<AccessClass>(i)));
}

TEST(AuthTokensTest, FindsNothingThatIsNotWholeAndTheSame) {
  const auto tokens = AuthTokens::Parse("0123456789abcdef\n", "file");
  ASSERT_TRUE(tokens.ok());
  EXPECT_FALSE(tokens->limit_models());
  for (const char* token :
       {"", "0123456789abcde", "0123456789abcdefg", "0123456789ABCDEF", " 0123456789abcdef", "infer"}) {
    EXPECT_EQ(tokens->Find(token), nullptr) << token;
  }
}

TEST(AuthTokensTest, ErrorsNameTheLineAndNoToken) {
  const auto error = [](const std::string& text) {
    const Status status = AuthTokens::Parse(text, "FILE").status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    const std::string message(status.message());
    EXPECT_EQ(message.find("0123456789"), std::string::npos);
    return message;
  };
  EXPECT_THAT(error(""), HasSubstr("FILE has no token"));
  EXPECT_THAT(error("#\n\n0123456789\n"), HasSubstr("FILE, line 3, has a token of fewer than 16"));
  EXPECT_THAT(error("0123456789abcd\"f"), HasSubstr("line 1, has a token of other characters"));
  EXPECT_THAT(error("================"), HasSubstr("other characters"));
  EXPECT_THAT(error("0123456789abcdef\n0123456789abcdef"), HasSubstr("line 2, has the token of a line before"));
  std::string many;
  for (size_t i = 0; i <= AuthTokens::kMost; ++i) many += Concat("another-token-number-", i, "\n");
  EXPECT_THAT(error(many), HasSubstr("line 1001, has more than 1000 tokens"));
}

}  // namespace
}  // namespace swizzle

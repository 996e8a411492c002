#include "server/rest/tokens_json.h"

#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "model_loader/text/tokenizer_files.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using testing::IsError;
using testing::IsOk;

class TokensJsonTest : public ::testing::Test {
 protected:
  TokensJsonTest() : tokenizer_(*text::ParseBertVocabulary("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##b\né\n", {})) {}

  StatusOr<std::string> Write(const std::string& text, int64_t most = 1000) {
    const auto encoding = tokenizer_.Encode(text, text::EncodeOptions{.offsets = true});
    EXPECT_THAT(encoding, IsOk());
    std::string answer;
    SWIZZLE_RETURN_IF_ERROR(WriteTokens(tokenizer_, *encoding, text, most, answer));
    return answer;
  }

  const text::Tokenizer tokenizer_;
};

TEST_F(TokensJsonTest, TokensStandForCharactersOfTheText) {
  const auto answer = Write("É\"ab a");
  ASSERT_THAT(answer, IsOk());
  EXPECT_EQ(*answer, R"([{"id":2,"text":"[CLS]","special":true,"start":null,"stop":null},)"
                     R"({"id":1,"text":"É","special":false,"start":0,"stop":1},)"
                     R"({"id":1,"text":"\"","special":false,"start":1,"stop":2},)"
                     R"({"id":5,"text":"a","special":false,"start":2,"stop":3},)"
                     R"({"id":6,"text":"b","special":false,"start":3,"stop":4},)"
                     R"({"id":5,"text":"a","special":false,"start":5,"stop":6},)"
                     R"({"id":3,"text":"[SEP]","special":true,"start":null,"stop":null}])");
}

TEST_F(TokensJsonTest, SpecialTokensOfTheTextAreItsOwn) {
  const auto answer = Write("[MASK]");
  ASSERT_THAT(answer, IsOk());
  EXPECT_NE(answer->find(R"({"id":4,"text":"[MASK]","special":false,"start":0,"stop":6})"), std::string::npos)
      << *answer;
}

TEST_F(TokensJsonTest, LongAnswersAreRefused) {
  EXPECT_THAT(Write("a a a a", 100), IsError(StatusCode::kOutOfRange, "more than 100 bytes"));
}

}  // namespace
}  // namespace swizzle

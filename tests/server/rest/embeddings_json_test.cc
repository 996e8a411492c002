#include "server/rest/embeddings_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace swizzle {
namespace {

using ::testing::HasSubstr;
using enum TextEndpoint;

std::string Bytes(const std::vector<float>& numbers) {
  std::string bytes(numbers.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

TEST(EmbeddingsJsonTest, WritesWhatEachExpects) {
  const std::vector<std::string> rows = {Bytes({1, 0.5f, -2, 0}), Bytes({0.25f, 3})};
  const Embeddings embeddings = {.model = "m", .rows = rows, .width = 2, .tokens = 9};
  EXPECT_EQ(*WriteEmbeddings(kTeiEmbed, {}, embeddings, 1000), "[[1,0.5],[-2,0],[0.25,3]]");
  EXPECT_EQ(*WriteEmbeddings(kOpenAiEmbeddings, {}, embeddings, 1000),
            R"({"object":"list","data":[{"object":"embedding","index":0,"embedding":[1,0.5]},)"
            R"({"object":"embedding","index":1,"embedding":[-2,0]},)"
            R"({"object":"embedding","index":2,"embedding":[0.25,3]}],)"
            R"("model":"m","usage":{"prompt_tokens":9,"total_tokens":9}})");
  EXPECT_THAT(*WriteEmbeddings(kOpenAiEmbeddings, {.base64 = true}, embeddings, 1000),
              HasSubstr(R"("embedding":"AACAPwAAAD8="})"));
}

TEST(EmbeddingsJsonTest, ComparesWithTheLastVector) {
  const std::vector<std::string> rows = {Bytes({0.6f, 0.8f, -1, 0}), Bytes({0, 0, 0.8f, -0.6f, 1, 0})};
  EXPECT_EQ(*WriteSimilarities({.model = "m", .rows = rows, .width = 2}, 1000), "[0.6,-1,0,0.8]");
  EXPECT_EQ(WriteSimilarities({.model = "m", .rows = rows, .width = 2}, 3).status().code(), StatusCode::kOutOfRange);
  const std::vector<std::string> nan = {Bytes({1, std::numeric_limits<float>::quiet_NaN()})};
  const auto failed = WriteSimilarities({.model = "m", .rows = nan, .width = 1}, 1000);
  EXPECT_EQ(failed.status().code(), StatusCode::kInternal);
}

TEST(EmbeddingsJsonTest, TextsHaveAsManyVectorsAsTokens) {
  const std::vector<std::string> texts = {Bytes({1, 0.5f, -2, 0}), Bytes({0.25f, 3})};
  EXPECT_EQ(*WriteTokenEmbeddings(texts, 2, 1000), "[[[1,0.5],[-2,0]],[[0.25,3]]]");
  EXPECT_EQ(WriteTokenEmbeddings(texts, 2, 12).status().code(), StatusCode::kOutOfRange);
  const std::vector<std::string> nan = {Bytes({1}), Bytes({1, std::numeric_limits<float>::quiet_NaN()})};
  const auto failed = WriteTokenEmbeddings(nan, 1, 1000);
  EXPECT_EQ(failed.status().code(), StatusCode::kInternal);
  EXPECT_THAT(std::string(failed.status().message()), HasSubstr("the vector of token 1 of text 1 has"));
}

TEST(EmbeddingsJsonTest, SaysWhatCannotBeWritten) {
  const std::vector<std::string> rows = {Bytes({1, 2}), Bytes({1, std::numeric_limits<float>::quiet_NaN()})};
  const Embeddings embeddings = {.model = "m", .rows = rows, .width = 2};
  const auto nan = WriteEmbeddings(kTeiEmbed, {}, embeddings, 1000);
  EXPECT_EQ(nan.status().code(), StatusCode::kInternal) << "the model's fault, not the client's";
  EXPECT_THAT(std::string(nan.status().message()), HasSubstr("the vector of text 1 has"));
  for (const bool base64 : {false, true}) {
    const auto large = WriteEmbeddings(kOpenAiEmbeddings, {.base64 = base64}, embeddings, 20);
    EXPECT_EQ(large.status().code(), StatusCode::kOutOfRange) << base64;
  }
}

}  // namespace
}  // namespace swizzle

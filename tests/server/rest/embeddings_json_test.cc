#include "server/rest/embeddings_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "server/model/string_tensor.h"

namespace swizzle {
namespace {

using ::testing::HasSubstr;
using enum EmbeddingsDialect;

std::string Tensor(const std::vector<std::string>& texts) {
  std::string tensor;
  for (const std::string& text : texts) AppendElement(text, tensor);
  return tensor;
}

std::string Bytes(const std::vector<float>& numbers) {
  std::string bytes(numbers.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

TEST(EmbeddingsJsonTest, ReadsWhatOpenAisClientsSend) {
  const auto request = ReadEmbeddings(kOpenAi, R"({"user": {"input": [1]}, "input": ["a", "", "\u00e4"], "model": "m",
                                                   "encoding_format": "base64", "dimensions": 4, "other": null})");
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->model, "m");
  EXPECT_EQ(request->texts, Tensor({"a", "", "ä"}));
  EXPECT_EQ(request->count, 3);
  EXPECT_EQ(request->dimensions, 4);
  EXPECT_TRUE(request->base64);
  EXPECT_FALSE(request->unit);
  const auto one = ReadEmbeddings(kOpenAi, R"({"input": "a", "encoding_format": null})");
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(one->texts, Tensor({"a"}));
  EXPECT_EQ(one->model, "");
  EXPECT_FALSE(one->base64);
}

TEST(EmbeddingsJsonTest, ReadsWhatTeisClientsSend) {
  const auto request = ReadEmbeddings(kTei, R"({"inputs": "a", "truncate": true, "prompt_name": null, "model": 7})");
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->texts, Tensor({"a"}));
  EXPECT_EQ(request->model, "") << "TEI serves one";
  EXPECT_TRUE(request->unit);
  EXPECT_FALSE(request->raw);
  const auto raw = ReadEmbeddings(kTei, R"({"inputs": ["a", "b"], "normalize": false})");
  ASSERT_TRUE(raw.ok()) << raw.status();
  EXPECT_FALSE(raw->unit);
  EXPECT_TRUE(raw->raw);
}

TEST(EmbeddingsJsonTest, SaysWhatIsWrong) {
  const struct {
    EmbeddingsDialect dialect;
    std::string text;
    const char* said;
  } cases[] = {
      {kOpenAi, "", "is no JSON"},
      {kOpenAi, "[]", "must be a JSON object"},
      {kOpenAi, "7", "must be a JSON object"},
      {kOpenAi, R"({"input": ["a"]} x)", "is no JSON"},
      {kOpenAi, R"({"inputs": "a"})", "must have 'input'"},
      {kTei, R"({"input": "a"})", "must have 'inputs'"},
      {kOpenAi, R"({"input": []})", "'input' must not be empty"},
      {kOpenAi, R"({"input": "a", "input": "b"})", "'input' is there twice"},
      {kOpenAi, R"({"input": null})", "element 0 is neither"},
      {kOpenAi, R"({"input": ["a", [101, 102]]})", "element 1 is neither; tokens are not taken"},
      {kOpenAi, R"({"input": [101]})", "element 0 is neither"},
      {kOpenAi, R"({"input": {"text": "a"}})", "element 0 is neither"},
      {kOpenAi, R"({"input": "a", "model": 1})", "'model' must be a string"},
      {kOpenAi, R"({"input": "a", "encoding_format": "hex"})", R"('encoding_format' must be "float" or "base64")"},
      {kOpenAi, R"({"input": "a", "dimensions": 0})", "'dimensions' must be a whole number from 1 on"},
      {kOpenAi, R"({"input": "a", "dimensions": -3})", "'dimensions' must be"},
      {kOpenAi, R"({"input": "a", "dimensions": 1e300})", "'dimensions' must be"},
      {kTei, R"({"inputs": "a", "truncate": false})", "long texts are cut off"},
      {kTei, R"({"inputs": "a", "normalize": "yes"})", "'normalize' must be true or false"},
      {kTei, R"({"inputs": "a", "prompt_name": "query"})", "'prompt_name' is not supported"},
      {kTei, R"({"inputs": "a", "truncation_direction": "Left"})", "'truncation_direction' must be \"right\""},
      {kTei, R"({"inputs": [["a", "b"]]})", "element 0 is neither"},
      {kOpenAi, "{\"a\": " + std::string(100, '['), "nests deeper"},
      {kOpenAi, "{\"input\": \"\xff\"}", "is no JSON"},
  };
  for (const auto& its : cases) {
    const auto request = ReadEmbeddings(its.dialect, its.text);
    ASSERT_FALSE(request.ok()) << its.text;
    EXPECT_EQ(request.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(request.status().message()), HasSubstr(its.said)) << its.text;
  }
}

TEST(EmbeddingsJsonTest, WritesWhatEachExpects) {
  const std::vector<std::string> rows = {Bytes({1, 0.5f, -2, 0}), Bytes({0.25f, 3})};
  const Embeddings embeddings = {.model = "m", .rows = rows, .width = 2, .tokens = 9};
  EXPECT_EQ(*WriteEmbeddings(kTei, {}, embeddings, 1000), "[[1,0.5],[-2,0],[0.25,3]]");
  EXPECT_EQ(*WriteEmbeddings(kOpenAi, {}, embeddings, 1000),
            R"({"object":"list","data":[{"object":"embedding","index":0,"embedding":[1,0.5]},)"
            R"({"object":"embedding","index":1,"embedding":[-2,0]},)"
            R"({"object":"embedding","index":2,"embedding":[0.25,3]}],)"
            R"("model":"m","usage":{"prompt_tokens":9,"total_tokens":9}})");
  EXPECT_THAT(*WriteEmbeddings(kOpenAi, {.base64 = true}, embeddings, 1000),
              HasSubstr(R"("embedding":"AACAPwAAAD8="})"));
}

TEST(EmbeddingsJsonTest, SaysWhatCannotBeWritten) {
  const std::vector<std::string> rows = {Bytes({1, 2}), Bytes({1, std::numeric_limits<float>::quiet_NaN()})};
  const Embeddings embeddings = {.model = "m", .rows = rows, .width = 2};
  const auto nan = WriteEmbeddings(kTei, {}, embeddings, 1000);
  EXPECT_EQ(nan.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(nan.status().message()), HasSubstr("the vector of text 1 has"));
  for (const bool base64 : {false, true}) {
    const auto large = WriteEmbeddings(kOpenAi, {.base64 = base64}, embeddings, 20);
    EXPECT_EQ(large.status().code(), StatusCode::kOutOfRange) << base64;
  }
}

TEST(EmbeddingsJsonTest, ErrorsAreAsEachExpectsThem) {
  const HttpAnswer tei = EmbeddingsError(kTei, MakeError(StatusCode::kResourceExhausted, "full"));
  EXPECT_EQ(tei.status, 429);
  EXPECT_EQ(tei.body[0], R"({"error":"full","error_type":"Overloaded"})");
  const HttpAnswer openai = EmbeddingsError(kOpenAi, MakeError(StatusCode::kNotFound, "no model 'm'"));
  EXPECT_EQ(openai.status, 404);
  EXPECT_EQ(openai.body[0],
            R"({"error":{"message":"no model 'm'","type":"invalid_request_error","param":null,"code":null}})");
  EXPECT_EQ(EmbeddingsError(kOpenAi, MakeError(StatusCode::kOutOfRange, "")).status, 413);
}

}  // namespace
}  // namespace swizzle

#include "server/rest/text_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/model/string_tensor.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using swizzle::testing::IsError;
using ::testing::HasSubstr;
using enum TextEndpoint;

std::string Tensor(const std::vector<std::string>& texts) {
  std::string tensor;
  for (const std::string& text : texts) AppendElement(text, tensor);
  return tensor;
}

TEST(TextJsonTest, ReadsWhatOpenAisClientsSend) {
  const auto request =
      ReadTextRequest(kOpenAiEmbeddings, R"({"user": {"input": [1]}, "input": ["a", "", "\u00e4"], "model": "m",
                                                   "encoding_format": "base64", "dimensions": 4, "other": null})");
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->model, "m");
  EXPECT_EQ(request->texts, Tensor({"a", "", "ä"}));
  EXPECT_EQ(request->count, 3);
  EXPECT_EQ(request->dimensions, 4);
  EXPECT_TRUE(request->base64);
  EXPECT_FALSE(request->unit);
  const auto one = ReadTextRequest(kOpenAiEmbeddings, R"({"input": "a", "encoding_format": null})");
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(one->texts, Tensor({"a"}));
  EXPECT_EQ(one->model, "");
  EXPECT_FALSE(one->base64);
}

TEST(TextJsonTest, ReadsWhatTeisClientsSend) {
  const auto request =
      ReadTextRequest(kTeiEmbed, R"({"inputs": "a", "truncate": true, "prompt_name": null, "model": 7})");
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->texts, Tensor({"a"}));
  EXPECT_EQ(request->model, "") << "TEI serves one";
  EXPECT_TRUE(request->unit);
  EXPECT_FALSE(request->raw);
  const auto raw = ReadTextRequest(kTeiEmbed, R"({"inputs": ["a", "b"], "normalize": false})");
  ASSERT_TRUE(raw.ok()) << raw.status();
  EXPECT_FALSE(raw->unit);
  EXPECT_TRUE(raw->raw);
}

TEST(TextJsonTest, ReadsWhatTokensAreAskedFor) {
  const auto tokens = ReadTextRequest(kTeiTokenize, R"({"inputs": ["a", "b"], "add_special_tokens": false,
                                                        "prompt_name": "query", "truncate": 1, "dimensions": [1]})");
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_EQ(tokens->texts, Tensor({"a", "b"}));
  EXPECT_EQ(tokens->prompt, "query");
  EXPECT_FALSE(tokens->special_tokens);
  const auto plain = ReadTextRequest(kTeiTokenize, R"({"inputs": "a"})");
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_TRUE(plain->special_tokens && !plain->prompt.has_value());
  const auto vectors = ReadTextRequest(kTeiEmbedAll, R"({"inputs": "a", "truncate": true, "prompt_name": "query",
                                                         "truncation_direction": "Right", "normalize": 1})");
  ASSERT_TRUE(vectors.ok()) << vectors.status();
  EXPECT_TRUE(vectors->truncate && !vectors->unit && !vectors->raw);
  EXPECT_EQ(vectors->prompt, "query");
}

TEST(TextJsonTest, SaysWhatIsWrongAboutTokens) {
  const struct {
    TextEndpoint endpoint;
    const char* text;
    const char* said;
  } cases[] = {
      {kTeiEmbedAll, R"({"inputs": "a", "truncation_direction": "Left"})", "'truncation_direction' must be \"right\""},
      {kTeiEmbedAll, R"({"inputs": "a", "truncate": 1})", "'truncate' must be true or false"},
      {kTeiTokenize, R"({"inputs": "a", "add_special_tokens": "no"})", "'add_special_tokens' must be true or false"},
      {kTeiTokenize, R"({"inputs": "a", "prompt_name": []})", "'prompt_name' must be a string"},
      {kTeiTokenize, R"({"inputs": [7]})", "element 0 is neither"},
  };
  for (const auto& its : cases) {
    EXPECT_THAT(ReadTextRequest(its.endpoint, its.text), IsError(StatusCode::kInvalidArgument, its.said)) << its.text;
  }
}

TEST(TextJsonTest, RanksTextsByAQuery) {
  const auto request = ReadTextRequest(kTeiRerank, R"({"texts": ["a", ""], "query": "q", "raw_scores": true,
                                                       "return_text": true, "truncate": false})");
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->query, "q");
  EXPECT_EQ(request->texts, Tensor({"a", ""}));
  EXPECT_EQ(request->count, 2);
  EXPECT_TRUE(request->raw_scores);
  EXPECT_TRUE(request->return_text);
  EXPECT_FALSE(request->truncate);
  const auto plain = ReadTextRequest(kTeiRerank, R"({"query": "", "texts": ["a"], "model": [1], "dimensions": 0})");
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ(plain->query, "");
  EXPECT_FALSE(plain->raw_scores || plain->return_text);
  EXPECT_FALSE(plain->truncate) << "as text-embeddings-inference has it";
}

TEST(TextJsonTest, ComparesSentencesWithOne) {
  const auto request = ReadTextRequest(kTeiSimilarity, R"({"parameters": {"truncate": true, "prompt_name": "query"},
      "inputs": {"sentences": ["a", ""], "source_sentence": "s", "other": [1]}, "sentences": 7, "truncate": 1})");
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->texts, Tensor({"a", "", "s"}));
  EXPECT_EQ(request->count, 3);
  EXPECT_TRUE(request->unit && request->truncate);
  EXPECT_EQ(request->prompt, "query");
  EXPECT_FALSE(request->query.has_value());
  const auto plain = ReadTextRequest(kTeiSimilarity,
                                     R"({"inputs": {"source_sentence": "s", "sentences": ["a"]}, "parameters": null})");
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_FALSE(plain->truncate);
}

TEST(TextJsonTest, PredictsTextsAndPairs) {
  const struct {
    const char* inputs;
    std::vector<std::string> texts;
    std::vector<bool> pairs;
    bool single;
  } cases[] = {
      {R"("a")", {"a"}, {false}, true},
      {R"(["a"])", {"a"}, {false}, true},
      {R"(["a", "b"])", {"a", "b"}, {true}, true},
      {R"([["a"], ["b", "c"], ["d"]])", {"a", "b", "c", "d"}, {false, true, false}, false},
      {R"([["a", ""]])", {"a", ""}, {true}, false},
  };
  for (const auto& its : cases) {
    const auto request =
        ReadTextRequest(kTeiPredict, std::string("{\"raw_scores\": false, \"inputs\": ") + its.inputs + "}");
    ASSERT_TRUE(request.ok()) << request.status();
    EXPECT_EQ(request->texts, Tensor(its.texts)) << its.inputs;
    EXPECT_EQ(request->pairs, its.pairs) << its.inputs;
    EXPECT_EQ(request->count, static_cast<int64_t>(its.pairs.size())) << its.inputs;
    EXPECT_EQ(request->single, its.single) << its.inputs;
  }
}

TEST(TextJsonTest, ObjectsAndArraysAreNoSettings) {
  const struct {
    TextEndpoint endpoint;
    const char *text, *said;
  } cases[] = {
      {kTeiEmbed, R"({"inputs": "a", "truncate": [true]})", "'truncate' must be true or false"},
      {kTeiEmbed, R"({"inputs": "a", "prompt_name": {"name": "a"}})", "'prompt_name' must be a string"},
      {kTeiEmbed, R"({"inputs": "a", "dimensions": [1]})", "'dimensions' must be a whole number from 1 on"},
      {kOpenAiEmbeddings, R"({"input": "a", "model": {}})", "'model' must be a string"},
      {kOpenAiEmbeddings, R"({"input": "a", "encoding_format": ["float"]})",
       R"('encoding_format' must be "float" or "base64")"},
      {kTeiRerank, R"({"query": ["a"], "texts": ["a"]})", "'query' must be a string"},
      {kTeiPredict, R"({"inputs": "a", "raw_scores": {}})", "'raw_scores' must be true or false"},
  };
  for (const auto& its : cases) {
    EXPECT_THAT(ReadTextRequest(its.endpoint, its.text), IsError(StatusCode::kInvalidArgument, its.said)) << its.text;
  }
}

TEST(TextJsonTest, SaysWhatIsWrong) {
  const struct {
    TextEndpoint endpoint;
    std::string text;
    const char* said;
  } cases[] = {
      {kOpenAiEmbeddings, "", "is no JSON"},
      {kOpenAiEmbeddings, "[]", "must be a JSON object"},
      {kOpenAiEmbeddings, "7", "must be a JSON object"},
      {kOpenAiEmbeddings, R"({"input": ["a"]} x)", "is no JSON"},
      {kOpenAiEmbeddings, R"({"inputs": "a"})", "must have 'input'"},
      {kTeiEmbed, R"({"input": "a"})", "must have 'inputs'"},
      {kOpenAiEmbeddings, R"({"input": []})", "'input' must not be empty"},
      {kOpenAiEmbeddings, R"({"input": "a", "input": "b"})", "'input' is there twice"},
      {kOpenAiEmbeddings, R"({"input": null})", "element 0 is neither"},
      {kOpenAiEmbeddings, R"({"input": ["a", [101, 102]]})", "element 1 is neither; tokens are not taken"},
      {kOpenAiEmbeddings, R"({"input": [101]})", "element 0 is neither"},
      {kOpenAiEmbeddings, R"({"input": {"text": "a"}})", "element 0 is neither"},
      {kOpenAiEmbeddings, R"({"input": "a", "model": 1})", "'model' must be a string"},
      {kOpenAiEmbeddings, R"({"input": "a", "encoding_format": "hex"})",
       R"('encoding_format' must be "float" or "base64")"},
      {kOpenAiEmbeddings, R"({"input": "a", "dimensions": 0})", "'dimensions' must be a whole number from 1 on"},
      {kOpenAiEmbeddings, R"({"input": "a", "dimensions": -3})", "'dimensions' must be"},
      {kOpenAiEmbeddings, R"({"input": "a", "dimensions": 1e300})", "'dimensions' must be"},
      {kTeiEmbed, R"({"inputs": "a", "truncate": 0})", "'truncate' must be true or false"},
      {kTeiEmbed, R"({"inputs": "a", "normalize": "yes"})", "'normalize' must be true or false"},
      {kTeiEmbed, R"({"inputs": "a", "prompt_name": 1})", "'prompt_name' must be a string"},
      {kTeiEmbed, R"({"inputs": "a", "truncation_direction": "Left"})", "'truncation_direction' must be \"right\""},
      {kTeiEmbed, R"({"inputs": [["a", "b"]]})", "element 0 is neither"},
      {kTeiRerank, R"({"texts": ["a"]})", "must have 'query'"},
      {kTeiRerank, R"({"query": "a"})", "must have 'texts'"},
      {kTeiRerank, R"({"query": 1, "texts": ["a"]})", "'query' must be a string"},
      {kTeiRerank, R"({"query": "a", "texts": []})", "'texts' must not be empty"},
      {kTeiRerank, R"({"query": "a", "texts": ["a", ["b"]]})", "element 1 is neither"},
      {kTeiRerank, R"({"query": "a", "texts": ["a"], "return_text": 1})", "'return_text' must be true or false"},
      {kTeiRerank, R"({"query": "a", "texts": ["a"], "raw_scores": "no"})", "'raw_scores' must be true or false"},
      {kTeiPredict, R"({"inputs": []})", "'inputs' must not be empty"},
      {kTeiPredict, R"({"inputs": [[]]})", "element 0 is none of these"},
      {kTeiPredict, R"({"inputs": ["a", "b", "c"]})", "must be a string, an array of one string or a pair of them"},
      {kTeiPredict, R"({"inputs": [["a"], ["a", "b", "c"]]})", "element 1 is none of these"},
      {kTeiPredict, R"({"inputs": [["a"], "b"]})", "element 1 is none of these"},
      {kTeiPredict, R"({"inputs": ["a", ["b"]]})", "element 0 is none of these"},
      {kTeiPredict, R"({"inputs": [[["a"]]]})", "element 0 is none of these"},
      {kTeiPredict, R"({"inputs": [1]})", "element 0 is none of these"},
      {kTeiPredict, R"({"inputs": null})", "element 0 is none of these"},
      {kTeiPredict, R"({"inputs": {"a": 1}})", "element 0 is none of these"},
      {kOpenAiEmbeddings, "{\"a\": " + std::string(100, '['), "nests deeper"},
      {kOpenAiEmbeddings, "{\"input\": \"\xff\"}", "is no JSON"},
  };
  for (const auto& its : cases) {
    const auto request = ReadTextRequest(its.endpoint, its.text);
    ASSERT_FALSE(request.ok()) << its.text;
    EXPECT_EQ(request.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(request.status().message()), HasSubstr(its.said)) << its.text;
  }
}

TEST(TextJsonTest, SaysWhatIsWrongWithSentences) {
  const struct {
    const char *text, *said;
  } cases[] = {
      {R"({"sentences": ["a"], "source_sentence": "b"})", "its 'inputs' must have 'sentences'"},
      {R"({"inputs": {"sentences": ["a"]}})", "its 'inputs' must have 'source_sentence'"},
      {R"({"inputs": {"sentences": [], "source_sentence": "b"}})", "'sentences' must not be empty"},
      {R"({"inputs": {"sentences": ["a", 1]}})", "element 1 is neither"},
      {R"({"inputs": {"source_sentence": ["a"]}})", "'source_sentence' must be a string"},
      {R"({"inputs": ["a"]})", "'inputs' must be an object"},
      {R"({"inputs": "a"})", "'inputs' must be an object"},
      {R"({"parameters": {"truncate": 1}})", "'truncate' must be true or false"},
      {R"({"parameters": [1]})", "'parameters' must be an object"},
  };
  for (const auto& its : cases) {
    EXPECT_THAT(ReadTextRequest(kTeiSimilarity, its.text), IsError(StatusCode::kInvalidArgument, its.said)) << its.text;
  }
}

TEST(TextJsonTest, ErrorsAreAsEachExpectsThem) {
  const HttpAnswer tei = TextError(kTeiEmbed, MakeError(StatusCode::kResourceExhausted, "full"));
  EXPECT_EQ(tei.status, 429);
  EXPECT_EQ(tei.body[0], R"({"error":"full","error_type":"Overloaded"})");
  const HttpAnswer openai = TextError(kOpenAiEmbeddings, MakeError(StatusCode::kNotFound, "no model 'm'"));
  EXPECT_EQ(openai.status, 404);
  EXPECT_EQ(openai.body[0],
            R"({"error":{"message":"no model 'm'","type":"invalid_request_error","param":null,"code":null}})");
  EXPECT_EQ(TextError(kOpenAiEmbeddings, MakeError(StatusCode::kOutOfRange, "")).status, 413);
  EXPECT_EQ(TextError(kOpenAiEmbeddings, MakeError(StatusCode::kInternal, "")).status, 500);
  const HttpAnswer failed = TextError(kTeiRerank, MakeError(StatusCode::kInternal, "a NaN"));
  EXPECT_EQ(failed.status, 424);
  EXPECT_EQ(failed.body[0], R"({"error":"a NaN","error_type":"Backend"})");
}

}  // namespace
}  // namespace swizzle

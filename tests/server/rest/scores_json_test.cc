#include "server/rest/scores_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "server/model/string_tensor.h"
#include "tests/support/status_matchers.h"

namespace swizzle {
namespace {

using swizzle::testing::IsError;

std::string Bytes(const std::vector<float>& numbers) {
  std::string bytes(numbers.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

TEST(ScoresJsonTest, RanksTheBestFirst) {
  const std::vector<std::string> rows = {Bytes({0.25f, 0.75f}), Bytes({0.25f, -1})}, labels = {"LABEL_0"};
  const Scores scores = {.rows = rows, .labels = labels};
  TextRequest request = {.count = 4};
  for (const char* const text : {"a", "b\"", "", "d"}) AppendElement(text, request.texts);
  EXPECT_EQ(*WriteRanks(request, scores, 1000),
            R"([{"index":1,"score":0.75},{"index":0,"score":0.25},{"index":2,"score":0.25},{"index":3,"score":-1}])");
  request.return_text = true;
  EXPECT_EQ(*WriteRanks(request, scores, 1000),
            R"([{"index":1,"text":"b\"","score":0.75},{"index":0,"text":"a","score":0.25},)"
            R"({"index":2,"text":"","score":0.25},{"index":3,"text":"d","score":-1}])");
  EXPECT_THAT(WriteRanks(request, scores, 40), IsError(StatusCode::kOutOfRange, "more than 40 bytes"));
}

TEST(ScoresJsonTest, RanksByOneScoreAlone) {
  const std::vector<std::string> rows = {Bytes({0.25f, 0.75f, 1})}, labels = {"a", "b", "c"};
  EXPECT_THAT(WriteRanks({.count = 1}, {.rows = rows, .labels = labels}, 1000),
              IsError(StatusCode::kInternal, "the model gave 3 scores a row"));
}

TEST(ScoresJsonTest, LabelsAreByTheirScores) {
  const std::vector<std::string> rows = {Bytes({0.25f, 0.75f}), Bytes({0.5f, 0.5f})}, labels = {"no", "yes"};
  const Scores scores = {.rows = rows, .labels = labels};
  EXPECT_EQ(*WritePredictions({.count = 2}, scores, 1000),
            R"([[{"score":0.75,"label":"yes"},{"score":0.25,"label":"no"}],)"
            R"([{"score":0.5,"label":"no"},{"score":0.5,"label":"yes"}]])");
  const Scores one = {.rows = std::span(rows).first(1), .labels = labels};
  EXPECT_EQ(*WritePredictions({.count = 1, .single = true}, one, 1000),
            R"([{"score":0.75,"label":"yes"},{"score":0.25,"label":"no"}])");
  EXPECT_THAT(WritePredictions({.count = 2}, scores, 60), IsError(StatusCode::kOutOfRange, "more than 60 bytes"));
}

TEST(ScoresJsonTest, SaysWhatCannotBeWritten) {
  const std::vector<std::string> rows = {Bytes({1, 2}), Bytes({1, std::numeric_limits<float>::quiet_NaN()})};
  const std::vector<std::string> labels = {"no", "yes"}, broken = {"no", "\xff"};
  EXPECT_THAT(WritePredictions({.count = 2}, {.rows = rows, .labels = labels}, 1000),
              IsError(StatusCode::kInternal, "the scores of text 1 have a NaN"));
  EXPECT_THAT(WritePredictions({.count = 1}, {.rows = std::span(rows).first(1), .labels = broken}, 1000),
              IsError(StatusCode::kInvalidArgument, "UTF-8"));
}

}  // namespace
}  // namespace swizzle

#include "model_loader/pruning/score_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "model_loader/pruning/pruner.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_folder.h"

namespace swizzle {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::IsError;
using testing::IsOk;

template <typename T>
NpyArray Array(DType dtype, Shape shape, const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {dtype, std::move(shape), {bytes.begin(), bytes.end()}};
}

NpyArray Floats(Shape shape, const std::vector<float>& values) {
  return Array(DType::kFloat32, std::move(shape), values);
}

const std::vector<std::string> kNames = {"/net/Conv", "net.weight"};

TEST(ScoreFile, FindsScoresByAnyName) {
  for (const char* name : {"/net/Conv", "net.weight", "_net_Conv"}) {
    ScoreFile scores({{name, Floats({1, 2}, {3, -4})}});
    const auto found = scores.Of(kNames, {1, 2});
    ASSERT_THAT(found, IsOk());
    EXPECT_THAT(*found, ElementsAre(3, -4));
    EXPECT_THAT(scores.CheckAllUsed(), IsOk());
  }
  ScoreFile wide({{"net.weight", Array<double>(DType::kFloat64, {2}, {0.5, 2})}});
  EXPECT_THAT(*wide.Of(kNames, {2}), ElementsAre(0.5f, 2.0f));
}

TEST(ScoreFile, SaysWhatIsWrong) {
  const auto error = [](NpyArray array) {
    ScoreFile scores({{"net.weight", std::move(array)}});
    return std::string(scores.Of(kNames, {1, 2}).status().message());
  };
  EXPECT_THAT(error(Floats({2, 1}, {1, 2})), HasSubstr("have shape [2,1]; the weight has [1,2]"));
  EXPECT_THAT(error(Floats({1, 2}, {1, std::nanf("")})), HasSubstr("element 1 is not a number"));
  EXPECT_THAT(error(Array<int64_t>(DType::kInt64, {1, 2}, {1, 2})), HasSubstr("are INT64; save array.astype('<f4')"));
  EXPECT_THAT(ScoreFile({}).Of(kNames, {1, 2}),
              IsError(StatusCode::kInvalidArgument, "of weight 'net.weight' are missing"));
}

TEST(ScoreFile, InfiniteScoresLieBeyondAllOthers) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kMost = std::numeric_limits<float>::max();
  const auto scores = [](NpyArray array) {
    const Shape shape = array.shape;
    return *ScoreFile({{"net.weight", std::move(array)}}).Of(kNames, shape);
  };
  EXPECT_THAT(scores(Floats({4}, {kInfinity, 2, -kInfinity, -3})), ElementsAre(3145728, 2, -3145728, -3));
  EXPECT_THAT(scores(Floats({3}, {kInfinity, 0, -kInfinity})), ElementsAre(1048576, 0, -1048576));
  EXPECT_THAT(scores(Floats({3}, {kInfinity, 3e38f, -kMost})), ElementsAre(kMost, 3e38f, -kMost));
  EXPECT_THAT(scores(Array<double>(DType::kFloat64, {2}, {1e300, 1})), ElementsAre(1048576, 1));
}

TEST(ScoreFile, AMisspeltArrayIsAnError) {
  ScoreFile scores({{"net.weight", Floats({1}, {1})}, {"net.wieght", Floats({1}, {1})}});
  scores.Skip(kNames);
  EXPECT_THAT(scores.CheckAllUsed(), IsError(StatusCode::kInvalidArgument, "'net.wieght' are of no weight"));
}

TEST(ScoreFile, ReadsFoldersToo) {
  const TemporaryFolder folder;
  const std::vector<float> values = {1, 2};
  ASSERT_THAT(WriteNpy(folder / "_net_Conv.npy", {DType::kFloat32, {1, 2}, std::as_bytes(std::span(values))}), IsOk());
  auto scores = ScoreFile::Read(folder.path());
  ASSERT_THAT(scores, IsOk());
  EXPECT_THAT(*scores->Of(kNames, {1, 2}), ElementsAre(1, 2));
  EXPECT_THAT(ScoreFile::Read(folder / "none.npz"), IsError(StatusCode::kNotFound, "none.npz"));
}

// By every method what scores highest stays, though it is smallest, and each entry keeps its own score when the
// outputs are the last dimension.
TEST(ScoreFile, PruningGoesByScores) {
  for (const PruneMethodRow& row : PruneMethods()) {
    for (const bool outputs_last : {false, true}) {
      std::vector<float> weights(64 * 64), scores(weights.size());
      for (int64_t i = 0; i < 64 * 64; ++i) {
        const int64_t output = outputs_last ? i % 64 : i / 64, input = outputs_last ? i / 64 : i % 64;
        const bool wanted = output / 16 == input / 16;  // square blocks on the diagonal
        scores[i] = wanted ? 1.0f : -1.0f;
        weights[i] = wanted ? 0.1f : 1.0f;
      }
      ScoreFile file({{"net.weight", Floats({64, 64}, scores)}});
      Pruner pruner({.method = row.method, .vector_rows = 16, .limit = {4, 16}, .sparsity = 0.75, .scores = file});
      pruner.Prune({kNames, {64, 64}, outputs_last}, weights);
      ASSERT_THAT(pruner.CheckResult(), IsOk());
      if (row.method == PruneMethod::kNOfM) continue;  // zeros three of each four, whatever the others score
      for (size_t i = 0; i < weights.size(); ++i) EXPECT_EQ(weights[i] != 0, scores[i] > 0) << row.name << " " << i;
    }
  }
}

// Which rows belong together is found in spite of infinite scores, of both signs in one vector, too.
TEST(ScoreFile, InfiniteScoresDoNotHideTheOthers) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> low(0, 0.1f);
  std::vector<float> weights(64 * 64, 1.0f), scores(weights.size());
  const auto wanted = [](int64_t i) { return i / 64 % 4 == i % 64 / 16; };  // rows 0, 4, 8, ... share columns
  for (int64_t i = 0; i < 64 * 64; ++i) scores[i] = wanted(i) ? 1.0f : low(random);
  scores[0] = std::numeric_limits<float>::infinity();
  scores[4 * 64] = -std::numeric_limits<float>::infinity();
  ScoreFile file({{"net.weight", Floats({64, 64}, scores)}});
  Pruner pruner({.method = PruneMethod::kShflBw, .vector_rows = 16, .sparsity = 0.75, .scores = file});
  pruner.Prune({kNames, {64, 64}}, weights);
  ASSERT_THAT(pruner.CheckResult(), IsOk());
  for (int64_t i = 0; i < 64 * 64; ++i) EXPECT_EQ(weights[i] != 0, wanted(i)) << i;
}

TEST(ScoreFile, MissingScoresEndPruning) {
  Pruner pruner({.sparsity = 0.5, .scores = ScoreFile({})});
  std::vector<float> weights = {1, 2};
  pruner.Prune({kNames, {1, 2}}, weights);
  EXPECT_THAT(pruner.CheckResult(), IsError(StatusCode::kInvalidArgument, "'net.weight' are missing"));
  EXPECT_THAT(weights, ElementsAre(1, 2));
}

}  // namespace
}  // namespace swizzle

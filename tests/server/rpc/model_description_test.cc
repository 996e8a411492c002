#include "server/rpc/model_description.h"

#include <gtest/gtest.h>

#include "tests/support/message_text.h"

namespace swizzle {
namespace {

class DescribedModel final : public Model {
 public:
  explicit DescribedModel(ModelFacts facts) : facts_(std::make_shared<const ModelFacts>(std::move(facts))) {}
  const ModelSpec& spec() const override { return spec_; }
  std::shared_ptr<const ModelFacts> facts() const override { return facts_; }
  StatusOr<std::unique_ptr<Session>> NewSession(Clock&) override { return Unimplemented("nothing runs here"); }

 private:
  const ModelSpec spec_;
  const std::shared_ptr<const ModelFacts> facts_;
};

inference::ModelStatistics StatisticsOn(std::vector<std::string> devices) {
  ModelFacts facts;
  facts.device_bytes = 300;
  facts.devices = std::move(devices);
  return DescribeStatistics(DescribedModel(std::move(facts)), {});
}

TEST(DescribeStatisticsTest, WeightsOfTheHostAreTheCpus) {
  const inference::ModelStatistics statistics = StatisticsOn({"cpu"});
  ASSERT_EQ(statistics.memory_usage_size(), 1);
  EXPECT_EQ(statistics.memory_usage(0).type(), "CPU");
  EXPECT_EQ(statistics.memory_usage(0).id(), 0);
  EXPECT_EQ(statistics.memory_usage(0).byte_size(), 300u);
}

TEST(DescribeStatisticsTest, WeightsOfGpusAreEachGpus) {
  const inference::ModelStatistics statistics = StatisticsOn({"cuda:0", "cuda:2"});
  ASSERT_EQ(statistics.memory_usage_size(), 2);
  EXPECT_EQ(statistics.memory_usage(0).type(), "GPU");
  EXPECT_EQ(statistics.memory_usage(0).id(), 0);
  EXPECT_EQ(statistics.memory_usage(1).type(), "GPU");
  EXPECT_EQ(statistics.memory_usage(1).id(), 2);
  EXPECT_EQ(statistics.memory_usage(1).byte_size(), 300u);
}

TEST(DescribeIndexTest, NamesWhatIsNotReadyAndWhy) {
  const std::vector<ModelStatus> models = {
      {"bert", 3, absl::OkStatus(), ModelState::kReady},
      {"late", 0, absl::UnavailableError("model 'late' is being loaded"), ModelState::kLoading},
      {"rot", 2, absl::InvalidArgumentError("the file ends early"), ModelState::kFailed},
      {"\xff", 0, absl::InvalidArgumentError("model names consist of letters"), ModelState::kFailed}};
  const inference::RepositoryIndexResponse index = DescribeIndex(models, false);
  ASSERT_EQ(index.models_size(), 4);
  EXPECT_EQ(OneLineOf(index.models(0)), "name: \"bert\" version: \"3\" state: \"READY\"");
  EXPECT_EQ(OneLineOf(index.models(1)), "name: \"late\" state: \"LOADING\"");
  EXPECT_EQ(OneLineOf(index.models(2)),
            "name: \"rot\" version: \"2\" state: \"UNAVAILABLE\" reason: \"the file ends early\"");
  EXPECT_EQ(index.models(3).name(), "'?'");
  const inference::RepositoryIndexResponse ready = DescribeIndex(models, true);
  ASSERT_EQ(ready.models_size(), 1);
  EXPECT_EQ(ready.models(0).name(), "bert");
}

}  // namespace
}  // namespace swizzle

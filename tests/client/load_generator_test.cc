#include "client/load_generator.h"

#include <mutex>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace swizzle::client {
namespace {

// Answers with the request's own index, and fails the one it is told to.
class FakeClient : public Client {
 public:
  absl::StatusOr<bool> Live() override { return true; }
  absl::StatusOr<bool> Ready() override { return true; }
  absl::StatusOr<bool> ModelReady(const std::string&, const std::string&) override { return true; }
  absl::StatusOr<std::vector<ListedModel>> ListModels() override { return std::vector<ListedModel>(); }
  absl::Status LoadModel(const std::string&, absl::Duration) override { return absl::OkStatus(); }
  absl::Status UnloadModel(const std::string&) override { return absl::OkStatus(); }
  absl::StatusOr<ServerMetadata> GetServerMetadata() override { return ServerMetadata(); }
  absl::StatusOr<ModelMetadata> GetModelMetadata(const std::string&, const std::string&) override {
    return ModelMetadata();
  }
  absl::Status WaitReady(const std::string&, absl::Duration) override { return absl::OkStatus(); }
  std::shared_ptr<PendingCall> InferAsync(const InferRequest&, InferCallback) override { return nullptr; }

  absl::StatusOr<InferResult> Infer(const InferRequest& request) override {
    if (request.id == failing_id) return absl::ResourceExhaustedError("queue full");
    InferResult result;
    result.id = request.id;
    result.compute = absl::Microseconds(std::stoi(request.id));
    return result;
  }

  std::string failing_id;
};

InferRequest Numbered(int64_t index) {
  InferRequest request;
  request.id = std::to_string(index);
  return request;
}

TEST(LoadGeneratorTest, SendsEachRequestOnce) {
  FakeClient client;
  std::mutex mutex;
  std::multiset<int64_t> seen;
  int64_t last_progress = 0;
  const LoadReport report = RunLoad(
      client, {.concurrency = 4, .requests = 100}, Numbered,
      [&](int64_t index, const InferResult& result) {
        std::lock_guard lock(mutex);
        EXPECT_EQ(result.id, std::to_string(index));
        seen.insert(index);
      },
      [&](int64_t answered, absl::Duration) { last_progress = answered; });
  EXPECT_TRUE(report.first_error.ok());
  EXPECT_EQ(report.succeeded, 100);
  EXPECT_EQ(last_progress, 100);
  EXPECT_EQ(seen.size(), 100u);
  EXPECT_EQ(std::set<int64_t>(seen.begin(), seen.end()).size(), 100u);
  ASSERT_EQ(report.computes.size(), 100u);
  EXPECT_EQ(report.computes.front(), absl::ZeroDuration());
  EXPECT_EQ(report.computes.back(), absl::Microseconds(99));
  EXPECT_EQ(report.latencies.size(), 100u);
}

TEST(LoadGeneratorTest, EndsAtTheFirstError) {
  FakeClient client;
  client.failing_id = "3";
  const auto ignore_result = [](int64_t, const InferResult&) {};
  const LoadReport report = RunLoad(client, {.requests = 100}, Numbered, ignore_result, [](int64_t, absl::Duration) {});
  EXPECT_EQ(report.first_error.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(report.succeeded, 3);
}

TEST(LoadGeneratorTest, SendsNoneAfterTheDuration) {
  FakeClient client;
  const auto ignore_result = [](int64_t, const InferResult&) {};
  const LoadReport report =
      RunLoad(client, {.duration = absl::ZeroDuration()}, Numbered, ignore_result, [](int64_t, absl::Duration) {});
  EXPECT_EQ(report.succeeded, 0);
}

TEST(LoadGeneratorTest, TakesQuantiles) {
  const std::vector<absl::Duration> durations = {absl::Seconds(1), absl::Seconds(2), absl::Seconds(3),
                                                 absl::Seconds(6)};
  EXPECT_EQ(Quantile(durations, 0.5), absl::Seconds(2));
  EXPECT_EQ(Quantile(durations, 0.51), absl::Seconds(3));
  EXPECT_EQ(Quantile(durations, 0.99), absl::Seconds(6));
  EXPECT_EQ(Quantile(durations, 0), absl::Seconds(1));
  EXPECT_EQ(Quantile({}, 0.5), absl::ZeroDuration());
  EXPECT_EQ(Mean(durations), absl::Seconds(3));
  EXPECT_EQ(Mean({}), absl::ZeroDuration());
}

}  // namespace
}  // namespace swizzle::client

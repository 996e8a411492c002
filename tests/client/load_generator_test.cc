#include "client/load_generator.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <set>
#include <thread>

#include "client/load_windows.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace swizzle::client {
namespace {

// Answers, on a thread of its own, with the request's own index, and fails those that it is told to. While it holds,
// it answers nobody.
class FakeClient : public Client {
 public:
  ~FakeClient() override {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
      changed_.notify_all();
    }
    answerer_.join();
  }

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
  absl::StatusOr<std::vector<ModelStatistics>> GetStatistics(const std::string&, const std::string&) override {
    return std::vector<ModelStatistics>();
  }
  absl::StatusOr<ModelConfig> GetModelConfig(const std::string&, const std::string&) override { return ModelConfig(); }
  absl::Status WaitReady(const std::string&, absl::Duration) override { return absl::OkStatus(); }
  absl::StatusOr<InferResult> Infer(const InferRequest& request) override { return AnswerTo(request.id); }
  std::unique_ptr<InferStream> OpenStream(StreamCallbacks, absl::Duration) override { return nullptr; }

  std::shared_ptr<PendingCall> InferAsync(const InferRequest& request, InferCallback done) override {
    const std::lock_guard lock(mutex_);
    waiting_.emplace_back(request.id, std::move(done));
    most_waiting = std::max(most_waiting, waiting_.size());
    changed_.notify_all();
    return nullptr;
  }

  void Hold(bool holds) {
    const std::lock_guard lock(mutex_);
    holds_ = holds;
    changed_.notify_all();
  }

  std::set<std::string> failing_ids;
  absl::Status failure = absl::ResourceExhaustedError("queue full");
  size_t most_waiting = 0;

 private:
  absl::StatusOr<InferResult> AnswerTo(const std::string& id) const {
    if (failing_ids.contains(id)) return failure;
    InferResult result;
    result.id = id;
    result.compute = absl::Microseconds(std::stoi(id));
    return result;
  }

  void AnswerAll() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return done_ || (!holds_ && !waiting_.empty()); });
      if (done_) return;
      auto [id, done] = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      std::move(done)(AnswerTo(id));
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<std::string, InferCallback>> waiting_;
  bool holds_ = false, done_ = false;
  std::thread answerer_{[this] { AnswerAll(); }};
};

std::shared_ptr<const InferRequest> Numbered(int64_t index) {
  auto request = std::make_shared<InferRequest>();
  request->id = std::to_string(index);
  return request;
}

void IgnoreResult(int64_t, const InferResult&) {}
void IgnoreProgress(int64_t, absl::Duration) {}

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
  client.failing_ids = {"3"};
  const LoadReport report = RunLoad(client, {.requests = 100}, Numbered, IgnoreResult, IgnoreProgress);
  EXPECT_EQ(report.first_error.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(report.succeeded, 3);
  EXPECT_EQ(report.failed, 1);
}

TEST(LoadGeneratorTest, KeepsAsManyInFlightAsItIsTold) {
  FakeClient client;
  client.Hold(true);
  Load load(client, {.concurrency = 7, .requests = 50}, Numbered, IgnoreResult);
  EXPECT_FALSE(load.WaitFor(absl::ZeroDuration()));
  client.Hold(false);
  EXPECT_TRUE(load.WaitFor(absl::InfiniteDuration()));
  EXPECT_EQ(client.most_waiting, 7u);
  EXPECT_EQ(load.Take().succeeded, 50);
  EXPECT_EQ(load.Take().succeeded, 0);
}

// What waits for a server that stalls counts from when it was due: of ten requests, a millisecond apart, that a stall
// of 20 ms kept waiting, each waited for 10 ms and more.
TEST(LoadGeneratorTest, AtARateLatenciesCountFromWhenRequestsWereDue) {
  FakeClient client;
  client.Hold(true);
  Load load(client, {.rate = 1000, .max_in_flight = 1, .requests = 10}, Numbered, IgnoreResult);
  EXPECT_FALSE(load.WaitFor(absl::Milliseconds(20)));
  client.Hold(false);
  EXPECT_TRUE(load.WaitFor(absl::InfiniteDuration()));
  const LoadReport report = load.Take();
  EXPECT_EQ(report.succeeded, 10);
  EXPECT_EQ(client.most_waiting, 1u);
  EXPECT_GE(report.latencies.front(), absl::Milliseconds(10));
  EXPECT_GE(report.late, 9);
}

TEST(LoadGeneratorTest, AtARateABusyServerIsAResult) {
  FakeClient client;
  client.failing_ids = {"0", "3", "4"};
  const LoadOptions options{.rate = 1e5, .poisson = true, .requests = 20};
  LoadReport report = RunLoad(client, options, Numbered, IgnoreResult, IgnoreProgress);
  EXPECT_EQ(report.succeeded, 17);
  EXPECT_EQ(report.failed, 3);
  EXPECT_EQ(report.first_error.message(), "queue full");
  client.failure = absl::NotFoundError("there is no such model");
  report = RunLoad(client, {.rate = 1e5}, Numbered, IgnoreResult, IgnoreProgress);  // what else would end it
  EXPECT_EQ(report.first_error.message(), "there is no such model");
}

TEST(LoadGeneratorTest, IsStopped) {
  FakeClient client;
  for (const double rate : {0.0, 1000.0}) {
    Load load(client, {.concurrency = 3, .rate = rate}, Numbered, IgnoreResult);
    EXPECT_FALSE(load.WaitFor(absl::Milliseconds(5)));
    load.Stop();
    EXPECT_TRUE(load.WaitFor(absl::ZeroDuration()));
  }
}

TEST(LoadGeneratorTest, SendsNoneAfterTheDuration) {
  FakeClient client;
  const LoadReport report = RunLoad(client, {.duration = absl::ZeroDuration()}, Numbered, IgnoreResult, IgnoreProgress);
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

TEST(LoadWindowsTest, AreStableWhereTheLastThreeAgree) {
  using Windows = std::vector<WindowSummary>;
  const auto window = [](double rate, int ms) { return WindowSummary{rate, absl::Milliseconds(ms)}; };
  EXPECT_FALSE(IsStable(Windows{}, 10));
  EXPECT_FALSE(IsStable(Windows{window(100, 10), window(100, 10)}, 10));
  EXPECT_TRUE(IsStable(Windows{window(100, 10), window(105, 10), window(95, 10)}, 10));
  EXPECT_FALSE(IsStable(Windows{window(100, 10), window(150, 10), window(100, 10)}, 10));
  EXPECT_FALSE(IsStable(Windows{window(100, 10), window(100, 14), window(100, 10)}, 10));
  EXPECT_TRUE(IsStable(Windows{window(1, 99), window(100, 10), window(100, 10), window(100, 10)}, 10));
  EXPECT_FALSE(IsStable(Windows{window(0, 0), window(0, 0), window(0, 0)}, 10));
}

TEST(LoadWindowsTest, TheLastThreeWindowsAreReported) {
  FakeClient client;
  const WindowOptions anything_goes{absl::Milliseconds(20), /*stability_percent=*/1e12, /*max_trials=*/1000000, 99};
  const SettledReport settled = MeasureUntilStable(client, {.concurrency = 2}, anything_goes, Numbered, IgnoreProgress);
  EXPECT_TRUE(settled.stable);
  EXPECT_GE(settled.windows, 3);
  EXPECT_GE(settled.report.elapsed, absl::Milliseconds(60));
  EXPECT_EQ(static_cast<int64_t>(settled.report.latencies.size()), settled.report.succeeded);
  EXPECT_TRUE(std::is_sorted(settled.report.latencies.begin(), settled.report.latencies.end()));

  const WindowOptions nothing_does{absl::Milliseconds(1), /*stability_percent=*/0, /*max_trials=*/4, 0};
  EXPECT_EQ(MeasureUntilStable(client, {}, nothing_does, Numbered, IgnoreProgress).windows, 4);
  client.failing_ids = {"9"};
  const WindowOptions for_long{absl::Hours(1), /*stability_percent=*/10, /*max_trials=*/1, 0};
  const SettledReport failed = MeasureUntilStable(client, {}, for_long, Numbered, IgnoreProgress);
  EXPECT_EQ(failed.report.first_error.message(), "queue full");
  EXPECT_EQ(failed.report.succeeded, 9);
}

}  // namespace
}  // namespace swizzle::client

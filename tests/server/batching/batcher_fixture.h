// What tests of the batcher share: how requests end, what is recorded, and a batcher on a model that tests hold.
#ifndef SWIZZLE_TESTS_SERVER_BATCHING_BATCHER_FIXTURE_H_
#define SWIZZLE_TESTS_SERVER_BATCHING_BATCHER_FIXTURE_H_

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/batching/batcher.h"
#include "tests/server/batching/scripted_model.h"
#include "tests/support/fake_clock.h"

namespace swizzle {

// How one request ended.
class Outcome {
 public:
  Done Callback() {
    return [this](StatusOr<Result> result) {
      MutexLock lock(mutex_);
      ++calls_;
      result_ = std::move(result);
      changed_.SignalAll();
    };
  }
  StatusOr<Result> Wait() {
    MutexLock lock(mutex_);
    while (calls_ == 0) changed_.Wait(mutex_);
    return result_;
  }
  StatusCode WaitForCode() { return Wait().status().code(); }
  int calls() {
    MutexLock lock(mutex_);
    return calls_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int calls_ ABSL_GUARDED_BY(mutex_) = 0;
  StatusOr<Result> result_ ABSL_GUARDED_BY(mutex_) = absl::UnknownError("not ended");
};

class RecordingMetrics final : public ModelMetrics {
 public:
  struct BatchRecord {
    int64_t requests, rows, positions;
    BatchReason reason;
    bool operator==(const BatchRecord&) const = default;
  };

  void RecordRequest(StatusCode, absl::Duration) override {}
  void RecordQueued(absl::Duration queue) override {
    With([&] { queued.push_back(queue); });
  }
  void RecordBatch(const ExecutedBatch& batch) override {
    With([&] { batches.push_back({batch.requests, batch.rows, batch.positions, batch.reason}); });
  }
  void RecordRejected(Rejection why, absl::Duration waited) override {
    With([&] {
      rejected.push_back(why);
      rejected_after.push_back(waited);
    });
  }
  void RecordCacheLookup(CacheLookup found, absl::Duration) override {
    With([&] { lookups.push_back(found); });
  }
  void SetQueueDepth(int64_t requests) override {
    With([&] { depths.push_back(requests); });
  }
  void AddInflight(int64_t delta) override {
    With([&] { inflight += delta; });
  }
  void AddBusy(int stream, absl::Duration duration) override {
    With([&] {
      streams.insert(stream);
      busy += duration;
    });
  }
  void RecordTuning(const TuningRecord&) override {}
  ModelStatisticsTotals Statistics() const override { return {}; }

  // Read once the batcher has drained.
  std::vector<absl::Duration> queued;
  std::vector<BatchRecord> batches;
  std::vector<Rejection> rejected;
  std::vector<absl::Duration> rejected_after;  // of rejected, same order
  std::vector<CacheLookup> lookups;
  std::vector<int64_t> depths;
  std::set<int> streams;
  absl::Duration busy;
  int64_t inflight = 0;

 private:
  template <typename F>
  void With(F f) {
    MutexLock lock(mutex_);
    f();
  }
  Mutex mutex_;
};
using BatchRecord = RecordingMetrics::BatchRecord;

// Both ways of waiting for work: asleep, and watching the queue first, as executors of GPUs do.
class BatcherTest : public ::testing::TestWithParam<InstanceKind> {
 protected:
  void Start(ModelSpec spec) {
    spec.instance_kind = GetParam();
    model_ = std::make_shared<ScriptedModel>(std::move(spec));
    StatusOr<std::unique_ptr<Batcher>> batcher = NewBatcher(model_, clock_, &metrics_);
    ASSERT_TRUE(batcher.ok()) << batcher.status();
    batcher_ = *std::move(batcher);
  }

  Ticket Submit(int number, Outcome& outcome, int64_t rows = 1, Instant deadline = Instant::InfiniteFuture()) {
    Request request = NumberedRequest(number, rows);
    request.deadline = deadline;
    const StatusOr<Ticket> ticket = batcher_->Submit(std::move(request), outcome.Callback());
    EXPECT_TRUE(ticket.ok()) << ticket.status();
    return ticket.value_or(0);
  }

  // Keeps the only executor busy with request 0.
  void Occupy(Outcome& outcome) {
    model_->Block();
    Submit(0, outcome);
    model_->AwaitStarted(1);
  }

  void Finish() {
    model_->Release();
    batcher_->Drain();
  }

  FakeClock clock_;
  RecordingMetrics metrics_;
  std::shared_ptr<ScriptedModel> model_;
  std::unique_ptr<Batcher> batcher_;
};

inline std::string KindName(const ::testing::TestParamInfo<InstanceKind>& kind) {
  return kind.param == InstanceKind::kGpu ? "Gpu" : "Cpu";
}

}  // namespace swizzle

#endif  // SWIZZLE_TESTS_SERVER_BATCHING_BATCHER_FIXTURE_H_

// A model for tests of the batcher: its sessions can be blocked, made to fail, and tell what ran together. Thread-safe.
//
// A request is one FP32 tensor [rows] whose first element is the request's number; its output is its input.
#ifndef SWIZZLE_TESTS_SERVER_BATCHING_SCRIPTED_MODEL_H_
#define SWIZZLE_TESTS_SERVER_BATCHING_SCRIPTED_MODEL_H_

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/base/mutex.h"
#include "server/model/model.h"
#include "server/model/request.h"
#include "server/threading/clock.h"

namespace swizzle {

inline ModelSpec ScriptedSpec(int64_t max_batch_size) {
  ModelSpec spec;
  spec.name = "scripted";
  spec.max_batch_size = max_batch_size;
  spec.inputs = {{"X", DType::kFloat32, {}}};
  spec.outputs = {{"Y", DType::kFloat32, {}}};
  return spec;
}

inline Request NumberedRequest(int number, int64_t rows = 1) {
  auto values = std::make_shared<std::vector<float>>(static_cast<size_t>(rows), static_cast<float>(number));
  Request request;
  request.inputs.push_back({DType::kFloat32, {rows}, std::as_bytes(std::span<const float>(*values))});
  request.rows = rows;
  request.owner = std::move(values);
  return request;
}

class ScriptedModel final : public Model {
 public:
  using Numbers = std::vector<int>;

  explicit ScriptedModel(ModelSpec spec, Status session_status = absl::OkStatus())
      : spec_(std::move(spec)), session_status_(std::move(session_status)) {}

  const ModelSpec& spec() const override { return spec_; }
  std::shared_ptr<const ModelFacts> facts() const override { return facts_; }
  StatusOr<std::unique_ptr<Session>> NewSession(Clock&) override {
    if (!session_status_.ok()) return session_status_;
    return std::make_unique<ScriptedSession>(*this);
  }

  // Batches that start from now on wait for Release.
  void Block() {
    MutexLock lock(mutex_);
    blocked_ = true;
  }
  void Release() {
    MutexLock lock(mutex_);
    blocked_ = false;
    changed_.SignalAll();
  }
  // Batches that start from now on end with `status`.
  void EndWith(Status status) {
    MutexLock lock(mutex_);
    status_ = std::move(status);
  }
  // Batches that hold this request fail.
  void FailWith(int number) {
    MutexLock lock(mutex_);
    bad_number_ = number;
  }
  // The next batch finds no memory.
  void ThrowOnce() {
    MutexLock lock(mutex_);
    throw_next_ = true;
  }
  // From now on its session runs on any thread.
  void RunAtOnce() { runs_at_once_ = true; }
  // Batches that start from now on do this.
  void Do(std::function<void()> work) {
    MutexLock lock(mutex_);
    work_ = std::move(work);
  }
  void AwaitStarted(size_t batches) {
    MutexLock lock(mutex_);
    while (started_.size() < batches) changed_.Wait(mutex_);
  }
  // The requests' numbers of each batch, in the order in which the batches started.
  std::vector<Numbers> batches() const {
    MutexLock lock(mutex_);
    return started_;
  }
  // Of the same batches.
  std::vector<std::thread::id> threads() const {
    MutexLock lock(mutex_);
    return threads_;
  }

 private:
  class ScriptedSession final : public Session {
   public:
    explicit ScriptedSession(ScriptedModel& model) : model_(model) {}
    Status Run(std::span<BatchItem> batch, BatchTimes& times) override { return model_.Run(batch, times); }
    bool RunsAtOnce(uint64_t) const override { return model_.runs_at_once_; }

   private:
    ScriptedModel& model_;
  };

  Status Run(std::span<BatchItem> batch, BatchTimes& times) {
    Numbers numbers;
    for (BatchItem& item : batch) {
      const std::span<const std::byte> bytes = item.inputs[0].bytes;
      float first;
      std::memcpy(&first, bytes.data(), sizeof(first));
      numbers.push_back(static_cast<int>(first));
      item.outputs->assign({std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size())});
      item.output_shapes->assign({item.inputs[0].shape});
    }
    times = {absl::Microseconds(1), absl::Microseconds(20), absl::Microseconds(3)};
    MutexLock lock(mutex_);
    const bool bad = std::ranges::find(numbers, bad_number_) != numbers.end();
    Status status = bad ? absl::InvalidArgumentError("a bad request") : status_;
    if (std::exchange(throw_next_, false)) throw std::bad_alloc();
    started_.push_back(std::move(numbers));
    threads_.push_back(std::this_thread::get_id());
    if (work_) work_();
    changed_.SignalAll();
    while (blocked_) changed_.Wait(mutex_);
    return status;
  }

  const ModelSpec spec_;
  const std::shared_ptr<const ModelFacts> facts_ = std::make_shared<const ModelFacts>();
  const Status session_status_;
  std::atomic<bool> runs_at_once_ = false;
  mutable Mutex mutex_;
  CondVar changed_;
  bool blocked_ ABSL_GUARDED_BY(mutex_) = false;
  Status status_ ABSL_GUARDED_BY(mutex_);
  int bad_number_ ABSL_GUARDED_BY(mutex_) = -1;
  bool throw_next_ ABSL_GUARDED_BY(mutex_) = false;
  std::function<void()> work_ ABSL_GUARDED_BY(mutex_);
  std::vector<Numbers> started_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread::id> threads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace swizzle

#endif  // SWIZZLE_TESTS_SERVER_BATCHING_SCRIPTED_MODEL_H_

#include "client/load_generator.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

namespace swizzle::client {
namespace {

using SteadyClock = std::chrono::steady_clock;

absl::Duration Since(SteadyClock::time_point start) { return absl::FromChrono(SteadyClock::now() - start); }

class LoadGenerator {
 public:
  LoadGenerator(Client& client, const LoadOptions& options, const RequestSource& source, const ResultSink& sink)
      : client_(client), options_(options), source_(source), sink_(sink), start_(SteadyClock::now()) {}

  LoadReport Run(const ProgressSink& progress) {
    std::vector<std::thread> threads;
    threads.reserve(static_cast<size_t>(options_.concurrency));
    {
      std::lock_guard lock(mutex_);
      running_ = options_.concurrency;
    }
    for (int i = 0; i < options_.concurrency; ++i) threads.emplace_back([this] { SendAll(); });
    ReportUntilDone(progress);
    for (std::thread& thread : threads) thread.join();
    return Finish();
  }

 private:
  void SendAll() {
    while (!stop_ && Since(start_) < options_.duration) {
      const int64_t index = next_++;
      if (options_.requests > 0 && index >= options_.requests) break;
      Send(index);
    }
    std::lock_guard lock(mutex_);
    if (--running_ == 0) all_done_.notify_one();
  }

  void Send(int64_t index) {
    const InferRequest request = source_(index);
    const SteadyClock::time_point sent = SteadyClock::now();
    const absl::StatusOr<InferResult> result = client_.Infer(request);
    const absl::Duration latency = Since(sent);
    if (result.ok()) sink_(index, *result);
    std::lock_guard lock(mutex_);
    if (!result.ok()) {
      stop_ = true;
      report_.first_error.Update(result.status());
      return;
    }
    ++report_.succeeded;
    report_.latencies.push_back(latency);
    report_.queues.push_back(result->queue);
    report_.computes.push_back(result->compute);
  }

  void ReportUntilDone(const ProgressSink& progress) {
    bool done = false;
    while (!done) {
      int64_t answered;
      {
        std::unique_lock lock(mutex_);
        done = all_done_.wait_for(lock, absl::ToChronoNanoseconds(options_.progress_interval),
                                  [this] { return running_ == 0; });
        answered = report_.succeeded;
      }
      progress(answered, Since(start_));
    }
  }

  LoadReport Finish() {
    std::lock_guard lock(mutex_);
    report_.elapsed = Since(start_);
    std::sort(report_.latencies.begin(), report_.latencies.end());
    std::sort(report_.queues.begin(), report_.queues.end());
    std::sort(report_.computes.begin(), report_.computes.end());
    return std::move(report_);
  }

  Client& client_;
  const LoadOptions options_;
  const RequestSource& source_;
  const ResultSink& sink_;
  const SteadyClock::time_point start_;
  std::atomic<int64_t> next_ = 0;
  std::atomic<bool> stop_ = false;

  std::mutex mutex_;  // guards what follows
  std::condition_variable all_done_;
  int running_ = 0;
  LoadReport report_;
};

}  // namespace

LoadReport RunLoad(Client& client, const LoadOptions& options, const RequestSource& source, const ResultSink& sink,
                   const ProgressSink& progress) {
  return LoadGenerator(client, options, source, sink).Run(progress);
}

absl::Duration Quantile(const std::vector<absl::Duration>& ascending, double fraction) {
  if (ascending.empty()) return absl::ZeroDuration();
  const auto rank = static_cast<int64_t>(std::ceil(fraction * static_cast<double>(ascending.size())));
  return ascending[std::clamp<int64_t>(rank - 1, 0, static_cast<int64_t>(ascending.size()) - 1)];
}

absl::Duration Mean(const std::vector<absl::Duration>& values) {
  if (values.empty()) return absl::ZeroDuration();
  absl::Duration sum;
  for (const absl::Duration value : values) sum += value;
  return sum / static_cast<int64_t>(values.size());
}

}  // namespace swizzle::client

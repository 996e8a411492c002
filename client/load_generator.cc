#include "client/load_generator.h"

#include <sys/prctl.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

namespace swizzle::client {
namespace {

constexpr absl::Duration kLate = absl::Milliseconds(1);
constexpr std::chrono::milliseconds kLongestSleep{50};  // until it is seen that the load is to stop

// Whether the server was too busy, as an open loop has to find out.
bool IsOverload(const absl::Status& status) {
  return !IsUnreachable(status) &&
         (absl::IsResourceExhausted(status) || absl::IsDeadlineExceeded(status) || absl::IsUnavailable(status));
}

// When requests are due, one after the other, as seconds since the first.
class Schedule {
 public:
  Schedule(double rate, bool poisson) : rate_(rate), poisson_(poisson) {}

  double Next() {
    const double due = poisson_ ? sum_ : static_cast<double>(count_) / rate_;
    if (poisson_) sum_ += gap_(random_) / rate_;
    ++count_;
    return due;
  }

 private:
  const double rate_;
  const bool poisson_;
  int64_t count_ = 0;
  double sum_ = 0;
  std::mt19937_64 random_{1};
  std::exponential_distribution<double> gap_;
};

void Sort(LoadReport& report) {
  std::sort(report.latencies.begin(), report.latencies.end());
  std::sort(report.queues.begin(), report.queues.end());
  std::sort(report.computes.begin(), report.computes.end());
}

}  // namespace

Load::Load(Client& client, const LoadOptions& options, RequestSource source, ResultSink sink)
    : client_(client),
      options_(options),
      source_(std::move(source)),
      sink_(std::move(sink)),
      start_(SteadyClock::now()),
      taken_(start_),
      last_answer_(start_) {
  if (options_.rate > 0) {
    sender_ = std::thread([this] { SendOpen(); });
  } else {
    StartClosed();
  }
}

Load::~Load() {
  Stop();
  if (sender_.joinable()) sender_.join();
}

void Load::StartClosed() {
  for (int i = 0; i < options_.concurrency; ++i) {
    std::unique_lock lock(mutex_);
    if (!MayStart()) break;
    ++in_flight_;
    const int64_t index = CountNext();
    lock.unlock();
    Send(index, SteadyClock::now());
  }
  const std::lock_guard lock(mutex_);
  starting_ = false;
  changed_.notify_all();
}

void Load::SendOpen() {
  prctl(PR_SET_TIMERSLACK, 1);  // nanosecond; by default sleeps end up to 50 us late, which would count as latency
  Schedule schedule(options_.rate, options_.poisson);
  for (;;) {
    const Instant due =
        start_ + std::chrono::duration_cast<SteadyClock::duration>(std::chrono::duration<double>(schedule.Next()));
    if (absl::FromChrono(due - start_) >= options_.duration || !SleepUntil(due)) break;
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return in_flight_ < options_.max_in_flight || stop_; });
    if (stop_ || (options_.requests > 0 && next_ >= options_.requests)) break;
    ++in_flight_;
    const int64_t index = CountNext();
    if (absl::FromChrono(SteadyClock::now() - due) > kLate) ++report_.late;
    lock.unlock();
    Send(index, due);
  }
  const std::lock_guard lock(mutex_);
  starting_ = false;
  changed_.notify_all();
}

// Whether the load still goes on then.
bool Load::SleepUntil(Instant due) {
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (stop_) return false;
    }
    const Instant now = SteadyClock::now();
    if (now >= due) return true;
    std::this_thread::sleep_until(std::min<Instant>(due, now + kLongestSleep));
  }
}

bool Load::MayStart() {
  return !stop_ && (options_.requests == 0 || next_ < options_.requests) && elapsed() < options_.duration;
}

bool Load::IsOver() const { return in_flight_ == 0 && senders_ == 0 && !starting_; }

// The index of a request that is sent now.
int64_t Load::CountNext() {
  ++senders_;
  return next_++;
}

void Load::Send(int64_t index, Instant due) {
  const std::shared_ptr<const InferRequest> request = source_(index);
  const Instant begin = SteadyClock::now();
  // What the source took to make the request is no latency of the server's.
  if (options_.rate <= 0) due = begin;
  client_.InferAsync(*request,
                     [this, index, due](const absl::StatusOr<InferResult>& result) { Answer(index, due, result); });
  const absl::Duration took = absl::FromChrono(SteadyClock::now() - begin);
  const std::lock_guard lock(mutex_);
  report_.sending += took;
  --senders_;
  if (IsOver()) changed_.notify_all();
}

void Load::Answer(int64_t index, Instant due, const absl::StatusOr<InferResult>& result) {
  const Instant now = SteadyClock::now();
  if (result.ok()) sink_(index, *result);
  std::unique_lock lock(mutex_);
  last_answer_ = now;
  Record(absl::FromChrono(now - due), result);
  if (options_.rate <= 0 && MayStart()) {
    const int64_t next = CountNext();
    lock.unlock();
    return Send(next, now);
  }
  --in_flight_;
  if (IsOver() || in_flight_ + 1 == options_.max_in_flight) changed_.notify_all();
}

void Load::Record(absl::Duration latency, const absl::StatusOr<InferResult>& result) {
  if (!result.ok()) {
    ++report_.failed;
    report_.first_error.Update(result.status());
    if (options_.rate <= 0 || !IsOverload(result.status())) stop_ = true;
    return;
  }
  ++answered_;
  ++report_.succeeded;
  report_.latencies.push_back(latency);
  report_.queues.push_back(result->queue);
  report_.computes.push_back(result->compute);
}

bool Load::WaitFor(absl::Duration most) {
  std::unique_lock lock(mutex_);
  const auto is_over = [this] { return IsOver(); };
  if (most == absl::InfiniteDuration()) {
    changed_.wait(lock, is_over);
    return true;
  }
  return changed_.wait_for(lock, absl::ToChronoNanoseconds(most), is_over);
}

int64_t Load::answered() {
  const std::lock_guard lock(mutex_);
  return answered_;
}

absl::Duration Load::elapsed() const { return absl::FromChrono(SteadyClock::now() - start_); }

LoadReport Load::Take() {
  std::unique_lock lock(mutex_);
  const Instant now = IsOver() ? last_answer_ : SteadyClock::now();
  report_.elapsed = absl::FromChrono(now - taken_);
  taken_ = now;
  LoadReport report = std::exchange(report_, LoadReport());
  lock.unlock();
  Sort(report);
  return report;
}

void Load::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  WaitFor(absl::InfiniteDuration());
}

LoadReport RunLoad(Client& client, const LoadOptions& options, const RequestSource& source, const ResultSink& sink,
                   const ProgressSink& progress) {
  Load load(client, options, source, sink);
  for (bool over = false; !over;) {
    over = load.WaitFor(options.progress_interval);
    progress(load.answered(), load.elapsed());
  }
  return load.Take();
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

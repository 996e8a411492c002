#include "client/load_windows.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <utility>
#include <vector>

namespace swizzle::client {
namespace {

constexpr size_t kAgreeing = 3;

bool AreClose(std::span<const double> values, double percent) {
  double mean = 0;
  for (const double value : values) mean += value / static_cast<double>(values.size());
  return std::ranges::all_of(values, [&](double value) { return std::abs(value - mean) <= mean * percent / 100; });
}

WindowSummary Summary(const LoadReport& report, double percentile) {
  const double seconds = absl::ToDoubleSeconds(report.elapsed);
  return {seconds > 0 ? static_cast<double>(report.succeeded) / seconds : 0,
          percentile > 0 ? Quantile(report.latencies, percentile / 100) : Mean(report.latencies)};
}

void Append(const std::vector<absl::Duration>& from, std::vector<absl::Duration>& to) {
  const auto middle = to.insert(to.end(), from.begin(), from.end());
  std::inplace_merge(to.begin(), middle, to.end());
}

void Add(const LoadReport& window, LoadReport& sum) {
  sum.succeeded += window.succeeded;
  sum.failed += window.failed;
  sum.late += window.late;
  sum.elapsed += window.elapsed;
  sum.sending += window.sending;
  sum.first_error.Update(window.first_error);
  Append(window.latencies, sum.latencies);
  Append(window.queues, sum.queues);
  Append(window.computes, sum.computes);
}

// Whether the load is over before the window is.
bool AwaitWindow(Load& load, absl::Duration interval, absl::Duration step, const ProgressSink& progress) {
  const absl::Duration end = load.elapsed() + interval;
  for (absl::Duration left = interval; left > absl::ZeroDuration(); left = end - load.elapsed()) {
    const bool over = load.WaitFor(std::min(step, left));
    progress(load.answered(), load.elapsed());
    if (over) return true;
  }
  return false;
}

}  // namespace

bool IsStable(std::span<const WindowSummary> windows, double percent) {
  if (windows.size() < kAgreeing) return false;
  std::vector<double> rates, latencies;
  for (const WindowSummary& window : windows.last(kAgreeing)) {
    if (window.rate <= 0) return false;
    rates.push_back(window.rate);
    latencies.push_back(absl::ToDoubleSeconds(window.latency));
  }
  return AreClose(rates, percent) && AreClose(latencies, percent);
}

SettledReport MeasureUntilStable(Client& client, LoadOptions load_options, const WindowOptions& options,
                                 const RequestSource& source, const ProgressSink& progress) {
  load_options.requests = 0;
  load_options.duration = absl::InfiniteDuration();
  Load load(client, load_options, source, [](int64_t, const InferResult&) {});
  SettledReport settled;
  std::vector<WindowSummary> summaries;
  std::deque<LoadReport> last;
  bool over = false;
  while (!over && !settled.stable && settled.windows < options.max_trials) {
    over = AwaitWindow(load, options.interval, load_options.progress_interval, progress);
    last.push_back(load.Take());
    if (last.size() > kAgreeing) last.pop_front();
    summaries.push_back(Summary(last.back(), options.percentile));
    settled.stable = IsStable(summaries, options.stability_percent);
    ++settled.windows;
  }
  for (const LoadReport& window : last) Add(window, settled.report);
  return settled;
}

}  // namespace swizzle::client

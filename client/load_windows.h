// Measures a load in windows of equal length until three in a row agree, as perf_analyzer does: a server that has just
// started, or tunes, is measured once it has settled.
#ifndef SWIZZLE_CLIENT_LOAD_WINDOWS_H_
#define SWIZZLE_CLIENT_LOAD_WINDOWS_H_

#include <span>

#include "absl/time/time.h"
#include "client/load_generator.h"

namespace swizzle::client {

struct WindowOptions {
  absl::Duration interval = absl::Seconds(5);
  double stability_percent = 10;  // how far rate and latency of each of the three may be from their mean
  int max_trials = 10;            // windows until it is given up
  double percentile = 0;          // whose latency has to be stable, 0 to 100; 0: the mean's
};

struct WindowSummary {
  double rate = 0;  // requests a second
  absl::Duration latency;
};

// Whether the last three agree.
bool IsStable(std::span<const WindowSummary> windows, double percent);

struct SettledReport {
  LoadReport report;  // of the last three windows together, or of as many as there were
  bool stable = false;
  int windows = 0;
};

// Runs a load without limits of its own. It ends early where the load does.
SettledReport MeasureUntilStable(Client& client, LoadOptions load, const WindowOptions& options,
                                 const RequestSource& source, const ProgressSink& progress);

}  // namespace swizzle::client

#endif  // SWIZZLE_CLIENT_LOAD_WINDOWS_H_

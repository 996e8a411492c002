// Time for commands: what is measured is of the monotonic clock, what is told of the wall's.
#ifndef SWIZZLE_CLIENT_CLI_CLOCK_H_
#define SWIZZLE_CLIENT_CLI_CLOCK_H_

#include <chrono>

#include "absl/time/time.h"

namespace swizzle::client {

// For stamps.
absl::Time WallNow();

// Runs from when it is made.
class Stopwatch {
 public:
  absl::Duration elapsed() const { return absl::FromChrono(std::chrono::steady_clock::now() - start_); }
  // From its start to that of a later one.
  absl::Duration Until(const Stopwatch& later) const { return absl::FromChrono(later.start_ - start_); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace swizzle::client

#endif  // SWIZZLE_CLIENT_CLI_CLOCK_H_

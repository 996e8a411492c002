// A point in time by the monotonic clock, which no correction of the wall clock moves: what deadlines and latencies are
// made of. It is a type of its own, so that it can't be mixed up with an absl::Time, which says when something
// happened.
//
// Instants mean nothing to another process. Trivially copyable; infinities behave as absl::Duration's do.
#ifndef SWIZZLE_KERNELS_BASE_INSTANT_H_
#define SWIZZLE_KERNELS_BASE_INSTANT_H_

#include <chrono>

#include "absl/time/time.h"

namespace swizzle {

class Instant {
 public:
  constexpr Instant() = default;  // the clock's origin
  static constexpr Instant InfiniteFuture() { return Instant(absl::InfiniteDuration()); }
  static constexpr Instant InfinitePast() { return Instant(-absl::InfiniteDuration()); }
  static Instant FromChrono(std::chrono::steady_clock::time_point time) {
    return Instant(absl::FromChrono(time.time_since_epoch()));
  }

  // The nearest there is.
  std::chrono::steady_clock::time_point ToChrono() const {
    return std::chrono::steady_clock::time_point(absl::ToChronoNanoseconds(since_origin_));
  }

  friend Instant operator+(Instant time, absl::Duration by) { return Instant(time.since_origin_ + by); }
  friend Instant operator-(Instant time, absl::Duration by) { return Instant(time.since_origin_ - by); }
  friend absl::Duration operator-(Instant a, Instant b) { return a.since_origin_ - b.since_origin_; }
  friend constexpr bool operator==(Instant a, Instant b) { return a.since_origin_ == b.since_origin_; }
  friend constexpr bool operator!=(Instant a, Instant b) { return !(a == b); }
  friend constexpr bool operator<(Instant a, Instant b) { return a.since_origin_ < b.since_origin_; }
  friend constexpr bool operator>(Instant a, Instant b) { return b < a; }
  friend constexpr bool operator<=(Instant a, Instant b) { return !(b < a); }
  friend constexpr bool operator>=(Instant a, Instant b) { return !(a < b); }

 private:
  constexpr explicit Instant(absl::Duration since_origin) : since_origin_(since_origin) {}

  absl::Duration since_origin_;
};

inline Instant MonotonicNow() { return Instant::FromChrono(std::chrono::steady_clock::now()); }

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_BASE_INSTANT_H_

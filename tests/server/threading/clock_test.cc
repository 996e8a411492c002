#include "server/threading/clock.h"

#include <gtest/gtest.h>

#include "absl/time/clock.h"
#include "tests/support/fake_clock.h"

namespace swizzle {
namespace {

TEST(InstantTest, BehavesAsTheDurationSinceTheOrigin) {
  const Instant start = MonotonicNow();
  const Instant later = start + absl::Seconds(2);
  EXPECT_EQ(later - start, absl::Seconds(2));
  EXPECT_EQ(later - absl::Seconds(2), start);
  EXPECT_LT(start, later);
  EXPECT_EQ(Instant::FromChrono(later.ToChrono()), later);
}

TEST(InstantTest, InfinitiesStayInfinite) {
  const Instant start = MonotonicNow();
  EXPECT_EQ(start + absl::InfiniteDuration(), Instant::InfiniteFuture());
  EXPECT_EQ(Instant::InfiniteFuture() - absl::Hours(1), Instant::InfiniteFuture());
  EXPECT_EQ(Instant::InfiniteFuture() - start, absl::InfiniteDuration());
  EXPECT_LT(Instant::InfinitePast(), start);
  EXPECT_GT(Instant::InfiniteFuture().ToChrono(), start.ToChrono());
}

TEST(ClockTest, RealTimeGoesOn) {
  const Instant before = Clock::Real().Now();
  EXPECT_GE(Clock::Real().Now(), before);
  EXPECT_GE(Clock::Real().Now(), Instant::FromChrono(std::chrono::steady_clock::now()) - absl::Hours(1));
}

TEST(ClockTest, ADeadlineInWallTimeIsAsFarAhead) {
  FakeClock clock;
  EXPECT_EQ(clock.FromWall(clock.WallNow() + absl::Seconds(3)), clock.Now() + absl::Seconds(3));
  EXPECT_EQ(clock.FromWall(clock.WallNow() - absl::Seconds(3)), clock.Now() - absl::Seconds(3));
  EXPECT_EQ(clock.FromWall(absl::InfiniteFuture()), Instant::InfiniteFuture());
}

TEST(ClockTest, SettingTheWallClockMovesNoInstant) {
  FakeClock clock;
  const Instant before = clock.Now();
  const Instant deadline = clock.FromWall(clock.WallNow() + absl::Seconds(3));
  clock.JumpWall(absl::Hours(-5));
  EXPECT_EQ(clock.Now(), before);
  EXPECT_EQ(deadline - clock.Now(), absl::Seconds(3));
}

TEST(ClockTest, AWaitEndsAtItsDeadline) {
  Mutex mutex;
  CondVar never;
  const Instant deadline = Clock::Real().Now() + absl::Microseconds(200);
  MutexLock lock(mutex);
  while (Clock::Real().Now() < deadline) Clock::Real().WaitUntil(mutex, never, deadline);
}

}  // namespace
}  // namespace swizzle

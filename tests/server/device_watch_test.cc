// A lost device is told once; a watch that ends calls nothing any more.
#include "server/device_watch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>

#include "absl/synchronization/notification.h"
#include "tests/support/fake_clock.h"

namespace swizzle {
namespace {

TEST(DeviceWatchTest, TellsOfTheFirstErrorOnce) {
  std::atomic<int> asked = 0, told = 0;
  absl::Notification lost;
  Status seen;
  std::optional<DeviceWatch> watch;
  watch.emplace([&] { return ++asked < 3 ? absl::OkStatus() : MakeError(StatusCode::kInternal, "gone"); },
                [&](const Status& status) {
                  ++told;
                  seen = status;
                  lost.Notify();
                },
                Clock::Real(), absl::Milliseconds(1));
  lost.WaitForNotification();
  watch.reset();  // its thread is joined, which ThreadSanitizer sees: Abseil's notification it does not
  EXPECT_EQ(seen.message(), "gone");
  EXPECT_EQ(told, 1);
  EXPECT_EQ(asked, 3);
}

TEST(DeviceWatchTest, AsksOnceAnInterval) {
  FakeClock clock;
  std::atomic<int> asked = 0;
  const auto ask = [&] {
    ++asked;
    return absl::OkStatus();
  };
  const DeviceWatch watch(
      ask, [](const Status&) { FAIL(); }, clock, absl::Hours(1));
  clock.AwaitWaiters(1);
  EXPECT_EQ(asked, 1);
  clock.Advance(absl::Minutes(59));
  clock.JumpWall(absl::Hours(24));
  EXPECT_EQ(asked, 1);
  clock.Advance(absl::Minutes(1));
  while (asked < 2) std::this_thread::yield();
}

TEST(DeviceWatchTest, EndsWithoutWaitingForTheInterval) {
  const DeviceWatch watch([] { return absl::OkStatus(); }, [](const Status&) { FAIL(); }, Clock::Real(),
                          absl::Hours(1));
}

}  // namespace
}  // namespace swizzle

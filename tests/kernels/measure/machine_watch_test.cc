#include "kernels/measure/machine_watch.h"

#include <gtest/gtest.h>

#include <thread>

namespace swizzle {
namespace {

ThreadReading Reading(absl::Duration cpu, std::optional<absl::Duration> waited, int64_t switches = 0) {
  return {cpu, switches, waited};
}

constexpr absl::Duration kWall = absl::Microseconds(1000);
const ThreadReading kBefore = Reading(absl::Seconds(3), absl::Milliseconds(40), 7);

std::string Met(absl::Duration cpu, absl::Duration waited, int64_t switches) {
  const ThreadReading after = {kBefore.cpu + cpu, kBefore.forced_switches + switches, *kBefore.waited + waited};
  return DisturbancesText(DisturbedThreads(kBefore, after, kWall));
}

TEST(DisturbedThreadsTest, ByWaitsSwitchesAndSleep) {
  EXPECT_EQ(Met(kWall, absl::ZeroDuration(), 0), "");
  EXPECT_EQ(Met(kWall, absl::Microseconds(15), 0), "") << "a wake-up";
  EXPECT_EQ(Met(kWall, absl::Microseconds(400), 0), "waited") << "another thread of the pool did";
  EXPECT_EQ(Met(kWall, absl::ZeroDuration(), 1), "waited");
  EXPECT_EQ(Met(kWall / 2, absl::ZeroDuration(), 0), "asleep");
  EXPECT_EQ(Met(kWall / 2, absl::Microseconds(500), 1), "waited,asleep");
}

TEST(DisturbedThreadsTest, WhatThreadsDoNotTellIsNotJudgedBy) {
  const ThreadReading before = Reading(absl::ZeroDuration(), std::nullopt);
  EXPECT_TRUE(DisturbedThreads(before, Reading(kWall, std::nullopt), kWall).empty());
  EXPECT_FALSE(DisturbedThreads(before, Reading(kWall, std::nullopt, 1), kWall).empty());
}

TEST(DisturbedMachineTest, ByStolenTimeAndWhereThreadsDoNotTellByPressure) {
  const auto met = [](absl::Duration stolen, absl::Duration pressure, bool threads_tell) {
    const Instant at;
    const MachineReading before = {at, absl::Seconds(9), absl::Seconds(8), 2};
    const MachineReading after = {at + absl::Milliseconds(100), absl::Seconds(9) + stolen, absl::Seconds(8) + pressure,
                                  2};
    return DisturbancesText(DisturbedMachine(before, after, threads_tell));
  };
  EXPECT_EQ(met(absl::Milliseconds(20), absl::ZeroDuration(), true), "") << "two ticks are rounding";
  EXPECT_EQ(met(absl::Milliseconds(30), absl::ZeroDuration(), true), "stolen");
  EXPECT_EQ(met(absl::ZeroDuration(), absl::Milliseconds(50), true), "");
  EXPECT_EQ(met(absl::ZeroDuration(), absl::Milliseconds(50), false), "pressure");
  EXPECT_EQ(met(absl::ZeroDuration(), absl::Milliseconds(5), false), "");
  EXPECT_TRUE(DisturbedMachine({}, {}, false).empty());
}

TEST(TimeSlicesTest, AreMultiplesOfFourMilliseconds) {
  for (const int microseconds : {3950, 4000, 8010, 32100}) {
    EXPECT_TRUE(LooksLikeTimeSlices(absl::Microseconds(microseconds))) << microseconds;
  }
  for (const int microseconds : {20, 2000, 4400, 6000, 30000}) {
    EXPECT_FALSE(LooksLikeTimeSlices(absl::Microseconds(microseconds))) << microseconds;
  }
}

TEST(MachineWatchTest, ReadingsRise) {
  const std::set<int> before = ThreadIds();
  EXPECT_FALSE(before.empty());
  const auto watch = NewMachineWatch(before);
  const ThreadReading first = watch->ReadThreads();
  volatile double sum = 0;
  for (int i = 0; i < 1'000'000; ++i) sum = sum + i;
  const ThreadReading second = watch->ReadThreads();
  EXPECT_GT(second.cpu, first.cpu);
  EXPECT_GE(second.forced_switches, first.forced_switches);
  EXPECT_GE(second.waited, first.waited);
  EXPECT_GE(watch->ReadMachine().processors, 1);
}

// What a thread that has ended waited counts no more; it is no error.
TEST(MachineWatchTest, WatchedThreadsMayEnd) {
  const std::set<int> before = ThreadIds();
  std::unique_ptr<MachineWatch> watch;
  std::thread([&] { watch = NewMachineWatch(before); }).join();
  watch->ReadThreads();
}

}  // namespace
}  // namespace swizzle

#include "server/memory/memory_trim.h"

#include <gtest/gtest.h>

namespace swizzle {
namespace {

constexpr int64_t kMiB = 1 << 20;

class MemoryTrimTest : public testing::Test {
 protected:
  // Looks so many times; returns the trims so far.
  int64_t Look(int times = 1) {
    for (int i = 0; i < times; ++i) trim_.Look();
    return trim_.trims();
  }

  int64_t inflight_ = 0;
  int64_t resident_ = 100 * kMiB, kept_ = 100 * kMiB;  // kept: what a trim leaves
  MemoryTrim trim_{[this] { return inflight_; }, [this] { return resident_; }, [this] { resident_ = kept_; }};
};

TEST_F(MemoryTrimTest, GivesBackWhatABurstLeft) {
  EXPECT_EQ(Look(), 0);
  inflight_ = 500 * kMiB;
  resident_ = 700 * kMiB;
  EXPECT_EQ(Look(5), 0) << "requests hold it";
  inflight_ = 0;
  EXPECT_EQ(Look(3), 1);
  EXPECT_EQ(resident_, 100 * kMiB);
  EXPECT_EQ(Look(100), 1);
}

TEST_F(MemoryTrimTest, LeavesALittleAlone) {
  resident_ = 150 * kMiB;
  EXPECT_EQ(Look(100), 0);
}

// Else what is freed here and there adds up over hours.
TEST_F(MemoryTrimTest, GivesALittleBackOnceAMinute) {
  resident_ = 105 * kMiB;
  EXPECT_EQ(Look(239), 0);
  EXPECT_EQ(Look(), 1);
  EXPECT_EQ(resident_, 100 * kMiB);
  EXPECT_EQ(Look(1000), 1) << "there is nothing to give back";
  inflight_ = 600 * kMiB;
  resident_ = 700 * kMiB;
  EXPECT_EQ(Look(1000), 1) << "requests hold it";
}

TEST_F(MemoryTrimTest, WhatStaysIsNotTriedAgain) {
  kept_ = 400 * kMiB;  // as after another model was loaded
  resident_ = 500 * kMiB;
  EXPECT_EQ(Look(100), 1);
}

// Steady requests take the same memory again: trimming it every second would only make page faults.
TEST_F(MemoryTrimTest, WaitsLongerWhereItDoesNotLast) {
  for (int second = 0; second < 100; ++second) {
    resident_ = 300 * kMiB;
    Look();
  }
  EXPECT_LE(Look(), 8);
}

}  // namespace
}  // namespace swizzle

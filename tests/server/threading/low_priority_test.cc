#include "server/threading/low_priority.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

namespace swizzle {
namespace {

constexpr int kLowest = 19;

int NicenessOfThisThread() { return getpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid))); }

TEST(RunAsideTest, RunsTheWorkOnAThreadOfLowerPriorityAndWaitsForIt) {
  const int before = NicenessOfThisThread();
  std::thread::id ran_on;
  int niceness = 0;
  RunAside(3, [&] {
    ran_on = std::this_thread::get_id();
    niceness = NicenessOfThisThread();
  });
  EXPECT_NE(ran_on, std::this_thread::get_id());
  EXPECT_EQ(niceness, std::min(before + 3, kLowest));
  EXPECT_EQ(NicenessOfThisThread(), before);
}

TEST(RunAsideTest, TheLowestPriorityIsTheLowest) {
  int niceness = 0;
  RunAside(100, [&] { niceness = NicenessOfThisThread(); });
  EXPECT_EQ(niceness, kLowest);
}

TEST(RunAsideTest, WhatTheWorkStartsInheritsThePriority) {
  const int before = NicenessOfThisThread();
  int niceness = 0;
  RunAside(2, [&] { std::thread([&] { niceness = NicenessOfThisThread(); }).join(); });
  EXPECT_EQ(niceness, std::min(before + 2, kLowest));
}

}  // namespace
}  // namespace swizzle

#include "kernels/cpu/runtime/cache_domains.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <set>
#include <string>
#include <thread>

#include "kernels/cpu/runtime/available_cpus.h"
#include "kernels/cpu/runtime/cpu_stream.h"

namespace swizzle::cpu {
namespace {

namespace fs = std::filesystem;

// A made-up /sys/devices/system/cpu.
class CacheDomainsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    devices_ = fs::path(::testing::TempDir()) / (std::string("swizzle_caches_") + test->name());
    fs::remove_all(devices_);
  }
  void TearDown() override { fs::remove_all(devices_); }

  void AddCache(int cpu, int index, int level, const std::string& sharers) {
    const fs::path cache = devices_ / ("cpu" + std::to_string(cpu)) / "cache" / ("index" + std::to_string(index));
    fs::create_directories(cache);
    std::ofstream(cache / "level") << level << "\n";
    std::ofstream(cache / "shared_cpu_list") << sharers << "\n";
  }
  // The first caches for code and data, the second, and the third where some share one.
  void AddCpu(int cpu, const std::string& second, const std::string& third = "") {
    AddCache(cpu, 0, 1, second);
    AddCache(cpu, 1, 1, second);
    AddCache(cpu, 2, 2, second);
    if (!third.empty()) AddCache(cpu, 3, 3, third);
  }

  fs::path devices_;
};

// Two complexes of two cores, whose threads the system numbers after all cores.
TEST_F(CacheDomainsTest, ThreadsOfACoreAreInItsDomain) {
  for (int cpu = 0; cpu < 8; ++cpu) {
    const int core = cpu % 4;
    AddCpu(cpu, std::to_string(core) + "," + std::to_string(core + 4), core < 2 ? "0-1,4-5" : "2-3,6-7");
  }
  EXPECT_EQ(CacheDomains(CpuList{0, 1, 2, 3, 4, 5, 6, 7}, devices_),
            (std::vector<CpuList>{{0, 1, 4, 5}, {2, 3, 6, 7}}));
  EXPECT_EQ(CacheDomains(CpuList{1, 3, 5}, devices_), (std::vector<CpuList>{{1, 5}, {3}}));
}

TEST_F(CacheDomainsTest, WithoutAThirdCacheTheSecondIsTheLast) {
  for (int cpu = 0; cpu < 4; ++cpu) AddCpu(cpu, cpu < 2 ? "0-1" : "2-3");
  EXPECT_EQ(CacheDomains(CpuList{0, 1, 2, 3}, devices_), (std::vector<CpuList>{{0, 1}, {2, 3}}));
}

TEST_F(CacheDomainsTest, ProcessorsOfUnknownCachesAreOneDomain) {
  EXPECT_EQ(CacheDomains(CpuList{0, 2, 3}, devices_), (std::vector<CpuList>{{0, 2, 3}}));
}

TEST(DomainSharesTest, StreamsAreSpreadAndKeptWithinDomains) {
  DomainShares shares({{0, 1, 4, 5}, {2, 3, 6, 7}});
  const auto first = shares.Take(2), second = shares.Take(3), third = shares.Take(2);
  EXPECT_EQ(*first, (CpuList{0, 1, 4, 5}));
  EXPECT_EQ(*second, (CpuList{2, 3, 6, 7}));
  EXPECT_EQ(*third, (CpuList{4, 5, 0, 1}));  // behind the first one's threads
  EXPECT_EQ(shares.Take(5), nullptr);
  EXPECT_EQ(shares.Take(1), nullptr);
}

TEST(DomainSharesTest, WhatAStreamLeavesIsGivenAgain) {
  DomainShares shares({{0, 1}, {2, 3}});
  auto first = shares.Take(2);
  const auto second = shares.Take(2);
  first = nullptr;
  EXPECT_EQ(*shares.Take(2), (CpuList{0, 1}));
}

TEST(DomainSharesTest, LargerDomainsTakeMore) {
  DomainShares shares({{0, 1}, {2, 3, 4, 5, 6, 7}});
  std::multiset<int> firsts;
  std::vector<std::shared_ptr<const CpuList>> held;
  for (int i = 0; i < 4; ++i) {
    held.push_back(shares.Take(2));
    firsts.insert(held.back()->front());
  }
  EXPECT_EQ(firsts, (std::multiset<int>{0, 2, 4, 6}));
}

TEST(DomainSharesTest, OneDomainLeavesStreamsFree) { EXPECT_EQ(DomainShares({{0, 1, 2, 3}}).Take(2), nullptr); }

// The processor that is not the domain's is the caller's at first.
TEST(CpuStreamInDomainTest, AllThreadsKeepToTheDomainUntilTheyRest) {
  const CpuList cpus = AffinityMask();
  if (cpus.size() < 2) GTEST_SKIP() << "this needs two processors";
  const CpuList domain(cpus.begin() + 1, cpus.end());
  CpuStream stream(2, std::make_shared<const CpuList>(domain));
  std::thread([&] {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpus[0], &set);
    ASSERT_EQ(sched_setaffinity(0, sizeof(set), &set), 0);
    std::vector<CpuList> masks(2);
    std::atomic<int> begun = 0;
    stream.ParallelFor(2, [&](int64_t i) {
      ++begun;
      while (begun < 2) std::this_thread::yield();
      masks[i] = AffinityMaskOfThisThread();
    });
    for (const CpuList& mask : masks) EXPECT_TRUE(std::ranges::includes(domain, mask));
    EXPECT_TRUE(stream.Synchronize().ok());
    EXPECT_EQ(AffinityMaskOfThisThread(), CpuList{cpus[0]});
  }).join();
}

}  // namespace
}  // namespace swizzle::cpu

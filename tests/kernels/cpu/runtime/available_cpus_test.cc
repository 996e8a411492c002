#include "kernels/cpu/runtime/available_cpus.h"

#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "kernels/cpu/cpu_backend.h"

namespace swizzle::cpu {
namespace {

namespace fs = std::filesystem;

// A fake /sys/fs/cgroup.
class CgroupTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    mount_ = fs::path(::testing::TempDir()) / (std::string("swizzle_cgroup_") + test->name());
    fs::remove_all(mount_);
    fs::create_directories(mount_);
  }
  void TearDown() override { fs::remove_all(mount_); }

  void Write(const fs::path& path, const std::string& text) {
    fs::create_directories((mount_ / path).parent_path());
    std::ofstream(mount_ / path) << text;
  }
  std::optional<double> Quota(const std::string& membership) { return CgroupCpuQuota(membership, mount_); }

  fs::path mount_;
};

TEST_F(CgroupTest, NoFilesNoLimit) {
  EXPECT_EQ(Quota("0::/\n"), std::nullopt);
  EXPECT_EQ(Quota(""), std::nullopt);
  EXPECT_EQ(Quota("nonsense\n:\n"), std::nullopt);
}

TEST_F(CgroupTest, Version2) {
  Write("a/b/cpu.max", "150000 100000\n");
  EXPECT_EQ(Quota("0::/a/b\n"), 1.5);
  EXPECT_EQ(Quota("0::/a\n"), std::nullopt);
}

TEST_F(CgroupTest, Version2MaxIsNoLimit) {
  Write("a/cpu.max", "max 100000\n");
  EXPECT_EQ(Quota("0::/a\n"), std::nullopt);
}

TEST_F(CgroupTest, SmallestOfTheGroupsAbove) {
  Write("a/b/cpu.max", "400000 100000\n");
  Write("a/cpu.max", "200000 100000\n");
  EXPECT_EQ(Quota("0::/a/b\n"), 2.0);
}

TEST_F(CgroupTest, InAContainerTheRootIsTheGroup) {
  Write("cpu.max", "300000 100000\n");
  EXPECT_EQ(Quota("0::/not/there\n"), 3.0);
}

TEST_F(CgroupTest, Version1) {
  Write("cpu,cpuacct/jobs/cpu.cfs_quota_us", "250000\n");
  Write("cpu,cpuacct/jobs/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Quota("4:memory:/jobs\n3:cpu,cpuacct:/jobs\n"), 2.5);
  EXPECT_EQ(Quota("3:cpuset:/jobs\n"), std::nullopt);
}

TEST_F(CgroupTest, Version1MinusOneIsNoLimit) {
  Write("cpu/cpu.cfs_quota_us", "-1\n");
  Write("cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Quota("1:cpu:/\n"), std::nullopt);
}

TEST(AvailableCpusTest, IsWithinTheMachine) {
  EXPECT_GE(AvailableCpus(), 1);
  EXPECT_LE(AvailableCpus(), AffinityCpus());
  EXPECT_LE(AffinityCpus(), static_cast<int>(std::thread::hardware_concurrency()));
}

TEST(CpuBackendTest, AllocatesZeroedAlignedMemory) {
  const auto backend = NewCpuBackend();
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{64}, size_t{1000}, size_t{1} << 20}) {
    const auto buffer = *backend->Allocate(bytes);
    EXPECT_EQ(buffer->bytes(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % kBufferAlignment, 0u);
    for (size_t i = 0; i < bytes; ++i) ASSERT_EQ(buffer->data()[i], std::byte{0});
  }
}

TEST(CpuBackendTest, RefusesWhatNoMachineHas) {
  EXPECT_EQ(NewCpuBackend()->Allocate(~size_t{0}).status().code(), StatusCode::kResourceExhausted);
}

TEST(CpuBackendTest, Names) {
  const auto backend = NewCpuBackend();
  EXPECT_EQ(backend->name(), "cpu");
  EXPECT_FALSE(backend->device_name().empty());
  EXPECT_FALSE(backend->features_text().empty());
}

TEST(CpuBackendTest, StreamTakesAllProcessorsUnlessTold) {
  const auto backend = NewCpuBackend();
  EXPECT_EQ((*backend->NewStream(0))->threads(), AvailableCpus());
  EXPECT_EQ((*backend->NewStream(3))->threads(), 3);
}

}  // namespace
}  // namespace swizzle::cpu

#include "server/memory/memory_limit.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temporary_folder.h"

namespace swizzle {
namespace {

class CgroupMemoryLimitTest : public ::testing::Test {
 protected:
  void Write(const std::string& file, const std::string& text) {
    const std::filesystem::path path = folder_.path() / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  std::optional<int64_t> Limit(const std::string& membership) { return CgroupMemoryLimit(membership, folder_.path()); }

  const TemporaryFolder folder_;
};

TEST_F(CgroupMemoryLimitTest, OfVersion2IsTheLeastOnTheWayUp) {
  Write("memory.max", "max\n");
  Write("pod/memory.max", "2147483648\n");
  Write("pod/container/memory.max", "4294967296\n");
  EXPECT_EQ(Limit("0::/pod/container\n"), int64_t{2} << 30);
  EXPECT_EQ(Limit("0::/\n"), std::nullopt);
  Write("memory.max", "1073741824\n");
  EXPECT_EQ(Limit("0::/pod/container\n"), int64_t{1} << 30);
}

TEST_F(CgroupMemoryLimitTest, OfVersion1) {
  Write("memory/memory.limit_in_bytes", "9223372036854771712\n");
  Write("memory/docker/x/memory.limit_in_bytes", "536870912\n");
  EXPECT_EQ(Limit("5:cpu,cpuacct:/\n4:memory:/docker/x\n0::/docker/x\n"), int64_t{512} << 20);
  EXPECT_EQ(Limit("4:memory:/\n"), std::nullopt);
}

// In a container its own group may be mounted at the root, while the membership is the host's.
TEST_F(CgroupMemoryLimitTest, OfAGroupThatIsNotThereIsTheRoots) {
  Write("memory/memory.limit_in_bytes", "536870912\n");
  EXPECT_EQ(Limit("4:memory:/kubepods/pod1\n"), int64_t{512} << 20);
}

TEST_F(CgroupMemoryLimitTest, WhatIsNoLimitIsNone) {
  for (const char* text : {"", "\n", "max", "-1", "0", "many", "99999999999999999999"}) {
    Write("memory.max", text);
    EXPECT_EQ(Limit("0::/\n"), std::nullopt) << text;
  }
  EXPECT_EQ(Limit("not a line"), std::nullopt);
}

TEST(MemoryLimit, IsThatOfThisMachine) {
  EXPECT_GT(MemoryLimit(), int64_t{64} << 20);
  EXPECT_GT(ResidentBytes(), int64_t{1} << 20);
  EXPECT_LT(ResidentBytes(), MemoryLimit());
}

}  // namespace
}  // namespace swizzle

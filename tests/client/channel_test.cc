#include "client/channel.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace swizzle::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(TargetTest, LeavesWhatGrpcKnows) {
  for (const char* address : {"localhost:8001", "dns:///swizzle-headless:8001", "dns://127.0.0.1:53/swizzle:8001",
                              "unix:/run/a,b", "ipv4:10.0.0.1:8001,10.0.0.2:8001", "[::1]:8001"}) {
    EXPECT_EQ(TargetOf(address).value(), address);
  }
}

TEST(TargetTest, ReadsLists) {
  EXPECT_EQ(TargetOf("10.0.0.1:8001, 10.0.0.2:8002").value(), "ipv4:10.0.0.1:8001,10.0.0.2:8002");
  EXPECT_EQ(TargetOf("[::1]:8001,[fe80::2]:8002").value(), "ipv6:[::1]:8001,[fe80::2]:8002");
}

TEST(TargetTest, RefusesListsOfOtherThings) {
  for (const char* address :
       {"a:1,b:2", "10.0.0.1:8001,localhost:8001", "10.0.0.1:8001,[::1]:8001", "10.0.0.1,10.0.0.2", "10.0.0.1:8001,",
        "10.0.0.1:99999,10.0.0.2:1", "::1:8001,::2:8001"}) {
    EXPECT_EQ(TargetOf(address).status().code(), absl::StatusCode::kInvalidArgument) << address;
  }
  EXPECT_THAT(std::string(TargetOf("10.0.0.1:8001,localhost:8001").status().message()), HasSubstr("'localhost:8001'"));
}

TEST(ServiceConfigTest, BalancesWhereThereIsMoreThanOne) {
  EXPECT_EQ(ServiceConfigOf({.address = "localhost:8001"}), "{}");
  EXPECT_THAT(ServiceConfigOf({.address = "localhost:8001", .round_robin = true}), HasSubstr("round_robin"));
  EXPECT_THAT(ServiceConfigOf({.address = "127.0.0.1:1,127.0.0.1:2"}), HasSubstr("healthCheckConfig"));
}

}  // namespace
}  // namespace swizzle::client

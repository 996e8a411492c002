#include "server/rpc/rpc_limits.h"

#include <gtest/gtest.h>

namespace swizzle {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

TEST(RpcLimits, AmountsFollowTheMemory) {
  const RpcLimits limits = Settle({}, 2 * kGiB, 100000);
  EXPECT_EQ(limits.max_inflight_bytes, kGiB / 4);
  EXPECT_EQ(limits.max_model_inflight_bytes, kGiB / 16 * 3);
  EXPECT_EQ(limits.max_connection_inflight_bytes, kGiB / 32 * 3);
  EXPECT_EQ(limits.transport_bytes, kGiB / 4);
  EXPECT_EQ(limits.max_connections, 4096);
  EXPECT_EQ(Settle({}, kGiB / 100, 1024).max_inflight_bytes, kGiB / 16);
  EXPECT_EQ(Settle({}, 1000 * kGiB, 1024).max_inflight_bytes, 4 * kGiB);
}

TEST(RpcLimits, ConnectionsLeaveDescriptorsForOthers) {
  EXPECT_EQ(Settle({}, kGiB, 1024).max_connections, 768);
  EXPECT_EQ(Settle({}, kGiB, 100).max_connections, 50);
  RpcLimits many;
  many.max_connections = 5000;
  EXPECT_EQ(Settle(many, kGiB, 1024).max_connections, 768);
  EXPECT_EQ(Settle(many, kGiB, 100000).max_connections, 5000);
}

TEST(RpcLimits, WhatIsSetStays) {
  RpcLimits set;
  set.max_inflight_bytes = 1;
  set.max_model_inflight_bytes = 2;
  set.transport_bytes = 3;
  set = Settle(set, kGiB, 1024);
  EXPECT_EQ(set.max_inflight_bytes, 1);
  EXPECT_EQ(set.max_model_inflight_bytes, 2);
  EXPECT_EQ(set.transport_bytes, 3);
}

TEST(UnfinishedBytes, HaveRoomForAMessage) {
  EXPECT_EQ(UnfinishedBytes({.max_message_bytes = 64, .transport_bytes = 1200}), 400);
  EXPECT_EQ(UnfinishedBytes({.max_message_bytes = 64, .transport_bytes = 100}), 80);
}

}  // namespace
}  // namespace swizzle

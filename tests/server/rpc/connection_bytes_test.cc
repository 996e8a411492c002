#include "server/rpc/connection_bytes.h"

#include <gtest/gtest.h>

#include <vector>

namespace swizzle {
namespace {

TEST(ConnectionBytes, EachConnectionHasAnAccountWhileItIsUsed) {
  ConnectionBytes connections;
  const auto one = connections.Of("ipv4:1.2.3.4:5"), again = connections.Of("ipv4:1.2.3.4:5");
  const auto other = connections.Of("ipv4:1.2.3.4:6");
  EXPECT_EQ(one, again);
  EXPECT_NE(one, other);
  EXPECT_TRUE(one->Add(100, 100, 1000));
  EXPECT_EQ(again->held(), 100);
  EXPECT_EQ(other->held(), 0);
}

TEST(ConnectionBytes, ConnectionsThatAreGoneAreForgotten) {
  ConnectionBytes connections;
  std::vector<std::shared_ptr<ConnectionAccount>> kept;
  for (int i = 0; i < 10000; ++i) {
    auto account = connections.Of(std::to_string(i));
    if (i % 1000 == 0) kept.push_back(std::move(account));
  }
  EXPECT_LE(connections.size(), 128u);
  for (int i = 0; i < 10000; i += 1000) EXPECT_EQ(connections.Of(std::to_string(i)), kept[i / 1000]);
}

}  // namespace
}  // namespace swizzle

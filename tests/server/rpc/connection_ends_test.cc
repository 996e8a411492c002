#include "server/rpc/connection_ends.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <memory>
#include <numeric>
#include <string>
#include <thread>

#include "server/rpc/grpc_listener.h"
#include "server/rpc/inference_service.h"
#include "tests/support/fake_clock.h"

namespace swizzle {
namespace {

using Closed = ConnectionAcceptor::Closed;

TEST(WhyEndedTest, GoesByTheLimitThatWasReached) {
  const RpcLimits limits;
  const absl::Duration minute = absl::Minutes(1);
  const auto why = [&](absl::Duration age, absl::Duration silence, int64_t received, absl::Duration without_call) {
    return WhyEnded(Closed{.peer = "", .age = age, .silence = silence, .received = received}, without_call, true,
                    limits);
  };
  EXPECT_EQ(why(minute / 2, minute / 2, 0, minute / 2), ConnectionEnd::kHandshake);
  EXPECT_EQ(why(minute / 60, minute / 60, 0, minute / 60), ConnectionEnd::kOther) << "a probe that only connects";
  EXPECT_EQ(why(minute / 2, minute / 2, 33, minute / 2), ConnectionEnd::kOther);
  EXPECT_EQ(WhyEnded(Closed{.peer = "", .age = minute / 2, .silence = minute / 2, .received = 600}, minute / 2, false,
                     limits),
            ConnectionEnd::kHandshake)
      << "TLS that did not come to its end";
  EXPECT_EQ(why(2 * minute, absl::Seconds(80), 1000, minute), ConnectionEnd::kKeepalive);
  EXPECT_EQ(why(2 * minute, absl::Seconds(62), 1000, minute), ConnectionEnd::kOther) << "it may yet answer";
  EXPECT_EQ(why(28 * minute, minute, 1000, minute), ConnectionEnd::kAge);
  EXPECT_EQ(why(26 * minute, minute, 1000, minute), ConnectionEnd::kOther);
  EXPECT_EQ(why(20 * minute, minute, 1000, 15 * minute), ConnectionEnd::kIdle);
  EXPECT_EQ(why(20 * minute, minute, 1000, 5 * minute), ConnectionEnd::kOther);
}

TEST(WhyEndedTest, WhatHasNoLimitReachesNone) {
  const RpcLimits limits = {.connection_age = absl::ZeroDuration(),
                            .connection_idle = absl::ZeroDuration(),
                            .keepalive_time = absl::ZeroDuration()};
  const absl::Duration long_time = absl::Hours(100);
  EXPECT_EQ(WhyEnded({.peer = "", .age = long_time, .silence = long_time, .received = 1000}, long_time, true, limits),
            ConnectionEnd::kOther);
}

// gRPC's server, and one client of it that does only what a test makes it do.
class ConnectionEndsTest : public ::testing::Test {
 protected:
  void Start(const RpcLimits& limits) {
    const RpcLimits settled = Settle(limits, 1 << 30, 1024);
    ends_ = std::make_unique<ConnectionEnds>(settled, Clock::Real());
    auto listener =
        GrpcListener::Start("127.0.0.1:0", settled, {&service_}, [this](const Closed& closed) { ends_->Add(closed); });
    ASSERT_TRUE(listener.ok()) << listener.status();
    listener_ = *std::move(listener);
    client_ = FileDescriptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(listener_->port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(connect(client_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  }

  // The preface, and empty SETTINGS.
  void OpenHttp2() const {
    const std::string opening = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + std::string("\0\0\0\4\0\0\0\0\0", 9);
    ASSERT_EQ(send(client_.get(), opening.data(), opening.size(), 0), static_cast<ssize_t>(opening.size()));
  }

  // Of the one connection.
  ConnectionEnd AwaitEnd() {
    while (true) {
      ends_->Look();
      const ConnectionEnds::Counts counts = ends_->counts();
      for (size_t i = 0; i < counts.size(); ++i) {
        if (counts[i] == 1 && std::accumulate(counts.begin(), counts.end(), int64_t{0}) == 1) return ConnectionEnd(i);
      }
      std::this_thread::yield();
    }
  }

  InferenceService service_;
  std::unique_ptr<ConnectionEnds> ends_;
  std::unique_ptr<GrpcListener> listener_;
  FileDescriptor client_;
};

TEST_F(ConnectionEndsTest, CountsWhoBeginsNoHttp2) {
  Start({.handshake_timeout = absl::Milliseconds(50)});
  EXPECT_EQ(AwaitEnd(), ConnectionEnd::kHandshake);
}

TEST_F(ConnectionEndsTest, CountsWhoAnswersNoPing) {
  Start({.keepalive_time = absl::Milliseconds(50), .keepalive_timeout = absl::Milliseconds(50)});
  OpenHttp2();
  EXPECT_EQ(AwaitEnd(), ConnectionEnd::kKeepalive);
}

TEST_F(ConnectionEndsTest, CountsWhoIsOld) {
  Start({.connection_age = absl::Milliseconds(50), .connection_grace = absl::Milliseconds(50)});
  OpenHttp2();
  EXPECT_EQ(AwaitEnd(), ConnectionEnd::kAge);
}

TEST_F(ConnectionEndsTest, CountsWhoHasNoCalls) {
  Start({.connection_idle = absl::Milliseconds(50)});
  OpenHttp2();
  EXPECT_EQ(AwaitEnd(), ConnectionEnd::kIdle);
}

TEST_F(ConnectionEndsTest, WhoNeverHadACallHadNoneSinceItCame) {
  Start({});
  OpenHttp2();
  sockaddr_in address = {};
  socklen_t size = sizeof(address);
  ASSERT_EQ(getsockname(client_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::string peer = Concat("ipv4:127.0.0.1:", ntohs(address.sin_port));
  bool is_known = false;
  ConnectionWalk walk;
  while (!is_known) {
    walk.GoOn(-1, [&](int64_t, const std::string& json) { is_known |= ParseConnection(json).peer == peer; });
  }
  FakeClock clock;
  ConnectionEnds ends({}, clock);
  ends.Look();
  ends.Add({.peer = peer, .age = absl::Minutes(15), .silence = absl::Minutes(1), .received = 1000});
  EXPECT_EQ(ends.counts()[static_cast<size_t>(ConnectionEnd::kIdle)], 1) << "though it was seen only just now";
}

TEST_F(ConnectionEndsTest, CountsWhoGoesByItself) {
  Start({});
  OpenHttp2();
  client_ = FileDescriptor();
  EXPECT_EQ(AwaitEnd(), ConnectionEnd::kOther);
}

}  // namespace
}  // namespace swizzle

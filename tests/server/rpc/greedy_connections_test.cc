#include "server/rpc/greedy_connections.h"

#include <gmock/gmock.h>

#include "tests/server/served_models.h"
#include "tests/support/fake_clock.h"

namespace swizzle {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(CancelledCalls, NamesWhoCancelsTooManyInASecond) {
  FakeClock clock;
  CancelledCalls calls(3, clock);
  for (int i = 0; i < 3; ++i) calls.Add("a");
  for (int i = 0; i < 10; ++i) calls.Add("b");
  EXPECT_THAT(calls.TakeGreedy(), ElementsAre("b"));
  EXPECT_THAT(calls.TakeGreedy(), IsEmpty());
  clock.Advance(absl::Seconds(2));
  for (int i = 0; i < 3; ++i) calls.Add("a");
  EXPECT_THAT(calls.TakeGreedy(), IsEmpty());
}

TEST(UnfinishedCalls, NamesWhoHasTooMany) {
  UnfinishedCalls calls(2);
  for (int i = 0; i < 2; ++i) calls.Begin("a");
  for (int i = 0; i < 5; ++i) calls.Begin("b");
  EXPECT_THAT(calls.TakeGreedy(), ElementsAre("b"));
  EXPECT_THAT(calls.TakeGreedy(), IsEmpty());
  calls.End("a");
  calls.Begin("a");
  EXPECT_THAT(calls.TakeGreedy(), IsEmpty());
  calls.Begin("a");
  EXPECT_THAT(calls.TakeGreedy(), ElementsAre("a"));
}

TEST(GreedyPeer, CountsTheStreamsThatAreOpen) {
  const std::string json = R"({"socket":{"data":{"streamsStarted":"12","streamsSucceeded":"3","streamsFailed":"2"},)"
                           R"("ref":{"name":"chttp2 ipv4:127.0.0.1:34534","socketId":"5"}}})";
  EXPECT_EQ(GreedyPeer(json, 6), "ipv4:127.0.0.1:34534");
  EXPECT_EQ(GreedyPeer(json, 7), "");
  for (const char* other :
       {"", "null", "[]", "{", R"({"socket":[]})", R"({"socket":{"data":{"streamsStarted":[]}}})"}) {
    EXPECT_EQ(GreedyPeer(other, 0), "");
  }
}

class SlowSendersTest : public ::testing::Test {
 protected:
  std::string Look(int started, int succeeded, int failed, int received, int sent = 0) {
    return slow_.Look(7, Concat(R"({"socket":{"data":{"streamsStarted":")", started, R"(","streamsSucceeded":")",
                                succeeded, R"(","streamsFailed":")", failed, R"(","messagesReceived":")", received,
                                R"(","messagesSent":")", sent, R"("},"ref":{"name":"chttp2 ipv4:127.0.0.1:5"}}})"));
  }

  FakeClock clock_;
  int64_t bytes_ = 0, read_bytes_ = 0;  // that have come, and that the client has read
  ConnectionBytes accounts_;
  SlowSenders slow_{{absl::Seconds(60), 10000, 50000},
                    [this](const std::string& peer) {
                      EXPECT_EQ(peer, "ipv4:127.0.0.1:5");
                      return ConnectionAcceptor::Traffic{bytes_, read_bytes_};
                    },
                    accounts_,
                    clock_};
};

TEST_F(SlowSendersTest, NamesWhoBeginsARequestAndDoesNotEndIt) {
  EXPECT_EQ(Look(5, 5, 0, 5), "");
  EXPECT_EQ(Look(6, 5, 0, 5), "");
  clock_.Advance(absl::Seconds(59));
  EXPECT_EQ(Look(6, 5, 0, 5), "");
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(Look(6, 5, 0, 5), "ipv4:127.0.0.1:5");
}

TEST_F(SlowSendersTest, NamesWhoSendsMuchAndNothingWhole) {
  EXPECT_EQ(Look(1, 0, 0, 0), "");
  bytes_ = 10000;
  EXPECT_EQ(Look(2, 0, 0, 0), "");
  bytes_ = 10001;
  EXPECT_EQ(Look(3, 0, 0, 0), "ipv4:127.0.0.1:5");
}

TEST_F(SlowSendersTest, WhatComesWholeIsAccountedFor) {
  EXPECT_EQ(Look(1, 0, 0, 0), "");
  const auto account = accounts_.Of("ipv4:127.0.0.1:5");
  for (int received = 1; received <= 20; ++received) {
    bytes_ += 30000;
    account->whole += 30000;
    EXPECT_EQ(Look(20, 0, 0, received), "");
  }
}

// Small messages that are whole do not hide that others are not.
TEST_F(SlowSendersTest, NamesWhoSendsMuchThatIsNotWholeBesideWhatIs) {
  EXPECT_EQ(Look(1, 0, 0, 0), "");
  bytes_ = 12000;
  EXPECT_EQ(Look(1, 0, 0, 1), "");
  bytes_ = 24000;
  EXPECT_EQ(Look(2, 0, 0, 2, 1), "ipv4:127.0.0.1:5");
}

TEST_F(SlowSendersTest, WhatIsCancelledIsForgiven) {
  EXPECT_EQ(Look(3, 0, 0, 0), "");
  bytes_ = 9000;
  EXPECT_EQ(Look(3, 0, 0, 0), "");
  bytes_ = 40000;
  EXPECT_EQ(Look(3, 0, 1, 0), "");
  bytes_ = 80000;
  EXPECT_EQ(Look(3, 1, 1, 0), "") << "it was refused before its message was whole";
  bytes_ = 90001;
  EXPECT_EQ(Look(3, 1, 1, 0), "ipv4:127.0.0.1:5");
}

TEST_F(SlowSendersTest, WhoReadsMayOpenWindows) {
  EXPECT_EQ(Look(1, 0, 0, 1), "");
  for (int i = 0; i < 20; ++i) {
    bytes_ += 8000;
    read_bytes_ += 4 << 20;
    EXPECT_EQ(Look(1, 0, 0, 1), "");
  }
}

TEST_F(SlowSendersTest, WhoWaitsForAnswersHasTime) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Look(6, 5, 0, 6), "") << "a call is open, and its message is there";
    clock_.Advance(absl::Minutes(10));
  }
}

TEST_F(SlowSendersTest, WhatComesWholeGivesTime) {
  for (int received = 0; received < 5; ++received) {
    EXPECT_EQ(Look(received + 1, received, 0, received), "");
    clock_.Advance(absl::Seconds(50));
  }
}

// Some of them had sent their message, and some had not.
TEST_F(SlowSendersTest, CancelledCallsHideNothing) {
  EXPECT_EQ(Look(100, 40, 60, 90), "");
  EXPECT_EQ(Look(101, 40, 60, 90), "");
  clock_.Advance(absl::Minutes(1));
  EXPECT_EQ(Look(101, 40, 60, 90), "ipv4:127.0.0.1:5");
}

// Of a stream that had messages before, no count tells that another has begun.
TEST_F(SlowSendersTest, NamesWhoSendsHalfAMessageOnAStream) {
  EXPECT_EQ(Look(1, 0, 0, 5), "");
  bytes_ = 5000;
  EXPECT_EQ(Look(1, 0, 0, 5), "");
  clock_.Advance(absl::Seconds(60));
  EXPECT_EQ(Look(1, 0, 0, 5), "ipv4:127.0.0.1:5");
}

TEST_F(SlowSendersTest, AStreamMayWaitAndSendPings) {
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(Look(1, 0, 0, 5), "");
    bytes_ += 900;
    clock_.Advance(absl::Seconds(20));
  }
}

TEST_F(SlowSendersTest, AStreamMayReadForLong) {
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(Look(1, 0, 0, 1, i), "");
    bytes_ += 5000;
    read_bytes_ += 1 << 20;
    clock_.Advance(absl::Seconds(50));
  }
}

TEST_F(SlowSendersTest, MuchThatComesIsUrgent) {
  EXPECT_TRUE(slow_.IsUrgent(0)) << "nobody has looked yet";
  EXPECT_FALSE(slow_.IsUrgent(2499));
  EXPECT_TRUE(slow_.IsUrgent(2500));
  EXPECT_FALSE(slow_.IsUrgent(4999));
}

TEST_F(SlowSendersTest, ClosedConnectionsHideNothing) {
  EXPECT_TRUE(slow_.IsUrgent(100000));
  EXPECT_FALSE(slow_.IsUrgent(1000)) << "what others had sent went with them";
  EXPECT_TRUE(slow_.IsUrgent(3500));
}

class GreedyConnectionsTest : public ServedModels {};

TEST_F(GreedyConnectionsTest, OpenStreamsAreFoundWithTheirPeer) {
  directory_.Write("m/config.pbtxt", IdentityConfig());
  Serve();
  BatcherOf("m").HoldUntilQueued(100);
  InferCallInFlight first(*stub_, InferRequest("m")), second(*stub_, InferRequest("m"));
  Await([&] { return BatcherOf("m").queued() == 2; });
  EXPECT_THAT(OpenStreams(1).FindGreedy(), ElementsAre(::testing::StartsWith("ipv4:127.0.0.1:")));
  EXPECT_THAT(OpenStreams(2).FindGreedy(), IsEmpty());
  BatcherOf("m").HoldUntilQueued(0);
}

}  // namespace
}  // namespace swizzle

#include "server/rpc/greedy_connections.h"

#include <gmock/gmock.h>

#include "tests/server/served_models.h"
#include "tests/support/fake_clock.h"

namespace swizzle {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

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

class GreedyConnectionsTest : public ServedModels {};

TEST_F(GreedyConnectionsTest, OpenStreamsAreFoundWithTheirPeer) {
  directory_.Write("m/config.pbtxt", IdentityConfig());
  Serve();
  BatcherOf("m").HoldUntilQueued(100);
  InferCallInFlight first(*stub_, InferRequest("m")), second(*stub_, InferRequest("m"));
  Await([&] { return BatcherOf("m").queued() == 2; });
  EXPECT_THAT(OpenStreams(1).FindGreedy(), ElementsAre(testing::StartsWith("ipv4:127.0.0.1:")));
  EXPECT_THAT(OpenStreams(2).FindGreedy(), IsEmpty());
  BatcherOf("m").HoldUntilQueued(0);
}

}  // namespace
}  // namespace swizzle

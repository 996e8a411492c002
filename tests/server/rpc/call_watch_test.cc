#include "server/rpc/call_watch.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "server/rpc/channelz.h"
#include "tests/support/fake_clock.h"

namespace swizzle {
namespace {

TEST(CallWatchTest, CallsAreAnswered) {
  FakeClock clock;
  CallWatch watch(clock);
  EXPECT_TRUE(watch.answered());
  for (int i = 0; i < 3; ++i) {
    watch.Look();
    clock.Advance(CallWatch::kMostSilence);
    while (!watch.answered()) std::this_thread::yield();
  }
  EXPECT_EQ(CountCalls().started, 0) << "they are no client's";
}

// Callbacks of other calls keep all of gRPC's threads busy.
TEST(CallWatchTest, SilenceIsNoticedAndItsEnd) {
  const int threads = static_cast<int>(std::clamp(sysconf(_SC_NPROCESSORS_CONF) / 2, 2L, 16L));
  FakeClock clock;
  grpc::ServerBuilder builder;
  HealthService service;
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  const auto stub = grpc::health::v1::Health::NewStub(server->InProcessChannel({}));
  CallWatch watch(clock);

  struct Call {
    grpc::ClientContext context;
    grpc::health::v1::HealthCheckRequest request;
    grpc::health::v1::HealthCheckResponse response;
  };
  std::vector<Call> calls(static_cast<size_t>(threads));
  std::atomic<int> busy = 0, ended = 0;
  std::atomic<bool> released = false;
  for (int i = 0; i < threads; ++i) {
    Call& call = calls[static_cast<size_t>(i)];
    stub->async()->Check(&call.context, &call.request, &call.response, [&](const grpc::Status&) {
      ++busy;
      while (!released) std::this_thread::yield();
      ++ended;
    });
    while (busy <= i) std::this_thread::yield();
  }
  watch.Look();
  EXPECT_TRUE(watch.answered()) << "not yet late";
  clock.Advance(CallWatch::kMostSilence);
  EXPECT_FALSE(watch.answered());
  watch.Look();
  EXPECT_FALSE(watch.answered()) << "it still waits for the first";
  released = true;
  while (!watch.answered()) std::this_thread::yield();
  while (ended < threads) std::this_thread::yield();
  server->Shutdown();
}

}  // namespace
}  // namespace swizzle

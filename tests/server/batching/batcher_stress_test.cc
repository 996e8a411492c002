#include <random>
#include <thread>

#include "tests/server/batching/batcher_fixture.h"

namespace swizzle {
namespace {

// Many threads submit, cancel and set deadlines at random: every request ends exactly once.
class BatcherStressTest : public ::testing::TestWithParam<InstanceKind> {};

TEST_P(BatcherStressTest, EveryRequestEndsOnce) {
  constexpr int kThreads = 4, kRequests = 500;
  ModelSpec spec = ScriptedSpec(4);
  spec.instance_kind = GetParam();
  spec.instance_count = 2;
  spec.max_queue_size = 16;
  RecordingMetrics metrics;
  std::vector<Outcome> outcomes(kThreads * kRequests);
  std::vector<int> expected(outcomes.size(), 0);
  {
    auto batcher = NewBatcher(std::make_shared<ScriptedModel>(spec), Clock::Real(), &metrics);
    ASSERT_TRUE(batcher.ok());
    std::vector<std::thread> threads;
    for (size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        std::minstd_rand random(static_cast<unsigned>(t + 1));
        for (size_t i = t * kRequests; i < (t + 1) * kRequests; ++i) {
          Request request = NumberedRequest(static_cast<int>(i), 1 + static_cast<int64_t>(random() % 3));
          if (random() % 2 == 0) request.deadline = MonotonicNow() + absl::Microseconds(random() % 50);
          const StatusOr<Ticket> ticket = (*batcher)->Submit(std::move(request), outcomes[i].Callback());
          expected[i] = ticket.ok() ? 1 : 0;
          if (ticket.ok() && random() % 3 == 0) (*batcher)->Cancel(*ticket);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    (*batcher)->Drain();
    EXPECT_EQ((*batcher)->queued(), 0);
  }
  for (size_t i = 0; i < outcomes.size(); ++i) EXPECT_EQ(outcomes[i].calls(), expected[i]) << i;
  EXPECT_EQ(metrics.inflight, 0);
  EXPECT_EQ(metrics.depths.back(), 0);
}

INSTANTIATE_TEST_SUITE_P(Kinds, BatcherStressTest, ::testing::Values(InstanceKind::kCpu, InstanceKind::kGpu), KindName);

}  // namespace
}  // namespace swizzle

#include <random>
#include <thread>

#include "tests/server/batching/batcher_fixture.h"

namespace swizzle {
namespace {

// Many threads submit, cancel and set deadlines at random: every request ends exactly once.
class BatcherStressTest : public ::testing::TestWithParam<InstanceKind> {
 protected:
  static void EndsEachOnce(const std::shared_ptr<ScriptedModel>& model);
};

void BatcherStressTest::EndsEachOnce(const std::shared_ptr<ScriptedModel>& model) {
  constexpr int kThreads = 4, kRequests = 500;
  RecordingMetrics metrics;
  std::vector<Outcome> outcomes(kThreads * kRequests);
  std::vector<int> expected(outcomes.size(), 0);
  {
    auto batcher = NewBatcher(model, Clock::Real(), &metrics);
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

TEST_P(BatcherStressTest, EveryRequestEndsOnce) {
  ModelSpec spec = ScriptedSpec(4);
  spec.instance_kind = GetParam();
  spec.instance_count = 2;
  spec.queue_policy.max_requests = 16;
  EndsEachOnce(std::make_shared<ScriptedModel>(spec));
}

// Now and then it takes longer than threads that submit may run it.
TEST_P(BatcherStressTest, EveryRequestEndsOnceOnWhateverThread) {
  ModelSpec spec = ScriptedSpec(4);
  spec.instance_kind = GetParam();
  spec.queue_policy.max_requests = 16;
  const auto model = std::make_shared<ScriptedModel>(spec);
  model->RunAtOnce();
  model->Do([runs = 0]() mutable {
    const Instant end = MonotonicNow() + absl::Microseconds(++runs % 100 < 10 ? 200 : 0);
    while (MonotonicNow() < end) {
    }
  });
  EndsEachOnce(model);
}

INSTANTIATE_TEST_SUITE_P(Kinds, BatcherStressTest, ::testing::Values(InstanceKind::kCpu, InstanceKind::kGpu), KindName);

}  // namespace
}  // namespace swizzle

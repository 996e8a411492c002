// What becomes of requests that run in parts: batch_policy_test.cc has who is taken.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "tests/server/batching/batcher_fixture.h"

namespace swizzle {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Batches of four rows, a part of one.
class PartsOfRequestsTest : public BatcherTest {
 protected:
  static ModelSpec Spec() {
    ModelSpec spec = ScriptedSpec(64);
    spec.max_batch_tokens = 1000;
    spec.preferred_batch_tokens = 40;
    return spec;
  }

  // Of ten tokens a row, whose numbers are `number` and those after it.
  Ticket Send(int number, int64_t rows, uint64_t connection, Outcome& outcome,
              Instant deadline = Instant::InfiniteFuture()) {
    auto values = std::make_shared<std::vector<float>>(static_cast<size_t>(rows));
    std::iota(values->begin(), values->end(), static_cast<float>(number));
    Request request;
    request.inputs.push_back({DType::kFloat32, {rows}, std::as_bytes(std::span<const float>(*values))});
    request.rows = rows;
    request.owner = std::move(values);
    request.tokens = 10 * rows;
    request.row_tokens.assign(static_cast<size_t>(rows), 10);
    request.connection = connection;
    request.deadline = deadline;
    const StatusOr<Ticket> ticket = batcher_->Submit(std::move(request), outcome.Callback());
    EXPECT_TRUE(ticket.ok()) << ticket.status();
    return ticket.value_or(0);
  }

  static std::vector<float> ValuesOf(const StatusOr<Result>& result) {
    if (!result.ok()) return {};
    std::vector<float> values(result->outputs[0].size() / sizeof(float));
    std::memcpy(values.data(), result->outputs[0].data(), result->outputs[0].size());
    return values;
  }
};

TEST_P(PartsOfRequestsTest, ResultsArePutTogether) {
  Start(Spec());
  Outcome outcome;
  Send(5, 10, 7, outcome);
  const StatusOr<Result> result = outcome.Wait();
  std::vector<float> numbers(10);
  std::iota(numbers.begin(), numbers.end(), 5.0f);
  EXPECT_EQ(ValuesOf(result), numbers);
  EXPECT_THAT(result->shapes, ElementsAre(Shape{10}));
  EXPECT_EQ(result->compute, absl::Microseconds(60)) << "of three batches";
  EXPECT_EQ(result->batch_rows, 2) << "of the last";
  batcher_->Drain();
  EXPECT_THAT(model_->batches(), ElementsAre(ElementsAre(5), ElementsAre(9), ElementsAre(13)));
  EXPECT_THAT(metrics_.queued, ElementsAre(absl::ZeroDuration())) << "one request";
  const auto of = [](int64_t requests, int64_t rows, BatchReason reason) {
    return BatchRecord{requests, rows, 10 * rows, reason};
  };
  EXPECT_THAT(metrics_.batches,
              ElementsAre(of(1, 4, BatchReason::kFull), of(0, 4, BatchReason::kFull), of(0, 2, BatchReason::kIdle)));
  EXPECT_EQ(metrics_.inflight, 0);
}

TEST_P(PartsOfRequestsTest, AQueryWaitsForOneBatchOfABulkJob) {
  Start(Spec());
  std::deque<Outcome> bulk(3);
  Outcome query;
  model_->Block();
  for (int i = 0; i < 3; ++i) Send(100 * (i + 1), 20, 7, bulk[static_cast<size_t>(i)]);
  model_->AwaitStarted(1);
  Send(1, 1, 8, query);
  Finish();
  const auto batches = model_->batches();
  EXPECT_THAT(batches[0], ElementsAre(100));
  EXPECT_THAT(batches[1], ElementsAre(104, 1));
  EXPECT_EQ(batches.size(), 16u) << "the other 57 rows of the job come four at a time";
  for (Outcome& each : bulk) EXPECT_EQ(ValuesOf(each.Wait()).size(), 20u);
}

TEST_P(PartsOfRequestsTest, AQueryWaitsNoLongerOnTheConnectionOfTheJob) {
  Start(Spec());
  Outcome bulk, query;
  model_->Block();
  Send(100, 20, 7, bulk);
  model_->AwaitStarted(1);
  Send(1, 1, 7, query);
  Finish();
  EXPECT_THAT(model_->batches()[1], ElementsAre(104, 1));
}

TEST_P(PartsOfRequestsTest, AWaitIsExpectedOfWhatRunsBefore) {
  ModelSpec spec = Spec();
  spec.max_queue_wait = absl::Seconds(5);
  spec.max_connection_queue_percent = 100;
  Start(spec);
  std::deque<Outcome> bulk(3);
  Outcome first, query;
  model_->Block();
  Send(1, 4, 7, first);
  model_->AwaitStarted(1);
  clock_.Advance(absl::Seconds(1));
  model_->Release();
  EXPECT_TRUE(first.Wait().ok());
  model_->Block();
  Send(100, 16, 7, bulk[0]);  // four seconds
  model_->AwaitStarted(2);
  Send(200, 16, 7, bulk[1]);
  Request more = NumberedRequest(9);
  more.tokens = 1000;
  more.connection = 7;
  const Status status = batcher_->Submit(std::move(more), bulk[2].Callback()).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("a request would wait about"));
  Send(2, 1, 8, query);
  Finish();
  EXPECT_EQ(query.WaitForCode(), StatusCode::kOk);
}

TEST_P(PartsOfRequestsTest, ARequestThatHasBegunOutlivesTheTimeoutOfTheQueue) {
  ModelSpec spec = Spec();
  spec.queue_policy.default_timeout = absl::Milliseconds(5);
  Start(spec);
  Outcome lasting;
  model_->Block();
  Send(100, 5, 7, lasting);
  model_->AwaitStarted(1);
  clock_.Advance(absl::Milliseconds(6));
  Finish();
  EXPECT_EQ(lasting.WaitForCode(), StatusCode::kOk);
}

TEST_P(PartsOfRequestsTest, ItsOwnDeadlineEndsTheRest) {
  Start(Spec());
  Outcome outcome;
  model_->Block();
  Send(100, 9, 7, outcome, clock_.Now() + absl::Milliseconds(5));
  model_->AwaitStarted(1);
  clock_.Advance(absl::Milliseconds(5));
  Finish();
  EXPECT_EQ(outcome.WaitForCode(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(model_->batches(), ElementsAre(ElementsAre(100)));
}

TEST_P(PartsOfRequestsTest, CancellingEndsTheRest) {
  Start(Spec());
  Outcome outcome;
  model_->Block();
  const Ticket ticket = Send(100, 9, 7, outcome);
  model_->AwaitStarted(1);
  batcher_->Cancel(ticket);
  Finish();
  EXPECT_EQ(outcome.WaitForCode(), StatusCode::kCancelled);
  EXPECT_EQ(outcome.calls(), 1);
  EXPECT_THAT(model_->batches(), ElementsAre(ElementsAre(100)));
  EXPECT_THAT(metrics_.rejected, ElementsAre(Rejection::kCancelled));
}

TEST_P(PartsOfRequestsTest, APartThatFailsEndsItsRequestAlone) {
  Start(Spec());
  Outcome bad, good;
  model_->FailWith(104);  // its second part
  model_->Block();
  Send(100, 9, 7, bad);
  model_->AwaitStarted(1);
  Send(1, 2, 8, good);
  Finish();
  EXPECT_EQ(bad.WaitForCode(), StatusCode::kInvalidArgument);
  EXPECT_THAT(ValuesOf(good.Wait()), ElementsAre(1.0f, 2.0f));
  EXPECT_EQ(bad.calls(), 1);
}

TEST_P(PartsOfRequestsTest, APartThatRunsAgainAloneIsThereOnce) {
  Start(Spec());
  Outcome both, bad;
  model_->FailWith(1);
  model_->Block();
  Send(100, 6, 7, both);
  model_->AwaitStarted(1);
  Send(1, 1, 8, bad);
  Finish();
  EXPECT_THAT(ValuesOf(both.Wait()), ElementsAre(100.0f, 101.0f, 102.0f, 103.0f, 104.0f, 105.0f));
  EXPECT_EQ(bad.WaitForCode(), StatusCode::kInvalidArgument);
}

TEST_P(PartsOfRequestsTest, ManyClientsAtOnceGetWhatIsTheirs) {
  ModelSpec spec = Spec();
  spec.instance_count = 3;
  spec.max_queue_rows = 10000;
  spec.max_connection_queue_percent = 100;
  Start(spec);
  std::deque<Outcome> outcomes(200);
  for (int i = 0; i < 200; ++i)
    Send(1000 * i, 1 + i % 13, static_cast<uint64_t>(i % 5), outcomes[static_cast<size_t>(i)]);
  batcher_->Drain();
  for (int i = 0; i < 200; ++i) {
    std::vector<float> expected(static_cast<size_t>(1 + i % 13));
    std::iota(expected.begin(), expected.end(), static_cast<float>(1000 * i));
    EXPECT_EQ(ValuesOf(outcomes[static_cast<size_t>(i)].Wait()), expected);
  }
  EXPECT_EQ(metrics_.inflight, 0);
  EXPECT_THAT(metrics_.rejected, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Kinds, PartsOfRequestsTest, ::testing::Values(InstanceKind::kCpu, InstanceKind::kGpu),
                         KindName);

}  // namespace
}  // namespace swizzle

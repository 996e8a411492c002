#include "server/tracing/trace_exporter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>

#include "tests/server/tracing/collector.h"

namespace swizzle {
namespace {

using grpc::StatusCode;

// Long, so that a test which waits for it in vain is noticed.
constexpr absl::Duration kPatience = absl::Seconds(60);

// Sends at once, and tries again soon.
ExportLimits Quick() {
  ExportLimits limits;
  limits.interval = absl::ZeroDuration();
  limits.first_pause = limits.most_pause = absl::Milliseconds(1);
  return limits;
}

// One span.
std::shared_ptr<const SampledRequest> Refused() {
  auto request = std::make_shared<SampledRequest>();
  request->traced = true;
  request->place = {NewTraceId(), NewSpanId()};
  request->code = swizzle::StatusCode::kResourceExhausted;
  return request;
}

int64_t Spans(const TraceExporter& exporter, SpanOutcome outcome) {
  return exporter.spans()[static_cast<size_t>(outcome)];
}

TEST(TraceExporterTest, WhatIsAddedArrives) {
  Collector collector;
  TraceExporter exporter(collector.address());
  for (int i = 0; i < 600; ++i) exporter.Add(Refused());
  exporter.Stop(kPatience);
  EXPECT_EQ(collector.spans().size(), 600u);
  EXPECT_GE(collector.calls(), 3) << "a call has a bound";
  EXPECT_EQ(Spans(exporter, SpanOutcome::kExported), 600);
  EXPECT_EQ(exporter.failures(), 0);
}

TEST(TraceExporterTest, ItIsSentWithoutAStop) {
  Collector collector;
  TraceExporter exporter(collector.address(), Quick());
  exporter.Add(Refused());
  collector.AwaitCalls(1);
  EXPECT_EQ(collector.last().resource_spans(0).resource().attributes_size(), 4);
}

TEST(TraceExporterTest, AfterAStopNothingIsSent) {
  Collector collector;
  TraceExporter exporter(collector.address());
  exporter.Stop(kPatience);
  exporter.Add(Refused());
  EXPECT_EQ(Spans(exporter, SpanOutcome::kQueueFull), 1);
  EXPECT_EQ(collector.calls(), 0);
}

TEST(TraceExporterTest, ACollectorThatIsGoneCostsTheTracesOnly) {
  std::string address;
  {
    Collector collector;
    address = collector.address();
  }
  TraceExporter exporter(address);
  for (int i = 0; i < 5; ++i) exporter.Add(Refused());
  exporter.Stop(kPatience);
  EXPECT_EQ(Spans(exporter, SpanOutcome::kNotDelivered), 5);
  EXPECT_GE(exporter.failures(), 1);
}

TEST(TraceExporterTest, WhatMayBeRepeatedIsSentAgain) {
  Collector collector([](int call, grpc::ServerContext&, Collector::Response&) {
    return call < 2 ? grpc::Status(StatusCode::UNAVAILABLE, "not now") : grpc::Status::OK;
  });
  TraceExporter exporter(collector.address(), Quick());
  exporter.Add(Refused());
  collector.AwaitCalls(3);
  exporter.Stop(kPatience);
  EXPECT_EQ(collector.spans().size(), 1u);
  EXPECT_EQ(Spans(exporter, SpanOutcome::kExported), 1);
  EXPECT_EQ(exporter.failures(), 2);
}

TEST(TraceExporterTest, WhatIsRefusedIsNotSentAgain) {
  Collector collector([](int, grpc::ServerContext&, Collector::Response&) {
    return grpc::Status(StatusCode::INVALID_ARGUMENT, std::string(1000, '\n'));
  });
  TraceExporter exporter(collector.address(), Quick());
  exporter.Add(Refused());
  exporter.Stop(kPatience);
  EXPECT_EQ(collector.calls(), 1);
  EXPECT_EQ(Spans(exporter, SpanOutcome::kNotDelivered), 1);
}

TEST(TraceExporterTest, AttemptsAreCounted) {
  Collector collector(
      [](int, grpc::ServerContext&, Collector::Response&) { return grpc::Status(StatusCode::UNAVAILABLE, "never"); });
  ExportLimits limits = Quick();
  limits.most_attempts = 3;
  TraceExporter exporter(collector.address(), limits);
  exporter.Add(Refused());
  while (Spans(exporter, SpanOutcome::kNotDelivered) == 0) std::this_thread::yield();
  EXPECT_EQ(collector.calls(), 3);
}

TEST(TraceExporterTest, ACollectorThatRefusesPartsIsBelievedWithinReason) {
  Collector collector([](int, grpc::ServerContext&, Collector::Response& response) {
    response.mutable_partial_success()->set_rejected_spans(int64_t{1} << 60);
    return grpc::Status::OK;
  });
  TraceExporter exporter(collector.address());
  for (int i = 0; i < 3; ++i) exporter.Add(Refused());
  exporter.Stop(kPatience);
  EXPECT_EQ(Spans(exporter, SpanOutcome::kRejected), 3);
  EXPECT_EQ(Spans(exporter, SpanOutcome::kExported), 0);
}

TEST(TraceExporterTest, AnAnswerBeyondTheBoundIsNotRead) {
  Collector collector([](int, grpc::ServerContext&, Collector::Response& response) {
    response.mutable_partial_success()->set_error_message(std::string(8 << 20, 'x'));
    return grpc::Status::OK;
  });
  TraceExporter exporter(collector.address());
  exporter.Add(Refused());
  exporter.Stop(kPatience);
  EXPECT_EQ(Spans(exporter, SpanOutcome::kNotDelivered), 1);
  EXPECT_EQ(exporter.failures(), 1);
}

// It answers only once the test ends.
class SilentCollectorTest : public ::testing::Test {
 protected:
  ~SilentCollectorTest() override { end_.set_value(); }

  std::promise<void> end_;
  std::shared_future<void> ended_ = end_.get_future().share();
};

TEST_F(SilentCollectorTest, WhatWaitsIsBounded) {
  Collector collector([ended = ended_](int, grpc::ServerContext& context, Collector::Response&) {
    while (!context.IsCancelled() && ended.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) {
    }
    return grpc::Status::CANCELLED;
  });
  ExportLimits limits = Quick();
  limits.most_waiting = 10;
  limits.most_in_call = 4;
  limits.call_time = kPatience;
  TraceExporter exporter(collector.address(), limits);
  exporter.Add(Refused());
  collector.AwaitCalls(1);
  for (int i = 0; i < 25; ++i) exporter.Add(Refused());
  EXPECT_FALSE(exporter.has_room());
  EXPECT_EQ(Spans(exporter, SpanOutcome::kQueueFull), 15);
  exporter.Stop(absl::ZeroDuration());  // does not wait for the call
  EXPECT_EQ(Spans(exporter, SpanOutcome::kNotDelivered), 11);
}

TEST_F(SilentCollectorTest, ACallHasADeadline) {
  Collector collector([](int, grpc::ServerContext& context, Collector::Response&) {
    while (!context.IsCancelled()) std::this_thread::yield();
    return grpc::Status::CANCELLED;
  });
  ExportLimits limits = Quick();
  limits.call_time = absl::Milliseconds(20);
  limits.most_attempts = 2;
  TraceExporter exporter(collector.address(), limits);
  exporter.Add(Refused());
  while (Spans(exporter, SpanOutcome::kNotDelivered) == 0) std::this_thread::yield();
  EXPECT_EQ(exporter.failures(), 2);
}

}  // namespace
}  // namespace swizzle

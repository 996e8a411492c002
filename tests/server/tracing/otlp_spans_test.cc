#include "server/tracing/otlp_spans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace swizzle {
namespace {

using opentelemetry::proto::trace::v1::Span;
using ::testing::ElementsAre;

std::string Text(std::span<const uint8_t> id) { return {id.begin(), id.end()}; }

std::map<std::string, std::string> AttributesOf(const Span& span) {
  std::map<std::string, std::string> all;
  for (const auto& attribute : span.attributes()) {
    const auto& value = attribute.value();
    all[attribute.key()] = value.has_string_value() ? value.string_value() : std::to_string(value.int_value());
  }
  return all;
}

class OtlpSpansTest : public ::testing::Test {
 protected:
  OtlpSpansTest() {
    request_->traced = true;
    request_->parent = ParseTraceContext("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "a=b");
    request_->place = {request_->parent->trace, NewSpanId()};
    request_->wall_start = absl::FromUnixSeconds(1000);
    request_->start = Instant() + absl::Seconds(5);
    request_->end = request_->start + absl::Microseconds(100);
    request_->model = "m";
    request_->version = 7;
    request_->rows = 2;
    request_->SetId("id");
  }

  void Run() {
    request_->stages = {.queued = request_->start + absl::Microseconds(10),
                        .begun = request_->start + absl::Microseconds(30),
                        .input = absl::Microseconds(1),
                        .compute = absl::Microseconds(40),
                        .output = absl::Microseconds(2),
                        .batch_rows = 6};
  }

  std::vector<Span> Export() {
    const std::vector<std::shared_ptr<const SampledRequest>> requests = {request_};
    const auto message = MakeExport(requests);
    const auto& spans = message.resource_spans(0).scope_spans(0).spans();
    EXPECT_EQ(spans.size(), SpanCount(*request_));
    return {spans.begin(), spans.end()};
  }

  const std::shared_ptr<SampledRequest> request_ = std::make_shared<SampledRequest>();
};

TEST_F(OtlpSpansTest, ARequestIsAServersSpanBelowItsCallers) {
  const std::vector<Span> spans = Export();
  ASSERT_EQ(spans.size(), 1u);
  const Span& span = spans[0];
  EXPECT_EQ(span.name(), "inference.GRPCInferenceService/ModelInfer");
  EXPECT_EQ(span.kind(), Span::SPAN_KIND_SERVER);
  EXPECT_EQ(span.trace_id(), Text(request_->parent->trace));
  EXPECT_EQ(span.parent_span_id(), Text(request_->parent->span));
  EXPECT_EQ(span.trace_state(), "a=b");
  EXPECT_EQ(span.flags(), 0x301u);
  EXPECT_EQ(span.start_time_unix_nano(), 1'000'000'000'000u);
  EXPECT_EQ(span.end_time_unix_nano(), 1'000'000'100'000u);
  const std::map<std::string, std::string> wanted = {
      {"rpc.system", "grpc"},       {"rpc.service", "inference.GRPCInferenceService"},
      {"rpc.method", "ModelInfer"}, {"rpc.grpc.status_code", "0"},
      {"swizzle.model", "m"},       {"swizzle.model_version", "7"},
      {"swizzle.request_id", "id"}, {"swizzle.rows", "2"}};
  EXPECT_EQ(AttributesOf(span), wanted);
  EXPECT_FALSE(span.has_status());
}

TEST_F(OtlpSpansTest, ARequestOfAStreamIsOfItsMethod) {
  request_->streamed = true;
  const Span span = Export()[0];
  EXPECT_EQ(span.name(), "inference.GRPCInferenceService/ModelStreamInfer");
  EXPECT_EQ(AttributesOf(span).at("rpc.method"), "ModelStreamInfer");
}

TEST_F(OtlpSpansTest, WithoutACallerItIsTheRoot) {
  request_->parent = std::nullopt;
  const Span span = Export()[0];
  EXPECT_EQ(span.parent_span_id(), "");
  EXPECT_EQ(span.trace_state(), "");
  EXPECT_EQ(span.flags(), 0x101u);
}

TEST_F(OtlpSpansTest, OnlyTheServersFaultsAreErrors) {
  using opentelemetry::proto::trace::v1::Status;
  request_->code = StatusCode::kInternal;
  EXPECT_EQ(Export()[0].status().code(), Status::STATUS_CODE_ERROR);
  request_->code = StatusCode::kInvalidArgument;
  EXPECT_EQ(Export()[0].status().code(), Status::STATUS_CODE_UNSET);
  EXPECT_EQ(AttributesOf(Export()[0]).at("rpc.grpc.status_code"), "3");
}

TEST_F(OtlpSpansTest, StagesFollowOneAnother) {
  Run();
  const std::vector<Span> spans = Export();
  ASSERT_EQ(spans.size(), 5u);
  std::vector<std::string> names;
  for (size_t i = 1; i < spans.size(); ++i) {
    names.push_back(spans[i].name());
    EXPECT_EQ(spans[i].kind(), Span::SPAN_KIND_INTERNAL);
    EXPECT_EQ(spans[i].trace_id(), spans[0].trace_id());
    EXPECT_EQ(spans[i].parent_span_id(), spans[0].span_id());
    if (i == 1) continue;
    EXPECT_EQ(spans[i].start_time_unix_nano(), spans[i - 1].end_time_unix_nano());
  }
  EXPECT_THAT(names, ElementsAre("queue", "gather", "compute", "scatter"));
  EXPECT_EQ(spans[1].end_time_unix_nano() - spans[1].start_time_unix_nano(), 20'000u);
  EXPECT_EQ(spans[3].end_time_unix_nano() - spans[3].start_time_unix_nano(), 40'000u);
}

TEST_F(OtlpSpansTest, ABatchIsATraceOfItsOwnLinkedToItsRequests) {
  Run();
  request_->in_batch = SpanPlace{NewTraceId(), NewSpanId()};
  const SpanPlace other = {NewTraceId(), NewSpanId()};
  request_->batch = {.reason = BatchReason::kFull, .requests = 3, .links = {request_->place, other}};
  const std::vector<Span> spans = Export();
  ASSERT_EQ(spans.size(), 6u);
  const Span& batch = spans[5];
  EXPECT_EQ(batch.name(), "batch");
  EXPECT_NE(batch.trace_id(), spans[0].trace_id());
  EXPECT_EQ(batch.parent_span_id(), "");
  ASSERT_EQ(batch.links_size(), 2);
  EXPECT_EQ(batch.links(0).trace_id(), spans[0].trace_id());
  EXPECT_EQ(batch.links(0).span_id(), spans[0].span_id());
  EXPECT_EQ(batch.links(1).span_id(), Text(other.span));
  EXPECT_EQ(AttributesOf(batch).at("swizzle.batch_reason"), "full");
  EXPECT_EQ(AttributesOf(batch).at("swizzle.batch_requests"), "3");
  EXPECT_EQ(AttributesOf(batch).at("swizzle.batch_size"), "6");
  ASSERT_EQ(spans[3].links_size(), 1) << "computing leads to the batch";
  EXPECT_EQ(spans[3].links(0).span_id(), batch.span_id());
}

TEST_F(OtlpSpansTest, StepsOfAnEnsembleStandInThePlaceOfItsStages) {
  Run();
  for (const char* model : {"first", "second"}) {
    auto step = request_->Step(request_->start + absl::Microseconds(10));
    step->model = model;
    step->stages = request_->stages;
    step->end = request_->end;
    request_->steps.push_back(std::move(step));
  }
  const std::vector<Span> spans = Export();
  ASSERT_EQ(spans.size(), 11u);
  for (const size_t at : {1, 6}) {
    EXPECT_EQ(spans[at].name(), "step");
    EXPECT_EQ(spans[at].trace_id(), spans[0].trace_id());
    EXPECT_EQ(spans[at].parent_span_id(), spans[0].span_id());
    EXPECT_EQ(spans[at].start_time_unix_nano(), 1'000'000'010'000u);
    EXPECT_EQ(spans[at + 1].name(), "queue");
    EXPECT_EQ(spans[at + 1].parent_span_id(), spans[at].span_id());
  }
  EXPECT_EQ(AttributesOf(spans[6]).at("swizzle.model"), "second");
}

}  // namespace
}  // namespace swizzle

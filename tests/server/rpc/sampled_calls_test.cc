// Requests that are traced on their way through a real server, as a collector sees them.
#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/server/served_models.h"
#include "tests/server/tracing/collector.h"

namespace swizzle {
namespace {

using Span = Collector::Span;

constexpr char kTrace[] = "0af7651916cd43dd8448eb211c80319c";

class SampledCallsTest : public ServedModels {
 protected:
  void ServeTraced(double rate, bool control = false) {
    directory_.Write("echo/config.pbtxt", IdentityConfig());
    directory_.Write("echo/5/empty", "");
    ServerOptions options;
    options.sampling = {.request_log_rate = 0.0, .trace_endpoint = collector_.address(), .trace_rate = rate};
    if (control) options.control_address = "127.0.0.1:0";
    Serve(std::move(options));
  }

  grpc::Status InferWith(const std::string& flags, const inference::ModelInferRequest& request) {
    grpc::ClientContext context;
    context.AddMetadata("traceparent", Concat("00-", kTrace, "-b7ad6b7169203331-", flags));
    context.AddMetadata("tracestate", "vendor=1");
    inference::ModelInferResponse response;
    return stub_->ModelInfer(&context, request, &response);
  }

  // All of the server's; it drains.
  std::vector<Span> Spans() {
    server_ = nullptr;
    return collector_.spans();
  }

  static std::vector<Span> Named(const std::vector<Span>& spans, const std::string& name) {
    std::vector<Span> found;
    std::copy_if(spans.begin(), spans.end(), std::back_inserter(found),
                 [&](const Span& span) { return span.name() == name; });
    return found;
  }
  static int64_t CodeOf(const Span& span) {
    for (const auto& attribute : span.attributes()) {
      if (attribute.key() == "rpc.grpc.status_code") return attribute.value().int_value();
    }
    return -1;
  }

  static constexpr char kRequest[] = "inference.GRPCInferenceService/ModelInfer";
  Collector collector_;
};

TEST_F(SampledCallsTest, ARequestThatItsCallerRecordsHasAllItsSpans) {
  ServeTraced(0.0);
  ASSERT_TRUE(InferWith("01", InferRequest("echo")).ok());
  const std::vector<Span> spans = Spans();
  EXPECT_EQ(spans.size(), 6u);
  const auto requests = Named(spans, kRequest);
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(Hex({reinterpret_cast<const uint8_t*>(requests[0].trace_id().data()), 16}), kTrace);
  EXPECT_EQ(requests[0].trace_state(), "vendor=1");
  for (const char* stage : {"queue", "gather", "compute", "scatter"}) {
    const auto found = Named(spans, stage);
    ASSERT_EQ(found.size(), 1u) << stage;
    EXPECT_EQ(found[0].parent_span_id(), requests[0].span_id());
    EXPECT_GE(found[0].start_time_unix_nano(), requests[0].start_time_unix_nano()) << stage;
    EXPECT_LE(found[0].end_time_unix_nano(), requests[0].end_time_unix_nano()) << stage;
  }
}

TEST_F(SampledCallsTest, ARequestThatItsCallerDoesNotRecordHasNone) {
  ServeTraced(1.0);
  ASSERT_TRUE(InferWith("00", InferRequest("echo")).ok());
  EXPECT_TRUE(Spans().empty());
}

TEST_F(SampledCallsTest, OthersHaveThemByTheRate) {
  ServeTraced(1.0);
  ASSERT_TRUE(Infer(InferRequest("echo")).ok());
  ASSERT_TRUE(InferWith("nonsense", InferRequest("echo")).ok());
  const auto requests = Named(Spans(), kRequest);
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_NE(requests[0].trace_id(), requests[1].trace_id());
  EXPECT_EQ(requests[1].parent_span_id(), "");
}

TEST_F(SampledCallsTest, ABatchIsOneSpanLinkedToItsRequests) {
  ServeTraced(1.0);
  (*server_->repository().Find("echo", ""))->batcher->HoldUntilQueued(3);
  {
    InferCallInFlight a(*stub_, InferRequest("echo")), b(*stub_, InferRequest("echo", 2)),
        c(*stub_, InferRequest("echo"));
  }
  const std::vector<Span> spans = Spans();
  const auto batches = Named(spans, "batch");
  ASSERT_EQ(batches.size(), 1u);
  std::vector<std::string> linked, requests;
  for (const auto& link : batches[0].links()) linked.push_back(link.span_id());
  for (const Span& request : Named(spans, kRequest)) requests.push_back(request.span_id());
  EXPECT_THAT(linked, ::testing::UnorderedElementsAreArray(requests));
  EXPECT_EQ(requests.size(), 3u);
  for (const Span& compute : Named(spans, "compute")) {
    ASSERT_EQ(compute.links_size(), 1);
    EXPECT_EQ(compute.links(0).span_id(), batches[0].span_id());
  }
}

TEST_F(SampledCallsTest, RequestsOfAStreamHaveSpansOfItsMethod) {
  ServeTraced(1.0);
  {
    grpc::ClientContext context;
    const auto stream = stub_->ModelStreamInfer(&context);
    inference::ModelStreamInferResponse response;
    for (int i = 0; i < 2; ++i) {
      ASSERT_TRUE(stream->Write(InferRequest("echo")));
      ASSERT_TRUE(stream->Read(&response));
    }
    stream->WritesDone();
    ASSERT_TRUE(stream->Finish().ok());
  }
  const std::vector<Span> spans = Spans();
  EXPECT_EQ(Named(spans, "inference.GRPCInferenceService/ModelStreamInfer").size(), 2u);
  EXPECT_TRUE(Named(spans, kRequest).empty());
}

TEST_F(SampledCallsTest, WhatIsRefusedIsTracedWithItsCode) {
  ServeTraced(1.0);
  EXPECT_FALSE(Infer(InferRequest("nobody")).ok());
  inference::ModelInferRequest wrong = InferRequest("echo");
  wrong.mutable_inputs(0)->set_name("Z");
  EXPECT_FALSE(Infer(wrong).ok());
  const std::vector<Span> spans = Spans();
  ASSERT_EQ(spans.size(), 2u) << "what never ran has no stages";
  EXPECT_EQ(CodeOf(spans[0]), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(CodeOf(spans[1]), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(SampledCallsTest, CountsAreInTheMetrics) {
  ServeTraced(1.0);
  ASSERT_TRUE(Infer(InferRequest("echo")).ok());
  Await([&] {
    return server_->metrics().Text().find("swizzle_trace_spans_total{outcome=\"exported\"} 6\n") != std::string::npos;
  });
}

// TraceSetting.

class TraceSettingTest : public SampledCallsTest {
 protected:
  grpc::Status Change() { return Order(&inference::GRPCInferenceService::Stub::TraceSetting, request_, response_); }
  void Set(const std::string& name, const std::string& value) { (*request_.mutable_settings())[name].add_value(value); }
  std::string Got(const std::string& name) { return response_.settings().at(name).value(0); }

  inference::TraceSettingRequest request_;
  inference::TraceSettingResponse response_;
};

TEST_F(TraceSettingTest, AnybodyMayRead) {
  ServeTraced(0.01);
  ASSERT_TRUE(Change().ok());
  EXPECT_EQ(Got("trace_level"), "TIMESTAMPS");
  EXPECT_EQ(Got("trace_rate"), "100");
  EXPECT_EQ(Got("trace_count"), "-1");
  EXPECT_EQ(Got("trace_mode"), "opentelemetry");
  EXPECT_EQ(Got("log_frequency"), "0");
  EXPECT_EQ(Got("trace_file"), "");
  request_.set_model_name("echo");
  EXPECT_TRUE(Change().ok());
  request_.set_model_name("nobody");
  EXPECT_EQ(Change().error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(TraceSettingTest, OnlyControlMayChange) {
  ServeTraced(1.0);
  Set("trace_level", "OFF");
  EXPECT_EQ(Change().error_code(), grpc::StatusCode::PERMISSION_DENIED);
  ASSERT_TRUE(Infer(InferRequest("echo")).ok());
  EXPECT_FALSE(Spans().empty());
}

TEST_F(TraceSettingTest, ChangesWhatIsTraced) {
  ServeTraced(1.0, true);
  Set("trace_level", "OFF");
  Set("trace_count", "7");
  ASSERT_TRUE(Change().ok());
  EXPECT_EQ(Got("trace_level"), "OFF");
  EXPECT_EQ(Got("trace_count"), "7");
  ASSERT_TRUE(Infer(InferRequest("echo")).ok());
  request_.Clear();
  Set("trace_level", "TIMESTAMPS");
  ASSERT_TRUE(Change().ok());
  EXPECT_EQ(Got("trace_count"), "7");
  ASSERT_TRUE(Infer(InferRequest("echo")).ok());
  EXPECT_EQ(Named(Spans(), kRequest).size(), 1u);
}

TEST_F(TraceSettingTest, WithoutValuesASettingIsWhatItWas) {
  ServeTraced(0.5, true);
  Set("trace_rate", "1000");
  ASSERT_TRUE(Change().ok());
  EXPECT_EQ(Got("trace_rate"), "1000");
  (*request_.mutable_settings())["trace_rate"].clear_value();
  ASSERT_TRUE(Change().ok());
  EXPECT_EQ(Got("trace_rate"), "2");
}

TEST_F(TraceSettingTest, WhatWasReadMayBeWrittenBack) {
  ServeTraced(0.5, true);
  ASSERT_TRUE(Change().ok());
  ASSERT_TRUE(request_.ParseFromString(response_.SerializeAsString()));
  EXPECT_TRUE(Change().ok());
}

TEST_F(TraceSettingTest, WhatIsRefusedIsNamedAndChangesNothing) {
  ServeTraced(0.5, true);
  const auto refused = [this](const std::string& name, const std::string& value) {
    request_.Clear();
    Set("trace_level", "OFF");
    Set(name, value);
    const grpc::Status status = Change();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << name << " " << value;
    EXPECT_THAT(status.error_message(), ::testing::HasSubstr(name));
  };
  refused("trace_level", "TENSORS");
  refused("trace_rate", "-1");
  refused("trace_rate", "1e3");
  refused("trace_count", "-2");
  refused("trace_count", "");
  refused("trace_file", "/etc/passwd");
  refused("log_frequency", "50");
  refused("trace_mode", "triton");
  refused("trace_everything", "1");
  request_.Clear();
  request_.set_model_name("echo");
  Set("trace_level", "OFF");
  EXPECT_EQ(Change().error_code(), grpc::StatusCode::INVALID_ARGUMENT) << "models have no settings of their own";
  request_.Clear();
  ASSERT_TRUE(Change().ok());
  EXPECT_EQ(Got("trace_level"), "TIMESTAMPS");
}

TEST_F(TraceSettingTest, AServerThatTracesNothingSaysSo) {
  directory_.Write("echo/config.pbtxt", IdentityConfig());
  directory_.Write("echo/5/empty", "");
  ServerOptions options;
  options.control_address = "127.0.0.1:0";
  Serve(std::move(options));
  ASSERT_TRUE(Change().ok());
  EXPECT_EQ(Got("trace_level"), "OFF");
  Set("trace_level", "TIMESTAMPS");
  EXPECT_EQ(Change().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
}

}  // namespace
}  // namespace swizzle

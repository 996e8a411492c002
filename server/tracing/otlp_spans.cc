#include "server/tracing/otlp_spans.h"

#include <unistd.h>

#include <array>
#include <string>
#include <string_view>

#include "absl/time/time.h"

namespace swizzle {
namespace {

namespace otlp = opentelemetry::proto;
using otlp::trace::v1::Span;
using SpanAttributes = google::protobuf::RepeatedPtrField<otlp::common::v1::KeyValue>;

constexpr uint32_t kSampled = 1, kKnowsWhetherRemote = 0x100, kParentIsRemote = 0x200;

void Add(SpanAttributes& attributes, const char* key, std::string_view text) {
  auto& attribute = *attributes.Add();
  attribute.set_key(key);
  attribute.mutable_value()->set_string_value(std::string(text));
}

void Add(SpanAttributes& attributes, const char* key, int64_t number) {
  auto& attribute = *attributes.Add();
  attribute.set_key(key);
  attribute.mutable_value()->set_int_value(number);
}

template <size_t kSize>
std::string Bytes(const std::array<uint8_t, kSize>& id) {
  return {reinterpret_cast<const char*>(id.data()), id.size()};
}

void SetPlace(Span& span, const SpanPlace& place) {
  span.set_trace_id(Bytes(place.trace));
  span.set_span_id(Bytes(place.span));
}

void AddLink(Span& span, const SpanPlace& place) {
  auto& link = *span.add_links();
  link.set_trace_id(Bytes(place.trace));
  link.set_span_id(Bytes(place.span));
}

// Spans of one request; its clock tells when they were.
class SpanWriter {
 public:
  SpanWriter(const SampledRequest& request, otlp::trace::v1::ScopeSpans& spans) : request_(request), spans_(spans) {}

  Span& Add(const char* name, Span::SpanKind kind, Instant start, Instant end) {
    Span& span = *spans_.add_spans();
    span.set_name(name);
    span.set_kind(kind);
    span.set_start_time_unix_nano(UnixNanos(start));
    span.set_end_time_unix_nano(UnixNanos(end));
    return span;
  }

  Span& AddChild(const char* name, Instant start, Instant end) {
    Span& span = Add(name, Span::SPAN_KIND_INTERNAL, start, end);
    SetPlace(span, {request_.place.trace, NewSpanId()});
    span.set_parent_span_id(Bytes(request_.place.span));
    span.set_flags(kSampled | kKnowsWhetherRemote);
    if (request_.parent) span.set_trace_state(request_.parent->state);
    return span;
  }

 private:
  uint64_t UnixNanos(Instant time) const {
    return static_cast<uint64_t>(absl::ToUnixNanos(request_.wall_start + (time - request_.start)));
  }

  const SampledRequest& request_;
  otlp::trace::v1::ScopeSpans& spans_;
};

// By OpenTelemetry's conventions a server's span is an error where the server is to blame.
bool IsOurFault(StatusCode code) {
  switch (code) {
    case StatusCode::kUnknown:
    case StatusCode::kDeadlineExceeded:
    case StatusCode::kUnimplemented:
    case StatusCode::kInternal:
    case StatusCode::kUnavailable:
    case StatusCode::kDataLoss:
      return true;
    default:
      return false;
  }
}

// A method of the service, as spans are called by it.
struct Method {
  const char *name, *span;
};
constexpr Method kUnary = {"ModelInfer", "inference.GRPCInferenceService/ModelInfer"};
constexpr Method kStreamed = {"ModelStreamInfer", "inference.GRPCInferenceService/ModelStreamInfer"};

void AddModel(SpanAttributes& attributes, const SampledRequest& request) {
  Add(attributes, "swizzle.model", request.model);
  Add(attributes, "swizzle.model_version", request.version);
}

void AddRequest(SpanWriter& writer, const SampledRequest& request) {
  const Method& method = request.streamed ? kStreamed : kUnary;
  Span& span = writer.Add(method.span, Span::SPAN_KIND_SERVER, request.start, request.end);
  SetPlace(span, request.place);
  span.set_flags(kSampled | kKnowsWhetherRemote | (request.parent ? kParentIsRemote : 0));
  if (request.parent) {
    span.set_parent_span_id(Bytes(request.parent->span));
    span.set_trace_state(request.parent->state);
  }
  SpanAttributes& attributes = *span.mutable_attributes();
  Add(attributes, "rpc.system", "grpc");
  Add(attributes, "rpc.service", "inference.GRPCInferenceService");
  Add(attributes, "rpc.method", method.name);
  Add(attributes, "rpc.grpc.status_code", static_cast<int64_t>(request.code));
  if (!request.model.empty()) AddModel(attributes, request);
  if (!request.id.empty()) Add(attributes, "swizzle.request_id", request.id);
  Add(attributes, "swizzle.rows", request.rows);
  if (IsOurFault(request.code)) span.mutable_status()->set_code(otlp::trace::v1::Status::STATUS_CODE_ERROR);
}

void AddStages(SpanWriter& writer, const SampledRequest& request) {
  const SampledRequest::Stages& stages = *request.stages;
  writer.AddChild("queue", stages.queued, stages.begun);
  writer.AddChild("gather", stages.begun, stages.computing());
  Span& compute = writer.AddChild("compute", stages.computing(), stages.scattering());
  Add(*compute.mutable_attributes(), "swizzle.batch_size", stages.batch_rows);
  if (request.in_batch) AddLink(compute, *request.in_batch);
  writer.AddChild("scatter", stages.scattering(), stages.ended());
}

void AddBatch(SpanWriter& writer, const SampledRequest& request) {
  Span& span = writer.Add("batch", Span::SPAN_KIND_INTERNAL, request.stages->begun, request.stages->ended());
  SetPlace(span, *request.in_batch);
  span.set_flags(kSampled | kKnowsWhetherRemote);
  SpanAttributes& attributes = *span.mutable_attributes();
  AddModel(attributes, request);
  Add(attributes, "swizzle.batch_size", request.stages->batch_rows);
  Add(attributes, "swizzle.batch_requests", request.batch->requests);
  Add(attributes, "swizzle.batch_reason", LabelValue(request.batch->reason));
  for (const SpanPlace& place : request.batch->links) AddLink(span, place);
}

bool HasBatch(const SampledRequest& request) { return request.batch && request.stages && request.in_batch; }

// What is below the span of a request, or of a step: how its batch went, or its steps.
void AddBelow(const SampledRequest& request, otlp::trace::v1::ScopeSpans& spans) {
  SpanWriter writer(request, spans);
  if (request.steps.empty() && request.stages) AddStages(writer, request);
  if (HasBatch(request)) AddBatch(writer, request);
  for (const auto& step : request.steps) {
    Span& span = writer.AddChild("step", step->start, step->end);
    SetPlace(span, step->place);
    SpanAttributes& attributes = *span.mutable_attributes();
    AddModel(attributes, *step);
    Add(attributes, "rpc.grpc.status_code", static_cast<int64_t>(step->code));
    if (IsOurFault(step->code)) span.mutable_status()->set_code(otlp::trace::v1::Status::STATUS_CODE_ERROR);
    AddBelow(*step, spans);
  }
}

void AddWhoWeAre(SpanAttributes& attributes) {
  std::array<char, 256> host = {};
  if (gethostname(host.data(), host.size() - 1) == 0) Add(attributes, "host.name", host.data());
  Add(attributes, "service.name", "swizzle");
  Add(attributes, "service.version", SWIZZLE_VERSION);
  Add(attributes, "process.pid", int64_t{getpid()});
}

}  // namespace

int64_t SpanCount(const SampledRequest& request) {
  constexpr int kOfStages = 4;
  int64_t count = 1 + (request.stages && request.steps.empty() ? kOfStages : 0) + (HasBatch(request) ? 1 : 0);
  for (const auto& step : request.steps) count += SpanCount(*step);
  return count;
}

otlp::collector::trace::v1::ExportTraceServiceRequest MakeExport(
    std::span<const std::shared_ptr<const SampledRequest>> requests) {
  otlp::collector::trace::v1::ExportTraceServiceRequest message;
  auto& ours = *message.add_resource_spans();
  AddWhoWeAre(*ours.mutable_resource()->mutable_attributes());
  auto& spans = *ours.add_scope_spans();
  spans.mutable_scope()->set_name("swizzle");
  spans.mutable_scope()->set_version(SWIZZLE_VERSION);
  for (const auto& request : requests) {
    SpanWriter writer(*request, spans);
    AddRequest(writer, *request);
    AddBelow(*request, spans);
  }
  return message;
}

}  // namespace swizzle

// Sampled requests as OpenTelemetry's spans. Functions only.
//
// A request is a span of kind SERVER, with the children `queue`, `gather`, `compute` and `scatter` where it ran. Its
// batch is a span of a trace of its own, linked to those of its requests that are traced; their `compute` links back.
// An ensemble's has a child `step` for each step in their place, below which they are.
#ifndef SWIZZLE_SERVER_TRACING_OTLP_SPANS_H_
#define SWIZZLE_SERVER_TRACING_OTLP_SPANS_H_

#include <cstdint>
#include <memory>
#include <span>

#include "proto/opentelemetry/trace_service.pb.h"
#include "server/tracing/sampled_request.h"

namespace swizzle {

// How many spans it is.
int64_t SpanCount(const SampledRequest& request);

// With who this server is.
opentelemetry::proto::collector::trace::v1::ExportTraceServiceRequest MakeExport(
    std::span<const std::shared_ptr<const SampledRequest>> requests);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_TRACING_OTLP_SPANS_H_

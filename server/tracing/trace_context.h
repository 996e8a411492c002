// W3C's trace context (www.w3.org/TR/trace-context): which trace a request is part of, as its caller says in the
// headers `traceparent` and `tracestate`; and ids for what is traced here.
//
// What comes from outside is checked, and what is wrong with it leaves the request without a context: it is never the
// request's fault. Functions are thread-safe.
#ifndef SWIZZLE_SERVER_TRACING_TRACE_CONTEXT_H_
#define SWIZZLE_SERVER_TRACING_TRACE_CONTEXT_H_

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace swizzle {

using TraceId = std::array<uint8_t, 16>;
using SpanId = std::array<uint8_t, 8>;

struct TraceContext {
  TraceId trace = {};
  SpanId span = {};      // the caller's
  bool sampled = false;  // whether the caller records it
  std::string state;     // of tracing systems on the way; passed on as it came
};

// Nothing where `traceparent` is none. A `tracestate` that is not printable, or too long, counts as none.
std::optional<TraceContext> ParseTraceContext(std::string_view traceparent, std::string_view tracestate);

// Random, and not all 0. Unpredictable to nobody.
TraceId NewTraceId();
SpanId NewSpanId();

// True in that share of the calls, at random: 0 is never, 1 always.
bool Chance(double share);

// In lower case.
std::string Hex(std::span<const uint8_t> bytes);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_TRACING_TRACE_CONTEXT_H_

// Chooses requests for the request log and for traces, and brings them there.
//
// A server that wants neither has none of these. What is not chosen costs a look at the headers, and one at a random
// number; what is, is written down by whoever has the request (sampled_request.h), and given away at its end.
#ifndef SWIZZLE_SERVER_TRACING_REQUEST_SAMPLER_H_
#define SWIZZLE_SERVER_TRACING_REQUEST_SAMPLER_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "server/model/model.h"
#include "server/telemetry/metrics.h"
#include "server/threading/clock.h"
#include "server/tracing/request_log.h"
#include "server/tracing/sampled_request.h"
#include "server/tracing/trace_exporter.h"
#include "server/tracing/trace_sampling.h"

namespace swizzle {

struct SamplingOptions {
  double request_log_rate = 0.0;  // the share of requests that are logged
  std::string trace_endpoint;     // HOST:PORT of a collector; empty: nothing is traced
  double trace_rate = 0.0;        // the share of requests that are traced, of those whose caller says nothing

  bool any() const { return request_log_rate > 0.0 || !trace_endpoint.empty(); }
};

// Thread-safe. Outlives the calls that ask it.
class RequestSampler {
 public:
  // The value of a header of a request, empty where it has none.
  using Header = absl::FunctionRef<std::string_view(std::string_view name)>;

  explicit RequestSampler(const SamplingOptions& options, Clock& clock = Clock::Real());

  // Null: the request, which has begun at `start`, is neither logged nor traced.
  std::unique_ptr<SampledRequest> Begin(Instant start, Header header);
  // Once the request is over. `spec` is its model's, null where it has none. Waits for nothing.
  void End(std::unique_ptr<SampledRequest> request, const ModelSpec* spec, StatusCode code, Instant end) noexcept;

  // Null where nothing is traced.
  TraceSampling* trace_sampling() { return sampling_ ? &*sampling_ : nullptr; }
  SampledCounts counts() const;
  // Sends the traces that there are, for so long at most; no more are sent after it.
  void Stop(absl::Duration patience);

 private:
  Clock& clock_;
  std::optional<RequestLog> log_;
  std::optional<TraceSampling> sampling_;
  std::optional<TraceExporter> exporter_;
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_TRACING_REQUEST_SAMPLER_H_

// What is written down of a request that was chosen for the request log, a trace, or both, on its way.
//
// One thread at a time has it: the call, then the batcher, by Request::sample, until the request's `done` runs, then
// the call again. Once it has ended it does not change.
#ifndef SWIZZLE_SERVER_TRACING_SAMPLED_REQUEST_H_
#define SWIZZLE_SERVER_TRACING_SAMPLED_REQUEST_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "kernels/base/instant.h"
#include "kernels/base/status.h"
#include "server/model/request.h"
#include "server/telemetry/labels.h"
#include "server/tracing/trace_context.h"

namespace swizzle {

// A span's place: its trace, and its number there.
struct SpanPlace {
  TraceId trace = {};
  SpanId span = {};
};

struct SampledRequest {
  // How a batch went, as its requests saw it.
  struct Stages {
    Instant queued, begun;
    absl::Duration input, compute, output;
    int64_t batch_rows = 0;

    Instant computing() const { return begun + input; }
    Instant scattering() const { return computing() + compute; }
    Instant ended() const { return scattering() + output; }
  };
  // A batch of traced requests, the first of which has this.
  struct Batch {
    static constexpr size_t kMostLinks = 128;
    BatchReason reason = BatchReason::kIdle;
    int64_t requests = 0;          // traced or not
    std::vector<SpanPlace> links;  // of the traced ones, as far as kMostLinks
  };

  // The id, as far as it is kept: whole characters of UTF-8.
  void SetId(std::string_view whole);
  // The batcher is to tell this of the batch. Outlives the request.
  void Attach(Request& request) {
    rows = request.rows;
    request.sample = this;
  }

  // A step of this request, an ensemble's, that begins now.
  std::unique_ptr<SampledRequest> Step(Instant now) const;

  // Since it was chosen.
  bool logged = false, traced = false;
  bool streamed = false;  // ModelStreamInfer brought it
  std::optional<TraceContext> parent;
  SpanPlace place;  // where it is traced; its trace is the parent's where there is one
  Instant start;
  absl::Time wall_start;

  std::string id;
  int64_t rows = 0;
  std::optional<Stages> stages;       // none: it never ran, or its batch failed
  std::optional<SpanPlace> in_batch;  // the batch's span, of traced requests
  std::optional<Batch> batch;

  // Of an ensemble, its traced steps as far as they began: each has a place in the same trace.
  std::vector<std::unique_ptr<SampledRequest>> steps;

  // At its end.
  std::string model;  // empty: it named none that there is
  int64_t version = 0;
  StatusCode code = StatusCode::kOk;
  Instant end;
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_TRACING_SAMPLED_REQUEST_H_

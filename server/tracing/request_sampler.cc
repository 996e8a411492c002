#include "server/tracing/request_sampler.h"

#include <utility>

namespace swizzle {

RequestSampler::RequestSampler(const SamplingOptions& options, Clock& clock) : clock_(clock) {
  if (options.request_log_rate > 0.0) log_.emplace(options.request_log_rate, clock);
  if (options.trace_endpoint.empty()) return;
  sampling_.emplace(options.trace_rate);
  exporter_.emplace(options.trace_endpoint);
}

std::unique_ptr<SampledRequest> RequestSampler::Begin(Instant start, Header header) {
  const bool logged = log_ && log_->Wants();
  const bool may_trace = sampling_ && sampling_->on();
  if (!logged && !may_trace) return nullptr;
  std::optional<TraceContext> parent;
  if (const std::string_view traceparent = header("traceparent"); !traceparent.empty()) {
    parent = ParseTraceContext(traceparent, header("tracestate"));
  }
  bool traced = may_trace && sampling_->Samples(parent);
  if (traced && !exporter_->has_room()) {
    exporter_->Drop(1);
    traced = false;
  }
  if (!logged && !traced) return nullptr;
  auto request = std::make_unique<SampledRequest>();
  request->logged = logged;
  request->traced = traced;
  request->start = start;
  request->wall_start = clock_.WallNow() - (clock_.Now() - start);
  if (traced) request->place = {NewTraceId(), NewSpanId()};
  if (parent) request->place.trace = parent->trace;
  request->parent = std::move(parent);
  return request;
}

void RequestSampler::End(std::unique_ptr<SampledRequest> request, const ModelSpec* spec, StatusCode code,
                         Instant end) noexcept {
  const bool traced = request->traced;
  try {
    if (spec != nullptr) {
      request->model = spec->name;
      request->version = spec->version;
    }
    request->code = code;
    request->end = end;
    const std::shared_ptr<const SampledRequest> ended = std::move(request);
    if (ended->logged) log_->Write(ended);
    if (traced) exporter_->Add(ended);
  } catch (...) {  // there is no memory for it
    if (traced) exporter_->Drop(1);
  }
}

SampledCounts RequestSampler::counts() const {
  SampledCounts counts;
  if (log_) counts.lines = {log_->written(), log_->dropped()};
  if (!exporter_) return counts;
  counts.spans = exporter_->spans();
  counts.export_failures = exporter_->failures();
  return counts;
}

void RequestSampler::Stop(absl::Duration patience) {
  if (exporter_) exporter_->Stop(patience);
}

}  // namespace swizzle

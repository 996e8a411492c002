#include "server/tracing/request_log.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"

namespace swizzle {
namespace {

void WriteLine(const RequestLog::Sink& sink, const SampledRequest& request) {
  std::vector<LogField> fields = {{"model", request.model}, {"version", request.version}, {"id", request.id}};
  if (request.traced || request.parent) fields.emplace_back("trace_id", Hex(request.place.trace));
  fields.emplace_back("code", LabelValue(request.code));
  fields.emplace_back("rows", request.rows);
  if (const auto& stages = request.stages; stages) {
    fields.emplace_back("queue_us", absl::ToInt64Microseconds(stages->begun - stages->queued));
    fields.emplace_back("compute_us", absl::ToInt64Microseconds(stages->compute));
    fields.emplace_back("batch_size", stages->batch_rows);
  }
  fields.emplace_back("total_us", absl::ToInt64Microseconds(request.end - request.start));
  sink("request", fields);
}

}  // namespace

RequestLog::RequestLog(double rate, Clock& clock, Sink sink) : rate_(rate), clock_(clock), sink_(std::move(sink)) {}

bool RequestLog::Wants() {
  if (!Chance(rate_)) return false;
  if (waiting_.load(std::memory_order_relaxed) < kMostWaiting && budget_.Ask(clock_.Now()).may_log) return true;
  dropped_.fetch_add(1, std::memory_order_relaxed);
  return false;
}

void RequestLog::Write(std::shared_ptr<const SampledRequest> request) {
  waiting_.fetch_add(1, std::memory_order_relaxed);
  try {
    thread_.Add([this, request = std::move(request)] {
      WriteLine(sink_, *request);
      waiting_.fetch_sub(1, std::memory_order_relaxed);
      written_.fetch_add(1, std::memory_order_relaxed);
    });
  } catch (...) {  // there is no memory for it
    waiting_.fetch_sub(1, std::memory_order_relaxed);
    dropped_.fetch_add(1, std::memory_order_relaxed);
  }
}

}  // namespace swizzle

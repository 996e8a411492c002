#include "server/telemetry/triton_metrics.h"

#include <array>

#include "absl/time/time.h"
#include "server/telemetry/scraped_family.h"

namespace swizzle {
namespace {

using scrape::Add;
using scrape::Empty;

// Triton tells of four reasons: its scheduler refused, the client gave up, the model failed, and all others.
TritonFailure FailureOf(StatusCode code) {
  switch (code) {
    case StatusCode::kCancelled:
      return TritonFailure::kCanceled;
    case StatusCode::kResourceExhausted:
    case StatusCode::kUnavailable:
    case StatusCode::kDeadlineExceeded:
      return TritonFailure::kRejected;
    case StatusCode::kInternal:
    case StatusCode::kUnknown:
    case StatusCode::kDataLoss:
      return TritonFailure::kBackend;
    default:
      return TritonFailure::kOther;
  }
}

// The families, in the order in which they are exposed.
struct Families {
  prometheus::MetricFamily success = Empty<"nv_inference_request_success">();
  prometheus::MetricFamily failure = Empty<"nv_inference_request_failure">();
  prometheus::MetricFamily rows = Empty<"nv_inference_count">();
  prometheus::MetricFamily batches = Empty<"nv_inference_exec_count">();
  prometheus::MetricFamily request = Empty<"nv_inference_request_duration_us">();
  prometheus::MetricFamily queue = Empty<"nv_inference_queue_duration_us">();
  prometheus::MetricFamily input = Empty<"nv_inference_compute_input_duration_us">();
  prometheus::MetricFamily compute = Empty<"nv_inference_compute_infer_duration_us">();
  prometheus::MetricFamily output = Empty<"nv_inference_compute_output_duration_us">();
  prometheus::MetricFamily pending = Empty<"nv_inference_pending_request_count">();
};

void AddTotals(Families& to, const ModelStatisticsTotals& totals, const std::string& model,
               const std::string& version) {
  const auto number = [](int64_t count) { return static_cast<double>(count); };
  const auto us = [](const ModelStatisticsTotals::Stage& stage) {
    return static_cast<double>(absl::ToInt64Microseconds(stage.total));
  };
  Add<"nv_inference_request_success">(to.success, number(totals.success.count), model, version);
  Add<"nv_inference_count">(to.rows, number(totals.inference_count), model, version);
  Add<"nv_inference_exec_count">(to.batches, number(totals.execution_count), model, version);
  Add<"nv_inference_request_duration_us">(to.request, us(totals.success), model, version);
  Add<"nv_inference_queue_duration_us">(to.queue, us(totals.queue), model, version);
  Add<"nv_inference_compute_input_duration_us">(to.input, us(totals.input), model, version);
  Add<"nv_inference_compute_infer_duration_us">(to.compute, us(totals.compute), model, version);
  Add<"nv_inference_compute_output_duration_us">(to.output, us(totals.output), model, version);
}

void AddFailures(Families& to, const VersionTotals& of) {
  std::array<double, kLabelValues<TritonFailure>.size()> failures = {};
  for (size_t i = 0; i < kLabelValues<StatusCode>.size(); ++i) {
    const auto code = static_cast<StatusCode>(i);
    if (code == StatusCode::kOk) continue;
    failures[static_cast<size_t>(FailureOf(code))] += of.requests[i];
  }
  for (size_t i = 0; i < failures.size(); ++i) {
    Add<"nv_inference_request_failure">(to.failure, failures[i], of.model, of.version, static_cast<TritonFailure>(i));
  }
}

}  // namespace

std::vector<prometheus::MetricFamily> CollectTritonMetrics(std::span<const VersionTotals> versions) {
  Families families;
  for (const VersionTotals& version : versions) {
    AddTotals(families, version.totals, version.model, version.version);
    AddFailures(families, version);
    Add<"nv_inference_pending_request_count">(families.pending, version.queued, version.model, version.version);
  }
  std::vector<prometheus::MetricFamily> all;
  for (auto* family : {&families.success, &families.failure, &families.rows, &families.batches, &families.request,
                       &families.queue, &families.input, &families.compute, &families.output, &families.pending}) {
    if (!family->metric.empty()) all.push_back(std::move(*family));
  }
  return all;
}

}  // namespace swizzle

// The table of metrics: every family that /metrics gives, one row each. Registration, help texts, labels and the page
// METRICS.md follow from it. To add a metric, add its row, then record it where it happens by a child that
// MetricRegistry gives for the family's name (or, for what is asked at a scrape, in scraped_metrics.cc).
#ifndef SWIZZLE_SERVER_TELEMETRY_METRIC_FAMILIES_H_
#define SWIZZLE_SERVER_TELEMETRY_METRIC_FAMILIES_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "server/telemetry/labels.h"

namespace swizzle {

enum class MetricType : uint8_t { kCounter, kGauge, kHistogram };

struct MetricLabel {
  std::string_view name;
  std::span<const std::string_view> values = {};  // all that there are; none: open
};

struct MetricFamily {
  static constexpr size_t kMostLabels = 5;

  std::string_view name;
  MetricType type;
  std::array<MetricLabel, kMostLabels> label_slots;  // the first label_count()
  std::string_view help;
  std::span<const double> buckets = {};  // upper edges, of a histogram

  constexpr size_t label_count() const {
    return static_cast<size_t>(
        std::ranges::count_if(label_slots, [](const MetricLabel& label) { return !label.name.empty(); }));
  }
  constexpr std::span<const MetricLabel> labels() const { return std::span(label_slots).first(label_count()); }
};

namespace metric_table {

inline constexpr std::array<double, 16> kSeconds = {1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2,
                                                    5e-2, 1e-1, 2e-1, 5e-1, 1.0,  2.0,  5.0,  10.0};
inline constexpr std::array<double, 9> kRows = {1, 2, 4, 8, 16, 32, 64, 128, 256};
inline constexpr std::array<double, 11> kPositions = {1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576};

inline constexpr MetricLabel kModel = {"model"}, kVersion = {"version"}, kDevice = {"device"}, kStream = {"stream"};
inline constexpr MetricLabel kOp = {"op"}, kKernel = {"kernel"}, kCompiler = {"compiler"};
inline constexpr MetricLabel kCode = {"code", kLabelValues<StatusCode>};
inline constexpr MetricLabel kStage = {"stage", kLabelValues<Stage>};
inline constexpr MetricLabel kBatchReason = {"reason", kLabelValues<BatchReason>};
inline constexpr MetricLabel kRejection = {"reason", kLabelValues<Rejection>};
inline constexpr MetricLabel kCacheLookup = {"found", kLabelValues<CacheLookup>};
inline constexpr MetricLabel kCallRefusal = {"reason", kLabelValues<CallRefusal>};
inline constexpr MetricLabel kConnectionRefusal = {"reason", kLabelValues<ConnectionRefusal>};
inline constexpr MetricLabel kConnectionEnd = {"after", kLabelValues<ConnectionEnd>};
inline constexpr MetricLabel kWatchedFiles = {"files", kLabelValues<WatchedFiles>};
inline constexpr MetricLabel kReloadOutcome = {"outcome", kLabelValues<ReloadOutcome>};
inline constexpr MetricLabel kMemoryUse = {"to", kLabelValues<MemoryUse>};
inline constexpr MetricLabel kStreamedRequest = {"state", kLabelValues<StreamedRequest>};
inline constexpr MetricLabel kCallState = {"state", kLabelValues<CallState>};
inline constexpr MetricLabel kTuningState = {"state", kLabelValues<TuningState>};
inline constexpr MetricLabel kGpuUuid = {"gpu_uuid"};
inline constexpr MetricLabel kLineOutcome = {"outcome", kLabelValues<LineOutcome>};
inline constexpr MetricLabel kSpanOutcome = {"outcome", kLabelValues<SpanOutcome>};
inline constexpr MetricLabel kTritonFailure = {"reason", kLabelValues<TritonFailure>};
inline constexpr MetricLabel kWeightBytes = {"kind", kLabelValues<WeightBytes>};

using enum MetricType;

inline constexpr auto kFamilies = std::to_array<MetricFamily>({
    // Requests.
    {"swizzle_requests_total",
     kCounter,
     {kModel, kVersion, kCode},
     "Inference requests answered, by gRPC status code. Those to models that the repository doesn't have are together "
     "those of the model \"(unknown)\"."},
    {"swizzle_request_duration_seconds",
     kHistogram,
     {kModel, kVersion},
     "Time from a request's arrival to its answer, of requests that were answered OK.",
     kSeconds},
    {"swizzle_stage_duration_seconds",
     kHistogram,
     {kModel, kVersion, kStage},
     "Time spent in a stage: queue, per request; input (gathering), compute and output (scattering), per batch.",
     kSeconds},
    {"swizzle_queue_depth", kGauge, {kModel, kVersion}, "Requests queued."},
    {"swizzle_inflight_requests", kGauge, {kModel, kVersion}, "Requests queued or running."},
    {"swizzle_rejected_requests_total",
     kCounter,
     {kModel, kVersion, kRejection},
     "Requests that never ran, by what they met: a full queue, a deadline, a cancellation, a server that drains, or a "
     "queue that would have kept them too long."},
    {"swizzle_rejected_queue_seconds",
     kHistogram,
     {kModel, kVersion, kRejection},
     "Time that requests which never ran were queued.",
     kSeconds},
    {"swizzle_response_cache_lookups_total",
     kCounter,
     {kModel, kVersion, kCacheLookup},
     "Requests looked up in the cache of answers: hit (answered from it, without a batch), miss."},

    // Batches.
    {"swizzle_inferences_total", kCounter, {kModel, kVersion}, "Rows inferred."},
    {"swizzle_batches_total",
     kCounter,
     {kModel, kVersion, kBatchReason},
     "Batches executed, by why they were formed: full, idle (an executor was free), delay, preferred (a preferred "
     "size was reached), single (batching is off), retry (a request alone, after its batch failed)."},
    {"swizzle_batch_size", kHistogram, {kModel, kVersion}, "Rows per executed batch.", kRows},
    {"swizzle_batch_positions",
     kHistogram,
     {kModel, kVersion},
     "Positions per executed batch: tokens, or rows times the spatial extent of the first input.",
     kPositions},
    {"swizzle_stream_busy_seconds_total",
     kCounter,
     {kModel, kVersion, kDevice, kStream},
     "Time that an executor's stream has been running batches."},

    // Models.
    {"swizzle_model_ready", kGauge, {kModel, kVersion}, "1 while this version serves."},
    {"swizzle_model_load_duration_seconds",
     kGauge,
     {kModel, kVersion},
     "Time that loading this version took; measuring is part of it with --tune=before-ready alone."},
    {"swizzle_model_load_failures_total", kCounter, {kModel}, "Loads that failed."},
    {"swizzle_model_sparsity_ratio", kGauge, {kModel, kVersion}, "Share of zeros in all weights."},
    {"swizzle_model_weight_bytes",
     kGauge,
     {kModel, kVersion, kWeightBytes},
     "Bytes of weights: dense (had they been stored so), stored (in the model's formats), device (as the kernels "
     "hold them)."},
    {"swizzle_kernel_selected",
     kGauge,
     {kModel, kVersion, kDevice, kOp, kKernel},
     "Layers that run on this kernel, by operation and device."},
    {"swizzle_dense_fallback_layers",
     kGauge,
     {kModel, kVersion},
     "Layers with sparse weights for which a dense kernel is faster."},
    {"swizzle_model_tuning_state",
     kGauge,
     {kModel, kVersion, kTuningState},
     "1 for what the tuning of the model's plan is at: off, waiting (for idle time), measuring, done, failed."},
    {"swizzle_model_tuning_seconds_total",
     kCounter,
     {kModel, kVersion},
     "Time spent on measuring kernels and plans of the model since it was loaded; waits for idle time don't count."},
    {"swizzle_plan_replacements_total",
     kCounter,
     {kModel, kVersion},
     "Plans that were replaced, between two batches, by one that was measured to be faster."},
    {"swizzle_suspect_measurements",
     kGauge,
     {kModel, kVersion},
     "Measurements of the model's kernels that were disturbed, by which nothing is chosen until they are repeated."},

    // What clients take; asked for at each scrape.
    {"swizzle_inflight_bytes", kGauge, {}, "Memory that requests and responses hold."},
    {"swizzle_inflight_bytes_limit", kGauge, {}, "Memory that they may hold (--max-inflight-bytes)."},
    {"swizzle_refused_calls_total",
     kCounter,
     {kCallRefusal},
     "Calls that ended for what they sent or did not read: malformed (no message of the protocol), too_large (beyond "
     "the limits of the server or the model), inflight_bytes (no room for it), slow_reader (its response was not read "
     "in time), unauthenticated (it showed no token, or none that there is), permission_denied (its token does not "
     "allow it, or nobody may here); the last two are of HTTP, too."},
    {"swizzle_infer_streams", kGauge, {}, "Calls of ModelStreamInfer that are open."},
    {"swizzle_infer_stream_requests",
     kGauge,
     {kStreamedRequest},
     "Requests that were read from them: running (not over), unread (over, but not all of their answers, or of those "
     "before them, are sent: many of them are of clients that do not read)."},
    {"swizzle_shared_memory_regions", kGauge, {}, "Regions of shared memory that clients have registered."},
    {"swizzle_shared_memory_bytes", kGauge, {}, "Bytes of these regions; they are no memory of the process."},
    {"swizzle_shared_memory_bytes_limit",
     kGauge,
     {},
     "Bytes that they may have together (--shared-memory-bytes); 0: the server takes no shared memory."},
    {"swizzle_connections", kGauge, {}, "Connections, those closed within the last second included."},
    {"swizzle_connections_limit", kGauge, {}, "Connections that there may be (--max-connections)."},
    {"swizzle_connections_accepted_total", kCounter, {}, "Connections accepted."},
    {"swizzle_connections_refused_total",
     kCounter,
     {kConnectionRefusal},
     "Connections closed at once: limit (there were as many as may be), files (there was no file descriptor); or "
     "later: greedy (it had more calls open, or cancelled more in a second, than a client may), slow_sender (it had "
     "begun a request, and did not end it)."},
    {"swizzle_connections_ended_total",
     kCounter,
     {kConnectionEnd},
     "Connections that gRPC or their clients ended, by the limit that they had reached: handshake (--handshake-timeout "
     "without HTTP/2), age (nine tenths of --connection-age, from where on gRPC asks clients to connect anew), idle "
     "(--connection-idle without a call), keepalive (silent for --keepalive-time, and a ping was not answered), other "
     "(none: the client ended it, or it broke). Of HTTP's those that ended for their age, or for being idle."},
    {"swizzle_tls_certificate_expiry_timestamp_seconds",
     kGauge,
     {},
     "When the certificate that is shown to clients expires, since the Unix epoch; only with --tls-cert."},
    {"swizzle_credential_reloads_total",
     kCounter,
     {kWatchedFiles, kReloadOutcome},
     "Times that files were read again because they had changed: tls (--tls-cert, --tls-key, --tls-client-ca), "
     "tokens (--auth-tokens). failed: what they hold cannot be used, and what they held before is used on."},
    {"swizzle_grpc_calls_total",
     kCounter,
     {kCallState},
     "Calls of all methods as gRPC counts them: started, succeeded (answered OK), failed. One whose headers are beyond "
     "--max-metadata-bytes gRPC refuses by itself: it is started here, never succeeded nor failed, and in no other "
     "metric."},
    {"swizzle_transport_bytes_limit",
     kGauge,
     {},
     "Memory that gRPC may hold of messages that are not complete (--transport-bytes). It does not tell how much it "
     "holds."},
    {"swizzle_memory_limit_bytes",
     kGauge,
     {},
     "Memory that the process may take: --memory-limit, or what control groups and the machine leave."},
    {"swizzle_memory_promised_bytes",
     kGauge,
     {kMemoryUse},
     "Memory that is spoken for, taken or not: models (executors of loaded models at their largest batches), requests "
     "(--max-inflight-bytes, --transport-bytes and --response-cache-bytes). A model for which there is no room beside "
     "it fails to load, or has "
     "smaller batches."},
    {"swizzle_run_bytes",
     kGauge,
     {},
     "Memory that runs of models in regions, or node by node, hold together, and keep between runs."},
    {"swizzle_run_bytes_limit",
     kGauge,
     {},
     "Memory that they may hold: --max-run-bytes, or what was left for them when the last such model was loaded; 0: "
     "there is no limit."},
    {"swizzle_response_cache_bytes", kGauge, {}, "Memory that kept answers take, with the inputs that they belong to."},
    {"swizzle_response_cache_bytes_limit", kGauge, {}, "Memory that they may take (--response-cache-bytes)."},
    {"swizzle_memory_trims_total", kCounter, {}, "Times that freed memory was given back to the system."},

    // The request log and traces; asked for at each scrape.
    {"swizzle_request_log_lines_total",
     kCounter,
     {kLineOutcome},
     "Requests that were chosen for the request log (--request-log-rate): written, or dropped, because there were more "
     "than 100 in a second or standard error is not read."},
    {"swizzle_trace_spans_total",
     kCounter,
     {kSpanOutcome},
     "Spans of traces (--trace-endpoint): exported, or lost: queue_full (more than could wait), not_delivered (the "
     "collector is gone or slow), rejected (by the collector)."},
    {"swizzle_trace_export_failures_total", kCounter, {}, "Calls to the collector of traces that failed."},

    // What Triton calls it, with --metrics-compat=triton; asked for at each scrape.
    {"nv_inference_request_success", kCounter, {kModel, kVersion}, "Requests answered OK."},
    {"nv_inference_request_failure",
     kCounter,
     {kModel, kVersion, kTritonFailure},
     "Requests answered otherwise: REJECTED (RESOURCE_EXHAUSTED, UNAVAILABLE, DEADLINE_EXCEEDED), CANCELED "
     "(CANCELLED), BACKEND (INTERNAL, UNKNOWN, DATA_LOSS), OTHER. This and the others whose names begin with "
     "nv_inference are exposed with --metrics-compat=triton."},
    {"nv_inference_count", kCounter, {kModel, kVersion}, "Rows inferred."},
    {"nv_inference_exec_count", kCounter, {kModel, kVersion}, "Batches executed."},
    {"nv_inference_request_duration_us",
     kCounter,
     {kModel, kVersion},
     "Time of all requests that were answered OK, in microseconds."},
    {"nv_inference_queue_duration_us",
     kCounter,
     {kModel, kVersion},
     "Time that requests which ran were queued, in microseconds."},
    {"nv_inference_compute_input_duration_us",
     kCounter,
     {kModel, kVersion},
     "Time of gathering, of each request its whole batch's, in microseconds."},
    {"nv_inference_compute_infer_duration_us",
     kCounter,
     {kModel, kVersion},
     "Time of computing, of each request its whole batch's, in microseconds."},
    {"nv_inference_compute_output_duration_us",
     kCounter,
     {kModel, kVersion},
     "Time of scattering, of each request its whole batch's, in microseconds."},
    {"nv_inference_pending_request_count", kGauge, {kModel, kVersion}, "Requests queued."},
    {"nv_gpu_utilization", kGauge, {kGpuUuid}, "As swizzle_gpu_utilization_ratio, with --metrics-compat=triton."},
    {"nv_gpu_memory_total_bytes", kGauge, {kGpuUuid}, "Memory of the GPU, likewise."},
    {"nv_gpu_memory_used_bytes", kGauge, {kGpuUuid}, "Memory of the GPU in use, likewise."},
    {"nv_gpu_power_usage", kGauge, {kGpuUuid}, "As swizzle_gpu_power_watts, likewise."},
    {"nv_gpu_power_limit", kGauge, {kGpuUuid}, "As swizzle_gpu_power_limit_watts, likewise."},
    {"nv_energy_consumption", kCounter, {kGpuUuid}, "As swizzle_gpu_energy_joules_total, likewise."},

    // The machine and the process; all but the first are asked for at each scrape.
    {"swizzle_build_info", kGauge, {kVersion, kCompiler}, "1, labelled with what this server is."},
    {"swizzle_gpu_memory_used_bytes", kGauge, {kDevice}, "Memory of the GPU in use, by any process."},
    {"swizzle_gpu_memory_total_bytes", kGauge, {kDevice}, "Memory of the GPU."},
    {"swizzle_gpu_utilization_ratio",
     kGauge,
     {kGpuUuid},
     "Share of the time in which something ran on the GPU. This and the other three with a gpu_uuid are there where "
     "NVIDIA's driver tells it, of all GPUs that it shows to the process."},
    {"swizzle_gpu_power_watts", kGauge, {kGpuUuid}, "Power that the GPU takes."},
    {"swizzle_gpu_power_limit_watts", kGauge, {kGpuUuid}, "Power that it may take."},
    {"swizzle_gpu_energy_joules_total", kCounter, {kGpuUuid}, "Energy that it took since its driver was loaded."},
    {"process_cpu_seconds_total", kCounter, {}, "User and system CPU time spent."},
    {"process_resident_memory_bytes", kGauge, {}, "Resident memory."},
    {"process_virtual_memory_bytes", kGauge, {}, "Virtual memory."},
    {"process_start_time_seconds", kGauge, {}, "Start of the process since the Unix epoch."},
    {"process_open_fds", kGauge, {}, "Open file descriptors."},
    {"process_max_fds", kGauge, {}, "File descriptors that may be open."},
});

}  // namespace metric_table

inline constexpr const auto& kMetricFamilies = metric_table::kFamilies;

// A family's name as a template argument.
template <size_t kSize>
struct FamilyName {
  // Not explicit: a literal is one.  NOLINTNEXTLINE(google-explicit-constructor)
  consteval FamilyName(const char (&text)[kSize]) { std::copy_n(text, kSize, chars); }
  constexpr std::string_view view() const { return {chars, kSize - 1}; }
  char chars[kSize];
};

// The family's place in the table. A name that isn't there doesn't compile.
template <FamilyName kName>
consteval size_t FamilyIndex() {
  constexpr auto kRow = std::ranges::find(kMetricFamilies, kName.view(), &MetricFamily::name);
  static_assert(kRow != kMetricFamilies.end(), "no family of this name in the table");
  return static_cast<size_t>(kRow - kMetricFamilies.begin());
}

template <FamilyName kName>
inline constexpr const MetricFamily& kFamily = kMetricFamilies[FamilyIndex<kName>()];

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_TELEMETRY_METRIC_FAMILIES_H_

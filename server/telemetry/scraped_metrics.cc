#include "server/telemetry/scraped_metrics.h"

#include <optional>
#include <utility>

#include "server/telemetry/process_statistics.h"
#include "server/telemetry/scraped_family.h"

namespace swizzle {
namespace {

using scrape::Add;
using scrape::ByLabel;
using scrape::Empty;
using scrape::Single;

// A family with what each GPU tells of it; none where none does.
template <FamilyName kName>
void AddReadings(std::vector<prometheus::MetricFamily>& families, const std::vector<GpuReading>& gpus,
                 std::optional<double> GpuReading::*reading) {
  prometheus::MetricFamily family = Empty<kName>();
  for (const GpuReading& gpu : gpus) {
    if (gpu.*reading) Add<kName>(family, *(gpu.*reading), gpu.uuid);
  }
  if (!family.metric.empty()) families.push_back(std::move(family));
}

std::vector<prometheus::MetricFamily> OfClients(const ClientLoad& load) {
  const auto number = [](int64_t count) { return static_cast<double>(count); };
  prometheus::MetricFamily calls = Empty<"swizzle_refused_calls_total">();
  const auto call = [&](CallRefusal why, int64_t count) {
    Add<"swizzle_refused_calls_total">(calls, number(count), why);
  };
  call(CallRefusal::kMalformed, load.calls.malformed);
  call(CallRefusal::kTooLarge, load.calls.too_large);
  call(CallRefusal::kInflightBytes, load.calls.no_room);
  call(CallRefusal::kSlowReader, load.calls.slow_readers);
  call(CallRefusal::kUnauthenticated, load.credentials.unauthenticated);
  call(CallRefusal::kPermissionDenied, load.credentials.denied);
  prometheus::MetricFamily refused = Empty<"swizzle_connections_refused_total">();
  Add<"swizzle_connections_refused_total">(refused, number(load.refused_limit), ConnectionRefusal::kLimit);
  Add<"swizzle_connections_refused_total">(refused, number(load.refused_files), ConnectionRefusal::kFiles);
  Add<"swizzle_connections_refused_total">(refused, number(load.ended_greedy), ConnectionRefusal::kGreedy);
  Add<"swizzle_connections_refused_total">(refused, number(load.ended_slow), ConnectionRefusal::kSlow);
  return {Single<"swizzle_inflight_bytes">(number(load.calls.inflight_bytes)),
          Single<"swizzle_inflight_bytes_limit">(number(load.calls.inflight_bytes_limit)),
          std::move(calls),
          Single<"swizzle_infer_streams">(number(load.calls.streams)),
          ByLabel<"swizzle_infer_stream_requests", StreamedRequest>(load.calls.streamed_requests),
          Single<"swizzle_shared_memory_regions">(number(load.calls.shared_regions)),
          Single<"swizzle_shared_memory_bytes">(number(load.calls.shared_bytes)),
          Single<"swizzle_shared_memory_bytes_limit">(number(load.calls.shared_bytes_limit)),
          Single<"swizzle_connections">(number(load.connections)),
          Single<"swizzle_connections_limit">(number(load.connections_limit)),
          Single<"swizzle_connections_accepted_total">(number(load.accepted)),
          std::move(refused),
          ByLabel<"swizzle_connections_ended_total", ConnectionEnd>(load.connections_ended),
          ByLabel<"swizzle_grpc_calls_total", CallState>(load.grpc_calls),
          Single<"swizzle_transport_bytes_limit">(number(load.transport_bytes_limit)),
          Single<"swizzle_memory_limit_bytes">(number(load.memory_limit)),
          ByLabel<"swizzle_memory_promised_bytes", MemoryUse>(load.memory_promised),
          Single<"swizzle_run_bytes">(number(load.run_bytes)),
          Single<"swizzle_run_bytes_limit">(number(load.run_bytes_limit)),
          Single<"swizzle_response_cache_bytes">(number(load.response_cache_bytes)),
          Single<"swizzle_response_cache_bytes_limit">(number(load.response_cache_limit)),
          Single<"swizzle_memory_trims_total">(number(load.memory_trims))};
}

std::vector<prometheus::MetricFamily> OfCredentials(const CredentialLoad& load) {
  std::vector<prometheus::MetricFamily> families;
  prometheus::MetricFamily reloads = Empty<"swizzle_credential_reloads_total">();
  const auto add = [&](WatchedFiles files, const ReloadCounts& counts) {
    Add<"swizzle_credential_reloads_total">(reloads, static_cast<double>(counts.replaced), files,
                                            ReloadOutcome::kReplaced);
    Add<"swizzle_credential_reloads_total">(reloads, static_cast<double>(counts.failed), files, ReloadOutcome::kFailed);
  };
  if (load.tls.has_value()) {
    families.push_back(Single<"swizzle_tls_certificate_expiry_timestamp_seconds">(
        absl::ToDoubleSeconds(load.tls->expires - absl::UnixEpoch())));
    add(WatchedFiles::kTls, load.tls->reloads);
  }
  if (load.tokens.has_value()) add(WatchedFiles::kTokens, *load.tokens);
  if (!reloads.metric.empty()) families.push_back(std::move(reloads));
  return families;
}

}  // namespace

std::vector<prometheus::MetricFamily> CollectProcessMetrics() {
  const std::optional<ProcessStatistics> process = ReadProcessStatistics();
  if (!process.has_value()) return {};
  return {
      Single<"process_cpu_seconds_total">(process->cpu_seconds),
      Single<"process_resident_memory_bytes">(process->resident_bytes),
      Single<"process_virtual_memory_bytes">(process->virtual_bytes),
      Single<"process_start_time_seconds">(process->start_time_seconds),
      Single<"process_open_fds">(process->open_fds),
      Single<"process_max_fds">(process->max_fds),
  };
}

void GpuMetrics::Ask(std::function<std::vector<GpuMemory>()> ask) {
  const MutexLock lock(mutex_);
  ask_ = std::move(ask);
}

std::vector<prometheus::MetricFamily> GpuMetrics::Collect() const {
  const MutexLock lock(mutex_);
  if (!ask_) return {};
  prometheus::MetricFamily used = Empty<"swizzle_gpu_memory_used_bytes">();
  prometheus::MetricFamily total = Empty<"swizzle_gpu_memory_total_bytes">();
  for (const GpuMemory& gpu : ask_()) {
    Add<"swizzle_gpu_memory_used_bytes">(used, static_cast<double>(gpu.memory.used), gpu.device);
    Add<"swizzle_gpu_memory_total_bytes">(total, static_cast<double>(gpu.memory.total), gpu.device);
  }
  if (used.metric.empty()) return {};
  return {std::move(used), std::move(total)};
}

void GpuSensorMetrics::Ask(std::unique_ptr<GpuSensors> sensors) {
  const MutexLock lock(mutex_);
  sensors_ = std::move(sensors);
}

std::vector<prometheus::MetricFamily> GpuSensorMetrics::Collect(bool triton) const {
  std::vector<GpuReading> gpus;
  {
    const MutexLock lock(mutex_);
    if (sensors_ != nullptr) gpus = sensors_->Read();
  }
  std::vector<prometheus::MetricFamily> families;
  AddReadings<"swizzle_gpu_utilization_ratio">(families, gpus, &GpuReading::utilization);
  AddReadings<"swizzle_gpu_power_watts">(families, gpus, &GpuReading::power_watts);
  AddReadings<"swizzle_gpu_power_limit_watts">(families, gpus, &GpuReading::power_limit_watts);
  AddReadings<"swizzle_gpu_energy_joules_total">(families, gpus, &GpuReading::energy_joules);
  if (!triton) return families;
  AddReadings<"nv_gpu_utilization">(families, gpus, &GpuReading::utilization);
  AddReadings<"nv_gpu_memory_total_bytes">(families, gpus, &GpuReading::memory_total);
  AddReadings<"nv_gpu_memory_used_bytes">(families, gpus, &GpuReading::memory_used);
  AddReadings<"nv_gpu_power_usage">(families, gpus, &GpuReading::power_watts);
  AddReadings<"nv_gpu_power_limit">(families, gpus, &GpuReading::power_limit_watts);
  AddReadings<"nv_energy_consumption">(families, gpus, &GpuReading::energy_joules);
  return families;
}

void ClientMetrics::Ask(std::function<ClientLoad()> ask) {
  const MutexLock lock(mutex_);
  ask_ = std::move(ask);
}

std::vector<prometheus::MetricFamily> ClientMetrics::Collect() const {
  const MutexLock lock(mutex_);
  if (!ask_) return {};
  const ClientLoad load = ask_();
  std::vector<prometheus::MetricFamily> families = OfClients(load);
  for (auto& family : OfCredentials(load.credentials)) families.push_back(std::move(family));
  return families;
}

void SampledMetrics::Ask(std::function<SampledCounts()> ask) {
  const MutexLock lock(mutex_);
  ask_ = std::move(ask);
}

std::vector<prometheus::MetricFamily> SampledMetrics::Collect() const {
  const MutexLock lock(mutex_);
  if (!ask_) return {};
  const SampledCounts counts = ask_();
  return {ByLabel<"swizzle_request_log_lines_total", LineOutcome>(counts.lines),
          ByLabel<"swizzle_trace_spans_total", SpanOutcome>(counts.spans),
          Single<"swizzle_trace_export_failures_total">(static_cast<double>(counts.export_failures))};
}

}  // namespace swizzle

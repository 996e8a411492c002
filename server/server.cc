#include "server/server.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <limits>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "kernels/cpu/conv/sgemm.h"
#include "kernels/cpu/runtime/available_cpus.h"
#include "kernels/cpu/runtime/cache_domains.h"
#include "kernels/cpu/runtime/start_threads.h"
#include "kernels/cuda/ipc_memory.h"
#include "server/batching/executor_threads.h"
#include "server/memory/memory_limit.h"
#include "server/memory/memory_trim.h"
#include "server/rpc/connections.h"
#include "server/rpc/grpc_threads.h"
#include "server/shutdown_signals.h"
#include "server/telemetry/containment.h"
#include "server/telemetry/logging.h"
#include "server/threading/clock.h"

namespace swizzle {
namespace {

// Threads wait for each other by spinning: more of them than processors take a hundred times as long.
int ThreadsOf(const ServerOptions& options) {
  const int processors = AffinityCpus();
  if (options.threads > processors) {
    Log(LogLevel::kWarning, "--threads is more than the processors that this process may run on",
        {{"threads", Concat(options.threads)}, {"used", Concat(processors)}});
  }
  return options.threads > 0 ? std::min(options.threads, processors) : AvailableCpus();
}

// Open files that the server cannot begin without: its own, gRPC's, and some of a model that is loaded.
constexpr int kLeastFiles = 24;

// How long before requests are refused those who watch its health hear so.
constexpr absl::Duration kMostNotice = absl::Seconds(1);

// Threads that it starts before it has models: gRPC's, of which some wait for calls and some for its own work, and
// those of this server.
int ThreadsToStart(const ServerOptions& options) {
  constexpr int kOfGrpc = 6, kOurs = 12, kToLoad = 3, kToTakeOrders = 2, kOfHttp = 9, kOfHttpOrders = 2;
  const int64_t processors = sysconf(_SC_NPROCESSORS_CONF);
  const int64_t for_calls = std::clamp<int64_t>(processors / 2, 2, 16),
                for_work = std::clamp<int64_t>(processors, 2, 32);
  const int loading = options.model_control == ModelControl::kNone ? 0 : kToLoad;
  const int orders = options.control_address.empty() ? 0 : kToTakeOrders;
  const int http = options.http_address.empty() ? 0 : kOfHttp;
  const int http_orders = options.http_control_address.empty() ? 0 : kOfHttpOrders;
  return kOfGrpc + static_cast<int>(for_calls + for_work) + kOurs + loading + orders + http + http_orders +
         kSpareThreads;
}

// A lost GPU is left out.
std::vector<GpuMemory> MemoryOf(const std::vector<Backend*>& gpus) {
  std::vector<GpuMemory> all;
  for (const Backend* gpu : gpus) {
    if (const auto memory = gpu->memory()) all.push_back({std::string(gpu->name()), *memory});
  }
  return all;
}

int64_t MemoryLimitOf(const ServerOptions& options) {
  return options.memory_limit > 0 ? std::min(options.memory_limit, MemoryLimit()) : MemoryLimit();
}

// Readers see the whole file or none.
Status WritePortFile(const std::filesystem::path& file, const Server& server) {
  const std::filesystem::path part = file.string() + ".part";
  std::ofstream out(part);
  nlohmann::json ports = {{"grpc", server.grpc_port()}, {"metrics", server.metrics_port()}};
  if (server.http_port() != 0) ports["http"] = server.http_port();
  if (server.control_port() != 0) ports["control"] = server.control_port();
  if (server.http_control_port() != 0) ports["http_control"] = server.http_control_port();
  out << ports.dump() << "\n";
  out.close();
  std::error_code error;
  if (out) std::filesystem::rename(part, file, error);
  if (out && !error) return absl::OkStatus();
  return MakeError(StatusCode::kUnavailable, "cannot write the port file ", file.string(),
                   "; is its directory there and writable?");
}

std::string Joined(const std::vector<std::string>& texts, std::string_view by) {
  std::string joined;
  for (const std::string& text : texts) joined += Concat(joined.empty() ? "" : by, text);
  return joined;
}

StatusOr<std::unique_ptr<SharedDeviceMemory>> OpenDeviceMemoryOf(const Devices& devices, int64_t device,
                                                                 std::string_view handle) {
  const int ordinal = static_cast<int>(std::clamp<int64_t>(device, -1, std::numeric_limits<int>::max()));
  SWIZZLE_RETURN_IF_ERROR(devices.GpusOf(std::array{ordinal}).status());
  return OpenCudaIpcMemory(ordinal, handle);
}

}  // namespace

std::string KernelListing(const Backend& backend) {
  std::string text = Concat("# ", backend.device_name(), " (", backend.features_text(), ")\n");
  const std::span<const Kernel> kernels = backend.kernels();
  size_t width = 0;
  for (const Kernel& kernel : kernels) width = std::max(width, kernel.name.size());
  for (const Kernel& kernel : kernels) {
    const bool available = (kernel.required_features & ~backend.features()) == 0;
    text += Concat(kernel.name, std::string(width - kernel.name.size(), ' '), "  ", OpName(kernel.key.op), " ",
                   FormatName(kernel.key.weights), " ", DTypeName(kernel.key.weight_dtype), "  ",
                   LayoutName(kernel.key.input.layout), " -> ", LayoutName(kernel.key.output.layout),
                   available ? "" : "  (not on this machine)", "\n");
  }
  return text;
}

StatusOr<std::unique_ptr<Server>> Server::Start(const ServerOptions& options,
                                                const std::function<void()>& before_serving,
                                                const std::function<bool()>& stop,
                                                const std::function<void(const Status&)>& failed) {
  std::unique_ptr<Server> server(new Server);
  const Status opened = Contain("start the server", [&] { return server->Open(options, before_serving, stop); });
  if (opened.ok()) return server;
  failed(opened);
  return opened;
}

Status Server::Open(const ServerOptions& options, const std::function<void()>& before_serving,
                    const std::function<bool()>& stop) {
  ShareArenas(AvailableCpus());
  RaiseFileLimit();
  SWIZZLE_RETURN_IF_ERROR(CheckFiles(kLeastFiles));
  SWIZZLE_RETURN_IF_ERROR(cpu::CheckThreads(ThreadsToStart(options)));
  if (cpu::MayThreadsRunOut() && RunGrpcWorkInPlace()) {
    Log(LogLevel::kWarning, "few threads may be started, so gRPC starts none for large messages, which may be late",
        {{"limits", cpu::ThreadLimits()}});
  }
  SWIZZLE_RETURN_IF_ERROR(cpu::PrepareSgemm());
  SWIZZLE_ASSIGN_OR_RETURN(Devices devices, Devices::Open(options.device));
  devices_ = std::make_unique<Devices>(std::move(devices));
  if (!devices_->reason().empty()) {
    Log(LogLevel::kInfo, "models run on the CPU", {{"reason", devices_->reason()}});
  }
  says_goaway_ = options.says_goaway;
  SWIZZLE_RETURN_IF_ERROR(ReadCredentials(options));
  SWIZZLE_RETURN_IF_ERROR(Listen(options));
  SWIZZLE_RETURN_IF_ERROR(OpenRepository(options, stop));
  SWIZZLE_RETURN_IF_ERROR(LoadModels(options, before_serving, stop));
  KeepFreedMemory();
  if (!devices_->gpus().empty()) {
    watch_ = std::make_unique<DeviceWatch>([this] { return devices_->health(); },
                                           [this](const Status& status) { LoseDevice(status); });
  }
  return absl::OkStatus();
}

Status Server::ReadCredentials(const ServerOptions& options) {
  if (options.tls.wanted()) {
    SWIZZLE_ASSIGN_OR_RETURN(certificates_, TlsCertificates::Load(options.tls, Clock::Real().WallNow()));
  }
  if (!options.auth_tokens.empty()) {
    SWIZZLE_ASSIGN_OR_RETURN(authorization_, Authorization::Load(options.auth_tokens));
    if (!options.tls.wanted()) Log(LogLevel::kWarning, "tokens come in plain text; give --tls-cert and --tls-key");
  }
  health_.AskAboutModels(*authorization_);
  credential_watch_ = std::make_unique<CredentialWatch>(certificates_.get(), *authorization_);
  return absl::OkStatus();
}

Server::~Server() {
  Drain();
  if (metrics_ == nullptr) return;
  metrics_->ShowClientLoad(nullptr);  // what these ask goes before the metrics do
  metrics_->ShowSampled(nullptr);
  metrics_->ShowStatus("", nullptr);
}

Status Server::Listen(const ServerOptions& options) {
  SWIZZLE_ASSIGN_OR_RETURN(metrics_, NewMetrics(options.metrics_address));
  if (options.metrics_auth) metrics_->AskForTokens(*authorization_);
  metrics_->ShowGpuMemory([this] { return MemoryOf(devices_->gpus()); });
  if (!devices_->gpus().empty()) metrics_->ShowGpuSensors(OpenGpuSensors());
  if (options.triton_metrics) metrics_->ShowTritonNames();
  metrics_->SetLive(true);
  health_.SetServing(kLivenessService, true);
  PublishHealthOfAll(false);
  const int64_t files = RaiseFileLimit();
  const RpcLimits limits =
      Settle(options.rpc, MemoryLimitOf(options), options.http_address.empty() ? files : files / 2);
  service_ = std::make_unique<InferenceService>(limits);
  service_->AskAboutModels(*authorization_);
  if (limits.shares_device_memory) {
    service_->calls().shared_memory.ServeDevices(
        [this](int64_t device, std::string_view handle) { return OpenDeviceMemoryOf(*devices_, device, handle); });
  }
  StartSampling(options.sampling);
  streams_ = OpenStreams(limits.max_streams);
  slow_senders_ = std::make_unique<SlowSenders>(
      UnfinishedLimits{limits.request_timeout, UnfinishedBytes(limits), limits.max_message_bytes},
      [this](const std::string& peer) { return grpc_->TrafficOf(peer); }, service_->calls().connections, Clock::Real());
  connection_ends_ = std::make_unique<ConnectionEnds>(limits, Clock::Real());
  const auto closed = [ends = connection_ends_.get()](const ConnectionAcceptor::Closed& its) { ends->Add(its); };
  reflection_ = std::make_unique<ReflectionServices>(service_->calls());
  const std::vector<ServedService> services = {
      service_.get(),
      &health_,
      {&reflection_->v1(), grpc::reflection::v1::ServerReflection::service_full_name()},
      {&reflection_->v1alpha(), grpc::reflection::v1alpha::ServerReflection::service_full_name()}};
  SWIZZLE_ASSIGN_OR_RETURN(grpc_, GrpcListener::Start(options.grpc_address, limits, services, closed,
                                                      {certificates_.get(), {authorization_.get()}}));
  SWIZZLE_RETURN_IF_ERROR(ListenForOrders(options, limits));
  if (!options.http_address.empty()) SWIZZLE_RETURN_IF_ERROR(ListenForHttp(options.http_address, limits));
  memory_limit_ = MemoryLimitOf(options);
  if (options.response_cache_bytes > 0) {
    response_cache_ = std::make_shared<ResponseCache>(options.response_cache_bytes);
  }
  call_watch_ = std::make_unique<CallWatch>();
  StartUpkeep();
  Log(LogLevel::kInfo, "listening",
      {{"grpc_port", grpc_->port()},
       {"metrics_port", metrics_->port()},
       {"max_connections", limits.max_connections},
       {"max_inflight_bytes", limits.max_inflight_bytes},
       {"max_model_inflight_bytes", limits.max_model_inflight_bytes},
       {"transport_bytes", limits.transport_bytes},
       {"memory_limit", memory_limit_},
       {"grpc", grpc::Version()},
       {"tls", certificates_ == nullptr        ? "no"
               : options.tls.client_ca.empty() ? "yes"
                                               : "with client certificates"},
       {"tokens", authorization_->asks_for_tokens() ? "yes" : "no"},
       {"goaway", CanSayGoaway() ? "yes" : "no"}});
  return absl::OkStatus();
}

void Server::StartSampling(const SamplingOptions& options) {
  if (options.any()) {
    sampler_ = std::make_unique<RequestSampler>(options);
    service_->Sample(*sampler_);
  }
  metrics_->ShowSampled([this] { return sampler_ == nullptr ? SampledCounts() : sampler_->counts(); });
}

Status Server::OpenRepository(const ServerOptions& options, const std::function<bool()>& stop) {
  RepositoryOptions repository;
  repository.directories = options.model_repositories;
  repository.models = options.models;
  repository.control = options.model_control;
  repository.poll_interval = options.poll;
  repository.load_at_start = options.load_models;
  repository.changed = [this] { PublishReadiness(); };
  repository.ready = options.ready;
  repository.tune = options.tune;
  repository.stop = stop;
  repository.pin_threads = options.pin_threads;
  const RpcLimits& limits = service_->calls().limits;
  repository.memory = {.limit = memory_limit_,
                       .requests = limits.max_inflight_bytes + limits.transport_bytes * (http_ == nullptr ? 1 : 2) +
                                   options.response_cache_bytes};
  repository.response_cache = response_cache_;
  repository.most_of_runs = options.max_run_bytes;
  repository.plan.threads = ThreadsOf(options);
  if (options.threads == 0) repository.cpu_executors = CacheDomainCount();
  repository.plan.tuning_budget = options.tuning_budget;
  repository.plan.weight_budget = options.weight_budget;
  // Without a file it still lets models, and equal GPUs, share what was measured for one of them.
  tuning_cache_ = std::make_unique<TuningCache>(options.tuning_cache, devices_->main());
  const Status& status = tuning_cache_->status();
  if (!status.ok()) Log(LogLevel::kWarning, "tuning cache ignored", {{"reason", std::string(status.message())}});
  repository.plan.tuning_cache = tuning_cache_.get();
  SWIZZLE_ASSIGN_OR_RETURN(repository_, NewModelRepository(repository, *devices_, *metrics_));
  return absl::OkStatus();
}

Status Server::LoadModels(const ServerOptions& options, const std::function<void()>& before_serving,
                          const std::function<bool()>& stop) {
  bool serving = false, ready = false, port_file = options.port_file.empty();
  Status written;
  const auto publish = [&](bool last) {
    const std::vector<ModelStatus> models = repository_->List();
    const bool any = std::ranges::any_of(models, [](const auto& model) { return model.state == ModelState::kReady; });
    if ((any || last) && !std::exchange(serving, true)) before_serving();
    ready = PublishReadiness();
    metrics_->SetStarted(ready || last);
    if ((ready || last) && !std::exchange(port_file, true)) {
      written = WritePortFile(options.port_file, *this);
    }
  };
  PublishReadiness();
  service_->Serve(*repository_);
  if (control_service_ != nullptr) control_service_->Serve(*repository_);
  repository_->Load([&] { publish(false); });
  publish(true);
  if (!ready && !stop())
    Log(LogLevel::kError, "not ready", {{"reasons", Joined(repository_->readiness().reasons, "; ")}});
  return written;
}

// A model's name is a service of its own, unless it is one of the server's.
void Server::PublishHealth(const std::string& model, bool serving) {
  if (model != kLivenessService && model != kInferenceService) health_.SetServing(model, serving);
}

void Server::PublishHealthOfAll(bool serving) {
  for (const char* service : {"", kInferenceService}) health_.SetServing(service, serving);
}

bool Server::PublishReadiness() {
  const MutexLock lock(readiness_mutex_);
  if (shutting_down_) return false;
  const std::vector<ModelStatus> models = repository_->List();
  const Readiness readiness = repository_->readiness();
  const std::map<std::string, bool> by_name = ServingByName(models);
  for (auto& [name, serves] : published_) serves = false;  // unless it is still there
  for (const auto& [name, serves] : by_name) published_[name] = serves;
  for (const auto& [name, serves] : published_) PublishHealth(name, serves);
  PublishHealthOfAll(readiness.ready);
  metrics_->SetReady(readiness.ready, Joined(readiness.reasons, "\n") + (readiness.reasons.empty() ? "" : "\n"));
  if (!readiness.ready || std::exchange(ready_, true)) return readiness.ready;
  const auto serving = std::ranges::count_if(by_name, [](const auto& model) { return model.second; });
  Log(LogLevel::kInfo, "ready", {{"models", serving}, {"device", devices_->main().device_name()}});
  return true;
}

// What computes nothing any more is not ready; liveness says no too, so that Kubernetes restarts the process.
void Server::LoseDevice(const Status& status) {
  Log(LogLevel::kError, "device lost", {{"error", std::string(status.message())}});
  AnnounceShutdown();
  TellWatches();
  device_lost_ = true;
  PublishLife();
}

int RunServer(const ServerOptions& options) {
  ShutdownSignals* signals = nullptr;
  const auto failed = [](const Status& status) {
    Log(LogLevel::kError, "cannot start", {{"error", std::string(status.message())}});
    LeaveProcess(kCannotStart);
  };
  const Status handled = Contain("take signals", [&] {
    signals = new ShutdownSignals;
    return absl::OkStatus();
  });
  if (!handled.ok()) {
    failed(handled);
    return kCannotStart;
  }
  StatusOr<std::unique_ptr<Server>> server = Server::Start(
      options, [signals] { signals->StartServing(); }, [signals] { return signals->asked(); }, failed);
  if (!server.ok()) return kCannotStart;
  signals->Wait();
  Log(LogLevel::kInfo, "draining", {{"delay_ms", absl::ToInt64Milliseconds(options.drain_delay)}});
  const absl::Duration notice = std::min(kMostNotice, options.drain_delay / 2);
  (*server)->AnnounceShutdown(true);
  absl::SleepFor(options.drain_delay - notice);
  (*server)->TellWatches();
  absl::SleepFor(notice);
  (*server)->Drain([signals](absl::Duration most, ExitCode late) { signals->LeaveWithin(most, late); });
  Log(LogLevel::kInfo, "stopped");
  return LeaveProcess(kDrained);
}

}  // namespace swizzle

// The server's life: listen, load, serve, drain.
//
// Readiness: "" of grpc.health.v1, ServerReady and /readyz say yes once the models serve that --ready names (all of the
// repository), until a shutdown is announced. A model serves as soon as it is loaded, whatever becomes of others. Which
// ones don't, and why, is in /readyz, the log, and the status of their requests.
#ifndef SWIZZLE_SERVER_SERVER_H_
#define SWIZZLE_SERVER_SERVER_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "kernels/backend/backend.h"
#include "kernels/base/mutex.h"
#include "kernels/base/status.h"
#include "kernels/devices.h"
#include "model_loader/plan/choose/tuning_cache.h"
#include "server/credential_watch.h"
#include "server/device_watch.h"
#include "server/http/http_server.h"
#include "server/memory/memory_trim.h"
#include "server/options.h"
#include "server/repository/model_repository.h"
#include "server/rest/rest_service.h"
#include "server/rpc/call_watch.h"
#include "server/rpc/connection_ends.h"
#include "server/rpc/control_service.h"
#include "server/rpc/grpc_listener.h"
#include "server/rpc/health.h"
#include "server/rpc/inference_service.h"
#include "server/rpc/reflection.h"
#include "server/security/authorization.h"
#include "server/security/tls_certificates.h"
#include "server/shutdown_signals.h"
#include "server/telemetry/metrics.h"
#include "server/threading/periodic.h"
#include "server/tracing/request_sampler.h"

namespace swizzle {

// One line a kernel: its name, what it computes, in which layouts, and whether this machine can run it.
std::string KernelListing(const Backend& backend);

// Thread-compatible; the calls that it serves are concurrent.
class Server {
 public:
  // Listens first, so that liveness can be probed; then loads every model, one after the other, until `stop` says that
  // no more are wanted. Calls `before_serving` once, as the first of them serves, and writes the port file once it
  // is ready, or no model is left to load. UNAVAILABLE if an address cannot be had, NOT_FOUND if the repository is not
  // there.
  // `failed` is called with an error before what was started is taken down: that may take for ever, where gRPC has got
  // some of its threads alone.
  static StatusOr<std::unique_ptr<Server>> Start(
      const ServerOptions& options, const std::function<void()>& before_serving = [] {},
      const std::function<bool()>& stop = [] { return false; },
      const std::function<void(const Status&)>& failed = [](const Status&) {});

  // Drains.
  ~Server();

  int grpc_port() const { return grpc_->port(); }
  int metrics_port() const { return metrics_->port(); }
  int http_port() const { return http_ == nullptr ? 0 : http_->port(); }                          // 0: there is none
  int control_port() const { return control_ == nullptr ? 0 : control_->port(); }                 // 0: there is none
  int http_control_port() const { return http_control_ == nullptr ? 0 : http_control_->port(); }  // 0: there is none
  const ModelRepository& repository() const { return *repository_; }
  const Metrics& metrics() const { return *metrics_; }

  // Says not ready from now on, and goes on serving. With `later`, those who watch its health hear so from TellWatches.
  void AnnounceShutdown(bool later = false);
  void TellWatches() { health_.TellWatches(); }

  // Refuses new requests, asks clients to connect elsewhere, where gRPC can (rpc/connections.h), waits for what is
  // queued and running, and closes the connections: for a second at most it waits for peers that don't answer. Calls
  // that have not come whole end UNAVAILABLE. Liveness says yes until nothing runs any more.
  // Before each step that waits for others, and whenever requests have ended, `limit` is told within how long it is
  // called again, or all is done; and what the process may end with if it isn't. It must not block.
  using StepLimit = std::function<void(absl::Duration most, ExitCode late)>;
  void Drain(const StepLimit& limit = [](absl::Duration, ExitCode) {});

 private:
  Server() = default;
  Status Open(const ServerOptions& options, const std::function<void()>& before_serving,
              const std::function<bool()>& stop);
  Status ReadCredentials(const ServerOptions& options);
  Status Listen(const ServerOptions& options);
  Status ListenForHttp(const std::string& address, const RpcLimits& limits);
  Status ListenForOrders(const ServerOptions& options, const RpcLimits& limits);
  Status OpenRepository(const ServerOptions& options, const std::function<bool()>& stop);
  Status LoadModels(const ServerOptions& options, const std::function<void()>& before_serving,
                    const std::function<bool()>& stop);
  bool PublishReadiness();  // returns it
  void PublishHealth(const std::string& model, bool serving);
  void PublishHealthOfAll(bool serving);

  void LoseDevice(const Status& status);
  void StartSampling(const SamplingOptions& options);
  void StartUpkeep();
  void PublishLife();
  // Ends those with too many calls open, where these are counted, and those that cancel too many.
  void EndGreedyConnections(bool counts_calls);
  void EndSlowSenders();
  ClientLoad LoadOfClients(const MemoryTrim& trim) const;

  std::unique_ptr<TlsCertificates> certificates_;  // null: no TLS
  std::unique_ptr<Authorization> authorization_ = std::make_unique<Authorization>();
  std::unique_ptr<CredentialWatch> credential_watch_;
  std::unique_ptr<Devices> devices_;
  std::unique_ptr<TuningCache> tuning_cache_;
  std::shared_ptr<ResponseCache> response_cache_;  // null: no answers are kept
  std::unique_ptr<Metrics> metrics_;
  Mutex readiness_mutex_;  // of what publishes it: threads that load models, and those that end them
  bool ready_ ABSL_GUARDED_BY(readiness_mutex_) = false;                     // as published
  std::map<std::string, bool> published_ ABSL_GUARDED_BY(readiness_mutex_);  // which models serve
  bool shutting_down_ ABSL_GUARDED_BY(readiness_mutex_) = false;             // and no longer published
  std::unique_ptr<ModelRepository> repository_;                              // its threads use the above
  HealthService health_;
  std::unique_ptr<RequestSampler> sampler_;  // null: no request is logged or traced; before the service that asks it
  std::unique_ptr<InferenceService> service_;
  std::unique_ptr<ReflectionServices> reflection_;
  std::unique_ptr<ControlService> control_service_;  // null where there are no orders
  std::unique_ptr<ConnectionEnds> connection_ends_;
  std::unique_ptr<DeviceWatch> watch_;     // null where models run on the CPU
  std::unique_ptr<GrpcListener> grpc_;     // after the services that it calls, and who hears of closed connections
  std::unique_ptr<GrpcListener> control_;  // likewise; null where there are no orders by gRPC
  std::unique_ptr<RestService> rest_, rest_control_;  // null, as http_ and http_control_, where there is no such HTTP
  std::unique_ptr<HttpServer> http_, http_control_;
  bool says_goaway_ = true;
  std::unique_ptr<CallWatch> call_watch_;
  std::atomic<bool> live_ = true, device_lost_ = false;  // live_: as published
  int64_t memory_limit_ = 0;                             // of the process
  OpenStreams streams_{0};                               // the watch's
  std::unique_ptr<SlowSenders> slow_senders_;            // the greed watch's
  std::atomic<int64_t> slow_senders_ended_ = 0;
  std::unique_ptr<Periodic> upkeep_, greed_watch_;  // last: they look after what stands above
};

// Runs a server until SIGTERM or SIGINT, then drains it, and leaves the process (LeaveProcess), or returns its exit
// code; server/shutdown_signals.h has them all, and what each signal does. Call it from main, before any other thread
// runs.
int RunServer(const ServerOptions& options);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_SERVER_H_

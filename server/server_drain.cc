// How a server ends: it says so, finishes what it has taken, and closes its connections.
#include "absl/time/clock.h"
#include "server/rpc/connections.h"
#include "server/server.h"
#include "server/threading/clock.h"

namespace swizzle {
namespace {

// How long responses that are written may take to reach their clients at the end.
constexpr absl::Duration kFlushTime = absl::Seconds(5);

// How long connections without calls may take to close: one that answers does so in a round trip.
constexpr absl::Duration kFarewell = absl::Milliseconds(400);

// How long a drain waits for another request to end, and at most for connections to: gRPC has no limit of its own, and
// where it lacks threads waits for ever.
constexpr absl::Duration kMostSilence = absl::Minutes(1), kMostFarewell = absl::Seconds(3);

// How long traces that wait for their collector may take at the end.
constexpr absl::Duration kTraceTime = absl::Seconds(1);

// How long the tuner may take to end what it measures, or saves.
constexpr absl::Duration kTunerTime = absl::Seconds(1);

}  // namespace

void Server::AnnounceShutdown(bool later) {
  if (later) health_.HoldWatches();
  {
    const MutexLock lock(readiness_mutex_);
    shutting_down_ = true;
  }
  service_->AnnounceShutdown();
  PublishHealthOfAll(false);
  if (repository_ != nullptr) {
    for (const ModelStatus& model : repository_->List()) PublishHealth(model.name, false);
  }
  metrics_->SetReady(false, "the server is shutting down\n");
  if (repository_ != nullptr) repository_->StopTuning();
}

void Server::Drain(const StepLimit& limit) {
  if (grpc_ == nullptr || upkeep_ == nullptr) return;  // it did not start, or is drained
  const auto requests_end = [&] { limit(kMostSilence, kLeftUndrained); };
  requests_end();
  watch_ = nullptr;
  AnnounceShutdown();
  TellWatches();
  service_->RefuseInferences();
  for (HttpServer* const http : {http_.get(), http_control_.get()}) {
    if (http != nullptr) http->Drain();
  }
  if (repository_ != nullptr) repository_->StopLoading();
  const bool told = says_goaway_ && SendGoaways(grpc_->server());
  if (repository_ != nullptr) repository_->Drain(requests_end);
  limit(kFlushTime + kMostFarewell, kDrained);
  health_.EndWatches();
  service_->AwaitCalls(kFlushTime);
  if (repository_ != nullptr) repository_->AwaitTuner(kTunerTime);
  // Only now, since probes connect anew each time.
  grpc_->StopAccepting();
  if (http_ != nullptr) http_->Shutdown();
  limit(kMostFarewell, kDrained);
  if (told && SendGoaways(grpc_->server())) {
    const Instant leave = Clock::Real().Now() + kFarewell;
    while (grpc_->open_connections() > 0 && Clock::Real().Now() < leave) absl::SleepFor(absl::Milliseconds(1));
  }
  for (GrpcListener* const listener : {grpc_.get(), control_.get()}) {
    if (listener == nullptr) continue;
    listener->EndConnections();
    listener->Shutdown(kFarewell);
  }
  if (http_control_ != nullptr) http_control_->Shutdown();
  if (sampler_ != nullptr) {
    limit(kTraceTime + kMostFarewell, kDrained);
    sampler_->Stop(kTraceTime);
  }
  upkeep_ = nullptr;
  greed_watch_ = nullptr;
}

}  // namespace swizzle

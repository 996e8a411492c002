// How a server looks after itself, again and again: for clients that take too much, memory to give back, and whether it
// lives.
#include <utility>

#include "kernels/cpu/runtime/start_threads.h"
#include "kernels/measure/loop_clock.h"
#include "server/memory/memory_trim.h"
#include "server/rpc/connections.h"
#include "server/rpc/status_json.h"
#include "server/server.h"
#include "server/status_page/status_page.h"
#include "server/telemetry/logging.h"
#include "server/threading/clock.h"

namespace swizzle {
namespace {

// How often the server looks after itself, and for clients that take too much of it: in a second one opens as many
// calls as a gigabyte has room for. Looking takes a tenth of a processor at most: many connections take milliseconds.
// What it waits for one is not counted: beside a client that takes all, it would look twice a second.
constexpr absl::Duration kUpkeepInterval = absl::Milliseconds(250), kGreedInterval = absl::Milliseconds(10);
constexpr int kGreedRest = 9;

// Connections on which nothing comes open no calls once gRPC has read what had come, and to ask it how many there are
// costs more than all else that an idle server does.
class GreedPace {
 public:
  // Says whether calls are to be counted: whenever something may have come, and else as often as upkeep is.
  bool CountsCalls(Instant now, const ConnectionAcceptor::Activity& activity) {
    if (std::exchange(seen_, activity) != activity || !activity.is_counted) changed_ = now;
    if (now - changed_ >= kReadIn && now - counted_ < kUpkeepInterval) return false;
    counted_ = now;
    return true;
  }

 private:
  static constexpr absl::Duration kReadIn = absl::Milliseconds(100);

  ConnectionAcceptor::Activity seen_;
  Instant changed_, counted_;
};

}  // namespace

void Server::StartUpkeep() {
  auto trim = std::make_shared<MemoryTrim>([this] { return service_->calls().inflight.held(); });
  metrics_->ShowClientLoad([this, trim] { return LoadOfClients(*trim); });
  metrics_->ShowStatus(
      StatusPage(), [this] { return StatusJson(service_->calls().repository(), devices_->main(), devices_->gpus()); });
  upkeep_ = std::make_unique<Periodic>(kUpkeepInterval, [this, trim] {
    service_->EndLateResponses();
    service_->EndAgedStreams([this](const std::string& peer) { return grpc_->Accepted(peer); });
    connection_ends_->Look();
    trim->Look();
    call_watch_->Look();
    PublishLife();
  });
  greed_watch_ = std::make_unique<Periodic>(
      kGreedInterval, [this, pace = GreedPace(), next = Instant(), unhurried = Instant()]() mutable {
        if (!grpc_->AwaitConnection()) return;
        const Instant start = Clock::Real().Now();
        if (start < next) return;
        const absl::Duration computed = ThreadTime();
        const ConnectionAcceptor::Activity activity = grpc_->activity();
        EndGreedyConnections(pace.CountsCalls(start, activity));
        if (slow_senders_->IsUrgent(activity.received) || start >= unhurried) {
          EndSlowSenders();
          unhurried = start + kUpkeepInterval;
        }
        next = Clock::Real().Now() + (ThreadTime() - computed) * kGreedRest;
      });
}

void Server::EndGreedyConnections(bool counts_calls) {
  std::vector<std::string> peers = counts_calls ? streams_.FindGreedy() : std::vector<std::string>();
  for (std::string& peer : service_->TakeGreedyPeers()) peers.push_back(std::move(peer));
  for (const std::string& peer : peers) {
    if (!grpc_->EndConnection(peer)) continue;  // what it had open is still being thrown away
    Log(LogLevel::kWarning, "connection ended: more calls open or cancelled than a client may", {{"peer", peer}});
  }
}

void Server::EndSlowSenders() {
  for (const std::string& peer : slow_senders_->Find()) {
    if (!grpc_->EndConnection(peer)) continue;
    ++slow_senders_ended_;
    Log(LogLevel::kWarning, "connection ended: requests did not come whole in the time, or the bytes, for it",
        {{"peer", peer}});
  }
}

// Whoever cannot connect any more, or gets no answer, is not helped by a process that lives.
void Server::PublishLife() {
  const bool accepting = grpc_->accepting(), answered = call_watch_->answered();
  const bool live = accepting && answered && !device_lost_;
  if (live_.exchange(live) == live) return;
  if (!accepting) Log(LogLevel::kError, "no connection can be accepted any more", {{"grpc_port", grpc_->port()}});
  if (!answered) Log(LogLevel::kError, "calls are not taken up", {{"thread_limits", cpu::ThreadLimits()}});
  if (live) Log(LogLevel::kInfo, "calls are taken up again");
  health_.SetServing(kLivenessService, live);
  metrics_->SetLive(live);
}

}  // namespace swizzle

// How a server looks after itself, again and again: for clients that take too much, memory to give back, and whether it
// lives.
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
  greed_watch_ = std::make_unique<Periodic>(kGreedInterval, [this, next = Instant(), unhurried = Instant()]() mutable {
    const Instant start = Clock::Real().Now();
    if (start < next) return;
    const absl::Duration computed = ThreadTime();
    EndGreedyConnections();
    if (slow_senders_->IsUrgent(grpc_->ReceivedBytes()) || start >= unhurried) {
      EndSlowSenders();
      unhurried = start + kUpkeepInterval;
    }
    next = Clock::Real().Now() + (ThreadTime() - computed) * kGreedRest;
  });
}

void Server::EndGreedyConnections() {
  std::vector<std::string> peers = streams_.FindGreedy();
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

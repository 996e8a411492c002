#include "server/rpc/greedy_connections.h"

#include <algorithm>
#include <utility>

namespace swizzle {
namespace {

// What comes in the time for a request on a connection that sends none: pings, windows, headers.
constexpr int64_t kQuietBytes = 4 << 10;

// What comes with a message, whole or sent: its headers, and it too where nobody counts it for its size. What comes
// with bytes: TLS's records, and the windows that a client opens by 26 bytes for some 16 KiB of an answer that it
// reads.
constexpr int64_t kBytesOfMessage = ConnectionBytes::kLeastCounted;
constexpr int64_t kBytesOfRecords = 64, kBytesOfWindows = 256;  // one of so many

}  // namespace

void CancelledCalls::Add(const std::string& peer) {
  const Instant now = clock_.Now();
  const MutexLock lock(mutex_);
  if (now - second_ > absl::Seconds(1)) {
    second_ = now;
    calls_.clear();
  }
  if (++calls_[peer] == most_ + 1) greedy_.push_back(peer);
}

std::vector<std::string> CancelledCalls::TakeGreedy() {
  const MutexLock lock(mutex_);
  return std::exchange(greedy_, {});
}

void UnfinishedCalls::Begin(const std::string& peer) {
  const MutexLock lock(mutex_);
  if (++calls_[peer] == most_ + 1) greedy_.push_back(peer);
}

void UnfinishedCalls::End(const std::string& peer) {
  const MutexLock lock(mutex_);
  const auto found = calls_.find(peer);
  if (--found->second == 0) calls_.erase(found);
}

std::vector<std::string> UnfinishedCalls::TakeGreedy() {
  const MutexLock lock(mutex_);
  return std::exchange(greedy_, {});
}

std::string GreedyPeer(const std::string& socket_json, int64_t most) {
  ChannelzConnection connection = ParseConnection(socket_json);
  return connection.streams.open() > most ? std::move(connection.peer) : "";
}

std::vector<std::string> OpenStreams::FindGreedy() {
  std::vector<std::string> greedy;
  walk_.GoOn(most_, [&](int64_t, const std::string& text) {
    std::string peer = GreedyPeer(text, most_);
    if (!peer.empty()) greedy.push_back(std::move(peer));
  });
  return greedy;
}

std::vector<std::string> SlowSenders::Find() {
  std::vector<std::string> slow;
  walk_.GoOn(0, [&](int64_t connection, const std::string& text) {
    std::string peer = Look(connection, text);
    if (!peer.empty()) slow.push_back(std::move(peer));
  });
  const Instant now = clock_.Now();
  std::erase_if(progress_, [&](const auto& entry) { return entry.second.looked_at + limits_.time < now; });
  return slow;
}

bool SlowSenders::IsUrgent(int64_t received_bytes) {
  const int64_t step = limits_.bytes / 4;
  if (received_bytes >= urgent_at_) {
    urgent_at_ = received_bytes + step;
    return true;
  }
  urgent_at_ = std::min(urgent_at_, received_bytes + step);  // connections have been closed
  return false;
}

std::string SlowSenders::Look(int64_t connection, const std::string& text) {
  ChannelzConnection its = ParseConnection(text);
  // Those that failed had a message, or will never have one.
  const int64_t unfinished = its.streams.started - its.streams.failed - its.messages_received;
  Progress& progress = progress_[connection];
  const Instant now = progress.looked_at = clock_.Now();
  progress.unfinished = std::min(progress.unfinished, unfinished);
  if (its.streams.open() == 0) progress.unfinished = unfinished;
  if (progress.account == nullptr) progress.account = accounts_.Of(its.peer);
  const Seen seen = {its, traffic_of_(its.peer), progress.account->whole.load(std::memory_order_relaxed)};
  const Seen before = std::exchange(progress.seen, seen);
  const bool first = !std::exchange(progress.known, true);
  const bool came = first || before.its.messages_received != its.messages_received;
  const bool went = before.its.messages_sent != its.messages_sent;  // who reads sends some bytes
  const int64_t bytes = seen.traffic.received;
  if (!first) progress.accounted = std::min(bytes, progress.accounted + Accountable(before, seen));
  // A stream that had messages before may be sending half of another: only the bytes tell.
  const bool quiet = unfinished <= progress.unfinished && bytes - progress.bytes <= kQuietBytes;
  if (came || went || quiet) progress.since = now;
  const bool nothing_open = its.streams.open() == 0 || (quiet && now - progress.counted >= limits_.time);
  if (first || nothing_open) progress.accounted = bytes;
  if (came || went || nothing_open) {
    progress.bytes = bytes;
    progress.counted = now;
  }
  const bool slow = now - progress.since >= limits_.time || bytes - progress.accounted > limits_.bytes;
  return slow ? std::move(its.peer) : "";
}

// How much may have come in between without being part of a message that is not whole. Of streams that ended without
// one, nobody knows how much of it had come: gRPC has let go of it.
int64_t SlowSenders::Accountable(const Seen& before, const Seen& now) const {
  const int64_t received = now.its.messages_received - before.its.messages_received;
  const int64_t sent = now.its.messages_sent - before.its.messages_sent;
  const int64_t succeeded = now.its.streams.succeeded - before.its.streams.succeeded;
  const int64_t failed = now.its.streams.failed - before.its.streams.failed;
  const int64_t whole = now.whole - before.whole + (received + sent) * kBytesOfMessage +
                        (now.traffic.sent - before.traffic.sent) / kBytesOfWindows;
  return whole + whole / kBytesOfRecords + (failed + std::max<int64_t>(succeeded - received, 0)) * limits_.message;
}

}  // namespace swizzle

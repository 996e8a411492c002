#include "server/rpc/connection_ends.h"

#include "server/rpc/grpc_listener.h"

namespace swizzle {
namespace {

constexpr absl::Duration kBetweenLooks = absl::Seconds(1);
constexpr absl::Duration kForgotten = absl::Minutes(15);

// What opens HTTP/2: the preface and empty SETTINGS.
constexpr int64_t kOpeningBytes = 24 + 9;

// gRPC draws each connection's age from a tenth around the limit; times seen from outside are late by a look.
constexpr double kNearly = 0.9;

bool Reached(absl::Duration time, absl::Duration limit) {
  return limit > absl::ZeroDuration() && time >= limit * kNearly;
}

}  // namespace

ConnectionEnd WhyEnded(const ConnectionAcceptor::Closed& closed, absl::Duration without_call, bool in_books,
                       const RpcLimits& limits) {
  const bool counts_bytes = !closed.peer.starts_with("unix");
  const bool opened = in_books && (!counts_bytes || closed.received >= kOpeningBytes);
  if (!opened && Reached(closed.age, limits.handshake_timeout)) {
    return ConnectionEnd::kHandshake;
  }
  // Who lives answers a ping at once.
  const absl::Duration silent = limits.keepalive_time + limits.keepalive_timeout / 2;
  if (limits.keepalive_time > absl::ZeroDuration() && closed.silence >= silent) return ConnectionEnd::kKeepalive;
  if (Reached(closed.age, limits.connection_age)) return ConnectionEnd::kAge;
  return Reached(without_call, limits.connection_idle) ? ConnectionEnd::kIdle : ConnectionEnd::kOther;
}

void ConnectionEnds::Look() {
  const Instant now = clock_.Now();
  const MutexLock lock(mutex_);
  if (now < looked_ + kBetweenLooks) return;
  looked_ = now;
  walk_.GoOn(-1, [&](int64_t, const std::string& text) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    ChannelzConnection its = ParseConnection(text);
    const auto [known, is_new] = calls_.try_emplace(AcceptedPeer(std::move(its.peer)), Calls{0, now, now});
    Calls& calls = known->second;
    if (its.streams.open() > 0 || its.streams.started != calls.started) calls.last = now;
    calls.started = its.streams.started;
    calls.looked_at = now;
  });
  // Those that were seen once more after they had been closed.
  if (now < pruned_ + kForgotten) return;
  pruned_ = now;
  std::erase_if(calls_, [&](const auto& entry) { return entry.second.looked_at + kForgotten < now; });
}

void ConnectionEnds::Add(const ConnectionAcceptor::Closed& closed) {
  const Instant now = clock_.Now();
  const MutexLock lock(mutex_);
  const auto found = calls_.find(closed.peer);
  const bool in_books = found != calls_.end();
  // Who never had a call may have been seen for the first time long after it came.
  const bool had_calls = in_books && found->second.started > 0;
  const absl::Duration without_call = had_calls ? now - found->second.last : closed.age;
  if (in_books) calls_.erase(found);
  if (!closed.ended) ++counts_[static_cast<size_t>(WhyEnded(closed, without_call, in_books, limits_))];
}

ConnectionEnds::Counts ConnectionEnds::counts() const {
  const MutexLock lock(mutex_);
  return counts_;
}

}  // namespace swizzle

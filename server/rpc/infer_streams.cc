#include "server/rpc/infer_streams.h"

#include <algorithm>
#include <utility>

namespace swizzle {
namespace {

// The least part of a connection's age at which gRPC takes it to be of age.
constexpr double kNearly = 0.9;

Status ShuttingDown() { return MakeError(StatusCode::kUnavailable, "the server is shutting down"); }

}  // namespace

Status InferStreams::Add(Stream& stream, std::string peer, Instant now) {
  const MutexLock lock(mutex_);
  if (ending_) return ShuttingDown();
  open_.emplace(&stream, Open{std::move(peer), now, std::nullopt});
  return absl::OkStatus();
}

void InferStreams::Remove(Stream& stream) {
  const MutexLock lock(mutex_);
  open_.erase(&stream);
}

void InferStreams::EndAll() {
  const MutexLock lock(mutex_);
  ending_ = true;
  for (const auto& [stream, open] : open_) stream->EndInOrder(ShuttingDown());
}

void InferStreams::EndAged(const RpcLimits& limits, Instant now,
                           absl::FunctionRef<std::optional<Instant>(const std::string& peer)> accepted) {
  if (limits.connection_age <= absl::ZeroDuration()) return;
  const MutexLock lock(mutex_);
  for (auto& [stream, open] : open_) {
    if (!open.end) {
      const Instant connected = accepted(open.peer).value_or(open.begun);
      open.end = std::max(connected + limits.connection_age * kNearly, open.begun + limits.connection_grace / 2);
    }
    if (*open.end > now) continue;
    stream->EndInOrder(
        MakeError(StatusCode::kUnavailable, "the connection is as old as it may be; open another stream"));
  }
}

}  // namespace swizzle

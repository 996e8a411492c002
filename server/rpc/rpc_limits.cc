#include "server/rpc/rpc_limits.h"

#include <algorithm>

namespace swizzle {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

// Descriptors for everything but connections: files, devices, listeners, threads' own, and probes'.
constexpr int64_t kOtherFiles = 256;
constexpr int64_t kMostConnections = 4096;

}  // namespace

RpcLimits Settle(RpcLimits limits, int64_t memory, int64_t files) {
  if (limits.max_inflight_bytes == 0) limits.max_inflight_bytes = std::clamp(memory / 8, 64 * kMiB, 4096 * kMiB);
  if (limits.max_model_inflight_bytes == 0) limits.max_model_inflight_bytes = limits.max_inflight_bytes / 4 * 3;
  if (limits.max_connection_inflight_bytes == 0) {
    limits.max_connection_inflight_bytes = limits.max_model_inflight_bytes / 2;
  }
  if (limits.transport_bytes == 0) limits.transport_bytes = std::clamp(memory / 8, 64 * kMiB, 2048 * kMiB);
  const int64_t room = std::max(files - kOtherFiles, files / 2);
  const int64_t wanted = limits.max_connections == 0 ? kMostConnections : limits.max_connections;
  limits.max_connections = static_cast<int>(std::clamp<int64_t>(wanted, 1, std::max<int64_t>(room, 1)));
  return limits;
}

int64_t UnfinishedBytes(const RpcLimits& settled) {
  return std::max(settled.transport_bytes / 3, settled.max_message_bytes / 4 * 5);
}

}  // namespace swizzle

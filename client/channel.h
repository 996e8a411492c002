// The gRPC channel that a client's options ask for. Functions only.
#ifndef SWIZZLE_CLIENT_CHANNEL_H_
#define SWIZZLE_CLIENT_CHANNEL_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/client.h"
#include "grpcpp/grpcpp.h"

namespace swizzle::client {

// What gRPC calls the address: a list becomes "ipv4:" or "ipv6:" and its numbers. INVALID_ARGUMENT for a list of
// anything else: gRPC looks up one name, which may have several addresses.
absl::StatusOr<std::string> TargetOf(const std::string& address);

// JSON, as gRPC reads it: how calls are balanced.
std::string ServiceConfigOf(const ClientOptions& options);

// Where the address is INVALID_ARGUMENT, one that fails every call.
std::shared_ptr<grpc::Channel> NewChannel(const ClientOptions& options);

}  // namespace swizzle::client

#endif  // SWIZZLE_CLIENT_CHANNEL_H_

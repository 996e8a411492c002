// Headers of a call, which gRPC calls its metadata. Functions only.
#ifndef SWIZZLE_SERVER_RPC_REQUEST_HEADERS_H_
#define SWIZZLE_SERVER_RPC_REQUEST_HEADERS_H_

#include <grpcpp/grpcpp.h>

#include <string_view>

namespace swizzle {

// The first of that name, which is in lower case; empty where there is none. gRPC collects the headers of a call when
// it is first asked for them: not for two threads at once.
inline std::string_view HeaderOf(const grpc::CallbackServerContext& context, std::string_view name) {
  const auto& headers = context.client_metadata();
  const auto found = headers.find(grpc::string_ref(name.data(), name.size()));
  if (found == headers.end()) return {};
  return {found->second.data(), found->second.size()};
}

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_RPC_REQUEST_HEADERS_H_

#include "client/channel.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace swizzle::client {
namespace {

bool IsList(const std::string& address) {
  return address.find(',') != std::string::npos && address.find("://") == std::string::npos &&
         address.rfind("ipv4:", 0) != 0 && address.rfind("ipv6:", 0) != 0 && address.rfind("unix", 0) != 0;
}

// "ipv4" or "ipv6" for a number and a port; empty for anything else.
std::string SchemeOf(const std::string& server) {
  const size_t colon = server.rfind(':');
  uint32_t port = 0;
  if (colon == std::string::npos || !absl::SimpleAtoi(server.substr(colon + 1), &port) || port > 65535) return "";
  const std::string host = server.substr(0, colon);
  in6_addr parsed;
  if (inet_pton(AF_INET, host.c_str(), &parsed) == 1) return "ipv4";
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed && inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &parsed) == 1) return "ipv6";
  return "";
}

// gRPC takes the largest number for "never".
int Milliseconds(absl::Duration time) {
  constexpr int kMost = std::numeric_limits<int>::max();
  if (time <= absl::ZeroDuration()) return kMost;
  return static_cast<int>(std::clamp<int64_t>(absl::ToInt64Milliseconds(time), 1, kMost));
}

std::shared_ptr<grpc::ChannelCredentials> NewCredentials(const ClientOptions& options) {
  if (!options.tls) return grpc::InsecureChannelCredentials();
  return grpc::SslCredentials({options.tls_ca, options.tls_key, options.tls_certificate});
}

bool IsBalanced(const ClientOptions& options) { return options.round_robin || IsList(options.address); }

}  // namespace

absl::StatusOr<std::string> TargetOf(const std::string& address) {
  if (!IsList(address)) return address;
  std::vector<std::string> servers = absl::StrSplit(address, ',');
  std::string common;
  for (std::string& server : servers) {
    server = std::string(absl::StripAsciiWhitespace(server));
    const std::string scheme = SchemeOf(server);
    if (scheme.empty() || (!common.empty() && scheme != common)) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", address, "' is no list of servers: '", server,
                       "' should be a number and a port, of the same kind as the others, as in "
                       "10.0.0.1:8001,10.0.0.2:8001; or give one name that has all the addresses"));
    }
    common = scheme;
  }
  return absl::StrCat(common, ":", absl::StrJoin(servers, ","));
}

std::string ServiceConfigOf(const ClientOptions& options) {
  if (!IsBalanced(options)) return "{}";
  return R"({"loadBalancingConfig":[{"round_robin":{}}],"healthCheckConfig":{"serviceName":""}})";
}

std::shared_ptr<grpc::Channel> NewChannel(const ClientOptions& options) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(options.max_message_bytes);
  // Channels to one address otherwise share one connection.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // A server that is just starting is found soon after it listens.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
  arguments.SetInt(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, Milliseconds(options.min_resolution_interval));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(options.keepalive_time));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Milliseconds(options.keepalive_timeout));
  // By which newer versions go, and by default wait for a minute.
  arguments.SetInt("grpc.http2.ping_timeout_ms", Milliseconds(options.keepalive_timeout));
  // gRPC otherwise stops to ask when it has asked twice and sent nothing else, as on a stream that only listens.
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  if (IsBalanced(options)) arguments.SetServiceConfigJSON(ServiceConfigOf(options));
  if (IsList(options.address)) {  // which is no name of a server, as calls have to give one
    const std::string first = options.address.substr(0, options.address.find(','));
    arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, std::string(absl::StripAsciiWhitespace(first)));
  }
  if (options.tls && !options.tls_server_name.empty()) arguments.SetSslTargetNameOverride(options.tls_server_name);
  return grpc::CreateCustomChannel(TargetOf(options.address).value_or("unix:/dev/null"), NewCredentials(options),
                                   arguments);
}

}  // namespace swizzle::client

// How the tool connects: what its flags name, and files of these, become a client's options.
#ifndef SWIZZLE_CLIENT_CLI_CONNECTION_H_
#define SWIZZLE_CLIENT_CLI_CONNECTION_H_

#include <string>

#include "absl/status/statusor.h"
#include "client/client.h"

namespace swizzle::client {

// Empty files are not asked for.
struct ConnectionFlags {
  std::string address = ClientOptions().address;
  double timeout_s = absl::ToDoubleSeconds(ClientOptions().timeout);
  bool tls = false;
  std::string tls_ca, tls_certificate, tls_key;
  std::string token_file;
};

// A usage error where a file cannot be read, or holds no token.
absl::StatusOr<ClientOptions> ReadConnection(const ConnectionFlags& flags);

}  // namespace swizzle::client

#endif  // SWIZZLE_CLIENT_CLI_CONNECTION_H_

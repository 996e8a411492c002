// gRPC's credentials of a server, of certificates that change: gRPC asks for them at each handshake, so that a new pair
// is shown to who connects next, and nobody who is connected notices. TLS 1.2 and 1.3.
#ifndef SWIZZLE_SERVER_RPC_TLS_CREDENTIALS_H_
#define SWIZZLE_SERVER_RPC_TLS_CREDENTIALS_H_

#include <grpcpp/grpcpp.h>

#include <memory>

#include "server/security/tls_certificates.h"

namespace swizzle {

// For one listener; each has its own. `certificates`, null for no TLS, outlives the server that they are for.
std::shared_ptr<grpc::ServerCredentials> NewServerCredentials(const TlsCertificates* certificates);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_RPC_TLS_CREDENTIALS_H_

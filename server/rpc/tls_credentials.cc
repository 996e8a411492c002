#include "server/rpc/tls_credentials.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include <string>

#include "kernels/base/mutex.h"
#include "server/libraries/versions.h"

namespace swizzle {
namespace {

// What a listener was given last; gRPC asks from any thread.
class GivenCertificates {
 public:
  explicit GivenCertificates(const TlsCertificates& certificates) : certificates_(certificates) {}

  grpc_ssl_certificate_config_reload_status Give(grpc_ssl_server_certificate_config** config) {
    std::shared_ptr<const TlsMaterial> current = certificates_.current();
    const MutexLock lock(mutex_);
    if (current == given_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    const grpc_ssl_pem_key_cert_pair pair = {current->key.c_str(), current->certificate.c_str()};
    // gRPC 1.51 aborts where it is given no authorities, even if it asks no client for a certificate.
    const std::string& client_ca = current->client_ca.empty() ? current->certificate : current->client_ca;
    *config = grpc_ssl_server_certificate_config_create(client_ca.c_str(), &pair, 1);
    given_ = std::move(current);
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  grpc_server_credentials* ForCore() {
    const auto clients = certificates_.wants_client_certificates()
                             ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                             : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE;
    const auto ask = [](void* given, grpc_ssl_server_certificate_config** config) {
      return static_cast<GivenCertificates*>(given)->Give(config);
    };
    return grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(clients, ask, this));
  }

 private:
  const TlsCertificates& certificates_;
  Mutex mutex_;
  std::shared_ptr<const TlsMaterial> given_ ABSL_GUARDED_BY(mutex_);
};

class TlsServerCredentials final : private GivenCertificates, public CoreServerCredentials {
 public:
  explicit TlsServerCredentials(const TlsCertificates& certificates)
      : GivenCertificates(certificates), CoreServerCredentials(ForCore()) {}
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> NewServerCredentials(const TlsCertificates* certificates) {
  if (certificates == nullptr) return grpc::InsecureServerCredentials();
  return std::make_shared<TlsServerCredentials>(*certificates);
}

}  // namespace swizzle

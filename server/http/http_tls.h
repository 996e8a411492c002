// TLS for connections of HTTP, by the certificates that gRPC shows, too. Thread-compatible.
#ifndef SWIZZLE_SERVER_HTTP_HTTP_TLS_H_
#define SWIZZLE_SERVER_HTTP_HTTP_TLS_H_

#include <boost/asio/ssl/context.hpp>
#include <memory>

#include "server/security/tls_certificates.h"

namespace swizzle {

class HttpTls {
 public:
  // `certificates` outlives it; null: no TLS.
  explicit HttpTls(const TlsCertificates* certificates) : certificates_(certificates) {}

  // For the next connection, by what is in the files now; null where there is no TLS. Throws what Asio does.
  std::shared_ptr<boost::asio::ssl::context> Current();

 private:
  const TlsCertificates* const certificates_;
  std::shared_ptr<const TlsMaterial> material_;  // that context_ was made of
  std::shared_ptr<boost::asio::ssl::context> context_;
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_HTTP_HTTP_TLS_H_

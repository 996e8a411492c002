// Looks, every second, whether the files have been replaced that say who may connect, and logs what became of it.
// Thread-safe.
#ifndef SWIZZLE_SERVER_CREDENTIAL_WATCH_H_
#define SWIZZLE_SERVER_CREDENTIAL_WATCH_H_

#include <optional>

#include "server/security/authorization.h"
#include "server/security/tls_certificates.h"
#include "server/telemetry/metrics.h"
#include "server/threading/periodic.h"

namespace swizzle {

class CredentialWatch {
 public:
  // `certificates`, null for no TLS, and `authorization` outlive this.
  CredentialWatch(TlsCertificates* certificates, Authorization& authorization);

  // For metrics.
  CredentialLoad load() const;

 private:
  void LookAtCertificates();
  void LookAtTokens();

  TlsCertificates* const certificates_;
  Authorization& authorization_;
  bool said_expired_ = false;       // the thread's
  std::optional<Periodic> thread_;  // last: it uses all of the above; none where there is nothing to look at
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_CREDENTIAL_WATCH_H_

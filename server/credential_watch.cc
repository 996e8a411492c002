#include "server/credential_watch.h"

#include <string>
#include <utility>

#include "server/telemetry/containment.h"
#include "server/telemetry/logging.h"
#include "server/threading/clock.h"

namespace swizzle {
namespace {

constexpr absl::Duration kInterval = absl::Seconds(1);

}  // namespace

CredentialWatch::CredentialWatch(TlsCertificates* certificates, Authorization& authorization)
    : certificates_(certificates), authorization_(authorization) {
  if (certificates_ == nullptr && !authorization_.asks_for_tokens()) return;
  thread_.emplace(kInterval, [this] {
    Contain("look at who may connect", [this] {
      if (certificates_ != nullptr) LookAtCertificates();
      LookAtTokens();
      return absl::OkStatus();
    }).IgnoreError();
  });
}

void CredentialWatch::LookAtTokens() {
  const Reload found = authorization_.Look();
  if (found.replaced) Log(LogLevel::kInfo, "tokens replaced");
  if (!found.error.ok()) {
    Log(LogLevel::kError, "tokens not replaced", {{"reason", std::string(found.error.message())}});
  }
}

// A certificate that expires while it is shown is said once.
void CredentialWatch::LookAtCertificates() {
  const absl::Time now = Clock::Real().WallNow();
  const Reload found = certificates_->Look(now);
  const absl::Time expires = certificates_->current()->expires;
  if (found.replaced) {
    Log(LogLevel::kInfo, "TLS certificate replaced", {{"expires", absl::FormatTime(expires, absl::UTCTimeZone())}});
  }
  if (!found.error.ok()) {
    Log(LogLevel::kError, "TLS certificate not replaced", {{"reason", std::string(found.error.message())}});
  }
  const bool expired = expires <= now;
  if (expired && !said_expired_) Log(LogLevel::kError, "TLS certificate expired");
  said_expired_ = expired;
}

CredentialLoad CredentialWatch::load() const {
  CredentialLoad load;
  if (certificates_ != nullptr) load.tls = {certificates_->current()->expires, certificates_->counts()};
  if (authorization_.asks_for_tokens()) load.tokens = authorization_.counts();
  load.unauthenticated = authorization_.refused().unauthenticated;
  load.denied = authorization_.refused().denied;
  return load;
}

}  // namespace swizzle

#include "server/security/tls_certificates.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <ctime>
#include <utility>
#include <vector>

namespace swizzle {
namespace {

template <auto kFree>
struct Freed {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using Text = std::unique_ptr<BIO, Freed<BIO_free>>;
using Context = std::unique_ptr<SSL_CTX, Freed<SSL_CTX_free>>;

// What OpenSSL calls its first error, whose list is empty then: gRPC uses the same one on this thread.
std::string TakeReason() {
  const char* const reason = ERR_reason_error_string(ERR_peek_error());
  ERR_clear_error();
  return reason == nullptr ? "no reason is known" : reason;
}

Status NotTaken(const std::filesystem::path& file, const char* what) {
  return InvalidArgument(file.string(), " ", what, ": ", TakeReason());
}

Text TextOf(const std::string& pem) { return Text(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()))); }

StatusOr<std::vector<Certificate>> ReadCertificates(const std::filesystem::path& file, const std::string& pem) {
  const Text text = TextOf(pem);
  std::vector<Certificate> certificates;
  while (X509* const read = PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr)) certificates.emplace_back(read);
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  if (!at_end) return NotTaken(file, "is no list of PEM certificates");
  ERR_clear_error();
  if (certificates.empty()) return InvalidArgument(file.string(), " has no PEM certificate");
  return certificates;
}

// An encrypted key is not asked for its passphrase, on whatever terminal there is.
StatusOr<Key> ReadKey(const std::filesystem::path& file, const std::string& pem) {
  bool encrypted = false;
  const auto no_passphrase = [](char*, int, int, void* asked) {
    *static_cast<bool*>(asked) = true;
    return -1;
  };
  Key key(PEM_read_bio_PrivateKey(TextOf(pem).get(), nullptr, no_passphrase, &encrypted));
  if (key != nullptr) return key;
  if (!encrypted) return NotTaken(file, "has no PEM private key");
  ERR_clear_error();
  return InvalidArgument(file.string(), " is encrypted; give a key without a passphrase");
}

absl::Time TimeOf(const ASN1_TIME* time) {
  std::tm parts = {};
  ASN1_TIME_to_tm(time, &parts);
  return absl::FromTM(parts, absl::UTCTimeZone());
}

std::string Written(absl::Time time) { return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", time, absl::UTCTimeZone()); }

Status CheckValid(const std::filesystem::path& file, const X509* certificate, absl::Time now) {
  const absl::Time from = TimeOf(X509_get0_notBefore(certificate)), until = TimeOf(X509_get0_notAfter(certificate));
  if (until <= now) return InvalidArgument(file.string(), " has expired at ", Written(until));
  if (from > now) return InvalidArgument(file.string(), " is not valid before ", Written(from));
  return absl::OkStatus();
}

// As gRPC will: OpenSSL refuses short keys, for example.
Status CheckUsable(const TlsFiles& files, const std::vector<Certificate>& chain, EVP_PKEY* key) {
  const Context context(SSL_CTX_new(TLS_server_method()));
  if (context == nullptr || SSL_CTX_use_certificate(context.get(), chain.front().get()) != 1) {
    return NotTaken(files.certificate, "cannot be used");
  }
  for (size_t i = 1; i < chain.size(); ++i) {
    if (SSL_CTX_add1_chain_cert(context.get(), chain[i].get()) != 1) {
      return NotTaken(files.certificate, "has a certificate behind the first that cannot be used");
    }
  }
  if (SSL_CTX_use_PrivateKey(context.get(), key) == 1) return absl::OkStatus();
  return NotTaken(files.key, "cannot be used");
}

}  // namespace

Status CheckTlsMaterial(const TlsFiles& files, absl::Time now, TlsMaterial& material) {
  ERR_clear_error();
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<Certificate> chain,
                           ReadCertificates(files.certificate, material.certificate));
  SWIZZLE_ASSIGN_OR_RETURN(const Key key, ReadKey(files.key, material.key));
  if (X509_check_private_key(chain.front().get(), key.get()) != 1) {
    ERR_clear_error();
    return InvalidArgument("the key in ", files.key.string(), " is not that of the certificate in ",
                           files.certificate.string());
  }
  SWIZZLE_RETURN_IF_ERROR(CheckValid(files.certificate, chain.front().get(), now));
  SWIZZLE_RETURN_IF_ERROR(CheckUsable(files, chain, key.get()));
  material.expires = TimeOf(X509_get0_notAfter(chain.front().get()));
  if (files.client_ca.empty()) return absl::OkStatus();
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<Certificate> authorities,
                           ReadCertificates(files.client_ca, material.client_ca));
  Status valid;
  for (const Certificate& authority : authorities) {
    valid = CheckValid(files.client_ca, authority.get(), now);
    if (valid.ok()) return valid;
  }
  return valid;
}

TlsCertificates::TlsCertificates(const TlsFiles& files)
    : files_(files),
      certificate_(files.certificate, "TLS certificate"),
      key_(files.key, "TLS key"),
      client_ca_(files.client_ca, "authorities of clients") {}

StatusOr<TlsMaterial> TlsCertificates::Read(absl::Time now) {
  TlsMaterial material;
  SWIZZLE_ASSIGN_OR_RETURN(material.certificate, certificate_.Read());
  SWIZZLE_ASSIGN_OR_RETURN(material.key, key_.Read());
  if (wants_client_certificates()) {
    SWIZZLE_ASSIGN_OR_RETURN(material.client_ca, client_ca_.Read());
  }
  SWIZZLE_RETURN_IF_ERROR(CheckTlsMaterial(files_, now, material));
  return material;
}

StatusOr<std::unique_ptr<TlsCertificates>> TlsCertificates::Load(const TlsFiles& files, absl::Time now) {
  std::unique_ptr<TlsCertificates> certificates(new TlsCertificates(files));
  const MutexLock lock(certificates->mutex_);
  SWIZZLE_ASSIGN_OR_RETURN(TlsMaterial material, certificates->Read(now));
  certificates->current_ = std::make_shared<const TlsMaterial>(std::move(material));
  return certificates;
}

std::shared_ptr<const TlsMaterial> TlsCertificates::current() const {
  const MutexLock lock(mutex_);
  return current_;
}

Reload TlsCertificates::Look(absl::Time now) {
  const MutexLock lock(mutex_);
  const bool changed =
      certificate_.Changed() || key_.Changed() || (wants_client_certificates() && client_ca_.Changed());
  if (!changed && !log_.failing()) return {};
  StatusOr<TlsMaterial> material = Read(now);
  if (!material.ok()) return log_.Failed(material.status());
  const bool same = material->certificate == current_->certificate && material->key == current_->key &&
                    material->client_ca == current_->client_ca;
  if (same) return log_.Unchanged();
  current_ = std::make_shared<const TlsMaterial>(*std::move(material));
  return log_.Replaced();
}

ReloadCounts TlsCertificates::counts() const {
  const MutexLock lock(mutex_);
  return log_.counts();
}

}  // namespace swizzle

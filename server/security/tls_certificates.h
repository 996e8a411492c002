// The certificate that the server shows, its key, and the authorities whose clients it takes: read from PEM files at
// the start, and again when they change.
//
// What is served is always a pair that was checked as a whole: the key is the certificate's, which is valid now, and
// OpenSSL takes both. Files that are no such pair are an error at the start. Later they change nothing: the old pair is
// served on. Since files are not replaced all at once, what is wrong with them is said when they have been so for two
// looks. OpenSSL is included only in this folder's sources.
#ifndef SWIZZLE_SERVER_SECURITY_TLS_CERTIFICATES_H_
#define SWIZZLE_SERVER_SECURITY_TLS_CERTIFICATES_H_

#include <filesystem>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "kernels/base/mutex.h"
#include "kernels/base/status.h"
#include "server/security/reloads.h"
#include "server/security/watched_file.h"

namespace swizzle {

struct TlsFiles {
  std::filesystem::path certificate;  // with those between it and its authority behind it; empty: no TLS
  std::filesystem::path key;
  std::filesystem::path client_ca;  // empty: clients need no certificate

  bool wanted() const { return !certificate.empty(); }
};

// One set of them, as PEM.
struct TlsMaterial {
  std::string certificate, key, client_ca;
  absl::Time expires;  // the certificate
};

// OK if a server can use them at `now`. The errors name the files of `files`.
Status CheckTlsMaterial(const TlsFiles& files, absl::Time now, TlsMaterial& material);

// Thread-safe.
class TlsCertificates {
 public:
  // INVALID_ARGUMENT, NOT_FOUND and the like, in one sentence that names the file.
  static StatusOr<std::unique_ptr<TlsCertificates>> Load(const TlsFiles& files, absl::Time now);

  std::shared_ptr<const TlsMaterial> current() const;
  bool wants_client_certificates() const { return !files_.client_ca.empty(); }

  // Reads the files if they have changed, and serves what is in them from now on. To be called again and again.
  Reload Look(absl::Time now);
  ReloadCounts counts() const;

 private:
  explicit TlsCertificates(const TlsFiles& files);
  StatusOr<TlsMaterial> Read(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const TlsFiles files_;
  mutable Mutex mutex_;
  WatchedFile certificate_ ABSL_GUARDED_BY(mutex_), key_ ABSL_GUARDED_BY(mutex_), client_ca_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const TlsMaterial> current_ ABSL_GUARDED_BY(mutex_);
  ReloadLog log_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_SECURITY_TLS_CERTIFICATES_H_

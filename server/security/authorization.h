// Who may do what: the one place that decides it, for gRPC and HTTP alike.
//
// Without tokens everybody may do everything, but for what a listener does not serve. With them a call needs one whose
// classes hold the call's (access_class.h); probes need none. What a token for some models alone may not use is denied
// in the same words whether there is such a model or not. Refusals are counted.
#ifndef SWIZZLE_SERVER_SECURITY_AUTHORIZATION_H_
#define SWIZZLE_SERVER_SECURITY_AUTHORIZATION_H_

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "kernels/base/mutex.h"
#include "kernels/base/status.h"
#include "server/security/access_class.h"
#include "server/security/auth_tokens.h"
#include "server/security/reloads.h"
#include "server/security/watched_file.h"

namespace swizzle {

// Thread-safe.
class Authorization {
 public:
  // Everybody may do everything.
  Authorization() = default;
  // By the tokens of a file. Errors name it.
  static StatusOr<std::unique_ptr<Authorization>> Load(const std::filesystem::path& file);
  // One that lasts, for those who are given none.
  static const Authorization& Open();

  bool asks_for_tokens() const { return asks_for_tokens_; }

  // `rule`: FindAccessRule of what is asked for. `shown` is the value of the header "authorization"; empty: there is
  // none. UNAUTHENTICATED or PERMISSION_DENIED.
  Status CheckCall(ListenerKind listener, const std::optional<AccessRule>& rule, std::string_view shown) const;
  Status CheckClass(AccessClass needed, std::string_view shown) const;
  // OK for a model that the token may use, there or not. REQUIRES: the call itself was allowed.
  Status CheckModel(std::string_view model, std::string_view shown) const;
  // The same for lists, which leave out what is not allowed: that is no refusal, and counts as none.
  bool AllowsModel(std::string_view model, std::string_view shown) const;
  // Whether these have to be asked: some tokens are for some models alone.
  bool limits_models() const { return limits_models_.load(std::memory_order_relaxed); }

  // Reads the file if it has changed. To be called again and again.
  Reload Look();
  ReloadCounts counts() const;

  struct Refused {
    std::atomic<int64_t> unauthenticated = 0, denied = 0;
  };
  const Refused& refused() const { return refused_; }

 private:
  StatusOr<std::shared_ptr<const AuthTokens>> Read() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<const AuthTokens> tokens() const;
  Status Unauthenticated() const;
  Status Denied(const char* why) const;

  bool asks_for_tokens_ = false;
  std::atomic<bool> limits_models_ = false;
  mutable Refused refused_;
  mutable Mutex mutex_;
  std::optional<WatchedFile> file_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const AuthTokens> tokens_ ABSL_GUARDED_BY(mutex_);
  ReloadLog log_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_SECURITY_AUTHORIZATION_H_

#include "server/security/authorization.h"

#include <algorithm>
#include <string>
#include <utility>

namespace swizzle {
namespace {

constexpr std::string_view kScheme = "bearer ";

// The token of "Bearer TOKEN"; empty where it is anything else. The scheme is in any case (RFC 7235).
std::string_view TokenOf(std::string_view shown) {
  if (shown.size() <= kScheme.size()) return {};
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  if (!std::ranges::equal(shown.substr(0, kScheme.size()), kScheme, {}, lower)) return {};
  return shown.substr(kScheme.size());
}

}  // namespace

StatusOr<std::unique_ptr<Authorization>> Authorization::Load(const std::filesystem::path& file) {
  auto authorization = std::make_unique<Authorization>();
  authorization->asks_for_tokens_ = true;
  const MutexLock lock(authorization->mutex_);
  authorization->file_.emplace(file, "tokens");
  SWIZZLE_ASSIGN_OR_RETURN(authorization->tokens_, authorization->Read());
  authorization->limits_models_ = authorization->tokens_->limit_models();
  return authorization;
}

const Authorization& Authorization::Open() {
  static const Authorization* const open = new Authorization;
  return *open;
}

StatusOr<std::shared_ptr<const AuthTokens>> Authorization::Read() {
  SWIZZLE_ASSIGN_OR_RETURN(const std::string text, file_->Read());
  SWIZZLE_ASSIGN_OR_RETURN(AuthTokens tokens, AuthTokens::Parse(text, file_->path().string()));
  return std::make_shared<const AuthTokens>(std::move(tokens));
}

std::shared_ptr<const AuthTokens> Authorization::tokens() const {
  const MutexLock lock(mutex_);
  return tokens_;
}

Status Authorization::Unauthenticated() const {
  refused_.unauthenticated.fetch_add(1, std::memory_order_relaxed);
  return MakeError(StatusCode::kUnauthenticated, "this call needs a valid token: authorization: Bearer TOKEN");
}

Status Authorization::Denied(const char* why) const {
  refused_.denied.fetch_add(1, std::memory_order_relaxed);
  return MakeError(StatusCode::kPermissionDenied, why);
}

Status Authorization::CheckCall(ListenerKind listener, const std::optional<AccessRule>& rule,
                                std::string_view shown) const {
  if (!rule.has_value()) return Denied("this call is of no class, so nobody may make it");
  SWIZZLE_RETURN_IF_ERROR(CheckClass(rule->needs, shown));
  if (!rule->control_listener_only || listener == ListenerKind::kControl) return absl::OkStatus();
  return Denied(
      "models are loaded and unloaded at an address for operators (--control-address, --http-control-address)");
}

Status Authorization::CheckClass(AccessClass needed, std::string_view shown) const {
  if (!asks_for_tokens_ || needed == AccessClass::kProbe) return absl::OkStatus();
  const std::string_view token = TokenOf(shown);
  const std::shared_ptr<const AuthTokens> known = tokens();
  const TokenGrant* const grant = known->Find(token);
  if (grant == nullptr) return Unauthenticated();
  return grant->Allows(needed) ? absl::OkStatus() : Denied("this token does not allow this call");
}

Status Authorization::CheckModel(std::string_view model, std::string_view shown) const {
  if (!limits_models()) return absl::OkStatus();
  const std::shared_ptr<const AuthTokens> known = tokens();
  const TokenGrant* const grant = known->Find(TokenOf(shown));
  if (grant == nullptr) return Unauthenticated();
  return grant->AllowsModel(model) ? absl::OkStatus() : Denied("this token does not allow this model");
}

bool Authorization::AllowsModel(std::string_view model, std::string_view shown) const {
  if (!limits_models()) return true;
  const std::shared_ptr<const AuthTokens> known = tokens();
  const TokenGrant* const grant = known->Find(TokenOf(shown));
  return grant != nullptr && grant->AllowsModel(model);
}

Reload Authorization::Look() {
  if (!asks_for_tokens_) return {};
  const MutexLock lock(mutex_);
  if (!file_->Changed() && !log_.failing()) return {};
  StatusOr<std::shared_ptr<const AuthTokens>> read = Read();
  if (!read.ok()) return log_.Failed(read.status());
  const bool limits = (*read)->limit_models();
  if (limits) limits_models_ = true;  // before who may use which model is known
  tokens_ = *std::move(read);
  limits_models_ = limits;
  return log_.Replaced();
}

ReloadCounts Authorization::counts() const {
  const MutexLock lock(mutex_);
  return log_.counts();
}

}  // namespace swizzle

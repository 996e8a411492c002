#include "server/security/auth_tokens.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <utility>

namespace swizzle {
namespace {

constexpr std::string_view kSpace = " \t\r";
constexpr std::string_view kModels = "models=";

std::vector<std::string_view> Split(std::string_view text, std::string_view at) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t begin = text.find_first_not_of(at);
    if (begin == std::string_view::npos) return parts;
    const size_t end = std::min(text.find_first_of(at, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    text.remove_prefix(end);
  }
}

// What may stand in a header as a token (RFC 6750).
bool IsToken(std::string_view text) {
  const std::string_view body = text.substr(0, text.find_last_not_of('=') + 1);
  return !body.empty() && std::ranges::all_of(body, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("-._~+/").find(c) != std::string_view::npos;
  });
}

Status AddClasses(std::string_view names, TokenGrant& grant) {
  for (const std::string_view name : Split(names, ",")) {
    const auto* const found = std::ranges::find(kAccessClassNames, name);
    if (found == kAccessClassNames.end() && name != "all") {
      return InvalidArgument("a class that is none of infer, metadata, control, metrics, reflection and all");
    }
    for (size_t i = 0; i < kAccessClassNames.size(); ++i) {
      if (name == "all" || kAccessClassNames[i] == name) grant.Add(static_cast<AccessClass>(i));
    }
  }
  return absl::OkStatus();
}

}  // namespace

bool TokenGrant::AllowsModel(std::string_view model) const {
  return models_.empty() || std::ranges::find(models_, model) != models_.end();
}

AuthTokens::Digest AuthTokens::DigestOf(std::string_view token) {
  // Looked up once: OpenSSL does so for each digest else, under a lock.
  static const EVP_MD* const algorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  Digest digest;
  SWIZZLE_CHECK(EVP_Digest(token.data(), token.size(), digest.data(), nullptr, algorithm, nullptr) == 1);
  return digest;
}

Status AuthTokens::Add(std::string_view line) {
  std::vector<std::string_view> words = Split(line, kSpace);
  const std::string_view text = words.back();
  words.pop_back();
  TokenGrant grant;
  if (!words.empty() && words.back().starts_with(kModels)) {
    const std::vector<std::string_view> names = Split(words.back().substr(kModels.size()), ",");
    if (names.empty()) return InvalidArgument("models= without a model");
    grant.LimitTo({names.begin(), names.end()});
    limit_models_ = true;
    words.pop_back();
  }
  if (words.size() > 1) return InvalidArgument("more than CLASS[,CLASS...] [models=NAME[,NAME...]] TOKEN");
  SWIZZLE_RETURN_IF_ERROR(AddClasses(words.empty() ? "infer,metadata" : words.front(), grant));
  if (!IsToken(text)) return InvalidArgument("a token of other characters than letters, digits and -._~+/=");
  if (text.size() < kLeastLength) {
    return InvalidArgument("a token of fewer than ", kLeastLength, " characters, which can be guessed");
  }
  if (text.size() > kMostLength) return InvalidArgument("a token of more than ", kMostLength, " characters");
  const Digest digest = DigestOf(text);
  if (std::ranges::find(tokens_, digest, &Token::digest) != tokens_.end()) {
    return InvalidArgument("the token of a line before it");
  }
  if (tokens_.size() == kMost) return InvalidArgument("more than ", kMost, " tokens");
  tokens_.push_back({digest, std::move(grant)});
  return absl::OkStatus();
}

StatusOr<AuthTokens> AuthTokens::Parse(std::string_view text, const std::string& file) {
  AuthTokens tokens;
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const size_t first = line.find_first_not_of(kSpace);
    if (first == std::string_view::npos || line[first] == '#') continue;
    const Status added = tokens.Add(line);
    if (!added.ok()) return InvalidArgument(file, ", line ", number, ", has ", std::string(added.message()));
  }
  if (tokens.tokens_.empty()) return InvalidArgument(file, " has no token, with which nobody could ask for anything");
  return tokens;
}

// Goes through all of them, whichever it is.
const TokenGrant* AuthTokens::Find(std::string_view token) const {
  const Digest digest = DigestOf(token);
  const TokenGrant* found = nullptr;
  for (const Token& known : tokens_) {
    if (CRYPTO_memcmp(known.digest.data(), digest.data(), digest.size()) == 0) found = &known.grant;
  }
  return found;
}

}  // namespace swizzle

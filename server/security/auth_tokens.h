// The tokens that clients may show, and what each allows: read from a text file.
//
//   # Each line: CLASS[,CLASS...] [models=NAME[,NAME...]] TOKEN
//   infer,metadata                  Nq8c0vJm5sWlYx2R
//   infer,metadata models=bert,tiny hP3kEw7uZt1oGd9A
//   control                         b6QyLr4iXf8mTj0V
//   metrics                         Vc2nUa5zKs9eHw7D
//
// A token without classes allows infer and metadata; `all` stands for every class. Kept are digests alone, and what is
// shown is compared with each of them in the same time whatever it is. Thread-compatible.
#ifndef SWIZZLE_SERVER_SECURITY_AUTH_TOKENS_H_
#define SWIZZLE_SERVER_SECURITY_AUTH_TOKENS_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/status.h"
#include "server/security/access_class.h"

namespace swizzle {

class TokenGrant {
 public:
  void Add(AccessClass one) { classes_ |= 1u << static_cast<unsigned>(one); }
  void LimitTo(std::vector<std::string> models) { models_ = std::move(models); }

  bool Allows(AccessClass one) const { return (classes_ >> static_cast<unsigned>(one) & 1) != 0; }
  bool AllowsModel(std::string_view model) const;
  bool limits_models() const { return !models_.empty(); }

 private:
  uint32_t classes_ = 0;
  std::vector<std::string> models_;  // empty: all
};

class AuthTokens {
 public:
  static constexpr size_t kMost = 1000, kLeastLength = 16, kMostLength = 4096;

  // INVALID_ARGUMENT names `file` and the line, and no token.
  static StatusOr<AuthTokens> Parse(std::string_view text, const std::string& file);

  // Null for none of them.
  const TokenGrant* Find(std::string_view token) const;
  // Whether any token is for some models alone.
  bool limit_models() const { return limit_models_; }
  size_t size() const { return tokens_.size(); }

 private:
  using Digest = std::array<unsigned char, 32>;
  struct Token {
    Digest digest;
    TokenGrant grant;
  };

  static Digest DigestOf(std::string_view token);
  Status Add(std::string_view line);

  std::vector<Token> tokens_;
  bool limit_models_ = false;
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_SECURITY_AUTH_TOKENS_H_

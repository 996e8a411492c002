// Who may do what: a file of tokens, and what a call is named and shows.
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>

#include "server/security/authorization.h"

namespace swizzle {
namespace {

constexpr std::string_view kToken = "Nq8c0vJm5sWlYx2R", kOther = "hP3kEw7uZt1oGd9A";

const Authorization& Known() {
  static const Authorization& known = *[] {
    const std::filesystem::path file = std::filesystem::temp_directory_path() / Concat("authorization_fuzz.", getpid());
    std::ofstream(file) << "infer,metadata " << kToken << "\ninfer models=bert " << kOther << "\n";
    auto loaded = Authorization::Load(file);
    SWIZZLE_CHECK(loaded.ok());
    std::filesystem::remove(file);
    return loaded->release();
  }();
  return known;
}

void ReadTokens(std::string_view text) {
  const auto tokens = AuthTokens::Parse(text, "FILE");
  if (!tokens.ok()) {
    SWIZZLE_CHECK(tokens.status().message().find("FILE") != std::string::npos);
    return;
  }
  SWIZZLE_CHECK(tokens->size() <= AuthTokens::kMost);
  SWIZZLE_CHECK(tokens->Find("") == nullptr && tokens->Find("no token of any file") == nullptr);
}

void Call(std::string_view text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view name = text.substr(0, end), shown = text.substr(std::min(end + 1, text.size()));
  const auto rule = FindAccessRule(name);
  SWIZZLE_CHECK(!rule || rule->name == name);
  const bool token = shown.ends_with(kToken), other = shown.ends_with(kOther);
  for (const ListenerKind listener : {ListenerKind::kPublic, ListenerKind::kControl}) {
    if (!Known().CheckCall(listener, rule, shown).ok()) continue;
    SWIZZLE_CHECK(rule.has_value());
    SWIZZLE_CHECK(rule->needs == AccessClass::kProbe || rule->needs == AccessClass::kInfer ||
                  rule->needs == AccessClass::kMetadata);
    SWIZZLE_CHECK(rule->needs == AccessClass::kProbe || token || (other && rule->needs == AccessClass::kInfer));
  }
  SWIZZLE_CHECK(!Known().CheckModel("bert", shown).ok() || token || other);
  SWIZZLE_CHECK(!Known().AllowsModel("tiny", shown) || token);
}

}  // namespace
}  // namespace swizzle

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  data[0] % 2 == 0 ? swizzle::ReadTokens(rest) : swizzle::Call(rest);
  return 0;
}

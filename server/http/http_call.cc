#include "server/http/http_call.h"

namespace swizzle {

std::string_view HttpHead::Header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return {};
}

std::string_view HttpHead::OnlyHeader(std::string_view name) const {
  const std::string* only = nullptr;
  for (const auto& [key, value] : headers) {
    if (key != name) continue;
    if (only != nullptr) return {};
    only = &value;
  }
  return only == nullptr ? std::string_view() : *only;
}

}  // namespace swizzle

#include "model_loader/text/json_fields.h"

#include <cstddef>

#include "model_loader/files/file_kind.h"

namespace swizzle::text {

using Json = nlohmann::json;

StatusOr<Json> ParseObject(std::string_view text) {
  const std::string_view kind = text.starts_with('{') ? "" : KindOfFile(std::as_bytes(std::span(text)));
  if (!kind.empty()) return InvalidArgument("it is not a JSON object, but ", kind);
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return InvalidArgument("it is not a JSON object in UTF-8, or it is truncated");
  return json;
}

std::string Shown(const Json& value) {
  constexpr size_t kMaxBytes = 64;
  if (value.is_structured()) return value.is_array() ? "a list" : "an object";
  const std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
  return text.size() <= kMaxBytes ? text : text.substr(0, kMaxBytes) + "...";
}

int32_t IdOf(const Json& value) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() >= static_cast<uint64_t>(kMostTokens)) return -1;
  return value.get<int32_t>();
}

const Json* Fields::Find(const char* name) const {
  if (json_ == nullptr || !json_->is_object()) return nullptr;
  const auto found = json_->find(name);
  return found == json_->end() || found->is_null() ? nullptr : &*found;
}

Status Fields::Wrong(const char* name, const char* has_to_be) const {
  const Json* value = Find(name);
  if (value == nullptr) return InvalidArgument(what_, " has no ", name, "; it has to be ", has_to_be);
  return InvalidArgument("the ", name, " of ", what_, " is ", Shown(*value), "; it has to be ", has_to_be);
}

StatusOr<bool> Fields::Flag(const char* name, bool absent) const {
  const Json* value = Find(name);
  if (value == nullptr) return absent;
  if (!value->is_boolean()) return Wrong(name, "true or false");
  return value->get<bool>();
}

StatusOr<std::string> Fields::Text(const char* name) const {
  const Json* value = Find(name);
  if (value == nullptr || !value->is_string()) return Wrong(name, "a string");
  return value->get<std::string>();
}

StatusOr<std::string> Fields::Text(const char* name, const std::string& absent) const {
  return Has(name) ? Text(name) : absent;
}

StatusOr<int64_t> Fields::Whole(const char* name, int64_t most, std::optional<int64_t> absent) const {
  const Json* value = Find(name);
  if (value == nullptr && absent) return *absent;
  if (value != nullptr && value->is_number_unsigned() && value->get<uint64_t>() <= static_cast<uint64_t>(most)) {
    return value->get<int64_t>();
  }
  return Wrong(name, Concat("a whole number from 0 to ", most).c_str());
}

StatusOr<const Json*> Fields::Array(const char* name) const {
  const Json* value = Find(name);
  if (value == nullptr || !value->is_array()) return Wrong(name, "a list");
  return value;
}

StatusOr<const Json*> Fields::Object(const char* name) const {
  const Json* value = Find(name);
  if (value == nullptr || !value->is_object()) return Wrong(name, "an object");
  return value;
}

}  // namespace swizzle::text

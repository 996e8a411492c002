#include "model_loader/safetensors/strict_json.h"

#include <set>
#include <span>
#include <string>
#include <vector>

#include "model_loader/files/file_kind.h"
#include "model_loader/files/printable_name.h"

namespace swizzle {

StatusOr<nlohmann::json> ParseStrictJson(std::string_view text) {
  using Json = nlohmann::json;
  constexpr int kMaxDepth = 32;
  const std::string_view kind = text.starts_with('{') ? "" : KindOfFile(std::as_bytes(std::span(text)));
  if (!kind.empty()) return InvalidArgument("it is not a JSON object, but ", kind);
  if (text.find('\0') != std::string::npos) return InvalidArgument("it is not JSON: it holds a zero byte");
  Status fault;
  std::vector<std::set<std::string>> keys;  // of the objects around the parser's place
  const auto look = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (!fault.ok()) return false;
    if (depth >= kMaxDepth) fault = InvalidArgument("it nests more than ", kMaxDepth, " deep");
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event != Json::parse_event_t::key) return fault.ok();
    const auto& key = parsed.get_ref<const std::string&>();
    if (const Status printable = CheckName(key, "a key"); !printable.ok()) {
      fault = printable;
    } else if (!keys.back().insert(key).second) {
      fault = InvalidArgument("the key '", key, "' is given twice");
    }
    return fault.ok();
  };
  Json json = Json::parse(text, look, /*allow_exceptions=*/false);
  if (!fault.ok()) return fault;
  if (!json.is_object()) return InvalidArgument("it is not a JSON object in UTF-8, or it is truncated");
  return json;
}

}  // namespace swizzle

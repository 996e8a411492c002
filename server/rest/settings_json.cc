#include "server/rest/settings_json.h"

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>

#include "model_loader/files/printable_name.h"

namespace swizzle {
namespace {

using nlohmann::json;

StatusOr<json> ReadObject(std::string_view text) {
  if (text.empty()) return json::object();
  json read = json::parse(text, nullptr, false);
  if (!read.is_object()) return InvalidArgument("the body must be a JSON object, or empty");
  return read;
}

Status AddTraceValue(const std::string& name, const json& value,
                     inference::TraceSettingRequest::SettingValue& setting) {
  if (value.is_string()) {
    setting.add_value(value.get<std::string>());
  } else if (value.is_number_integer()) {
    setting.add_value(value.dump());
  } else {
    return InvalidArgument("the trace setting ", QuotedName(name), " must be a string, an array of strings, or null");
  }
  return absl::OkStatus();
}

json JsonOf(const inference::LogSettingsResponse::SettingValue& value) {
  using Value = inference::LogSettingsResponse::SettingValue;
  if (value.parameter_choice_case() == Value::kBoolParam) return value.bool_param();
  if (value.parameter_choice_case() == Value::kUint32Param) return value.uint32_param();
  return value.string_param();
}

}  // namespace

StatusOr<inference::LogSettingsRequest> ReadLogSettings(std::string_view text) {
  SWIZZLE_ASSIGN_OR_RETURN(const json read, ReadObject(text));
  inference::LogSettingsRequest request;
  for (const auto& [name, value] : read.items()) {
    auto& setting = (*request.mutable_settings())[name];
    if (value.is_boolean()) {
      setting.set_bool_param(value.get<bool>());
    } else if (value.is_string()) {
      setting.set_string_param(value.get<std::string>());
    } else if (value.is_number_unsigned() && value.get<uint64_t>() <= std::numeric_limits<uint32_t>::max()) {
      setting.set_uint32_param(value.get<uint32_t>());
    } else {
      return InvalidArgument("the log setting ", QuotedName(name), " must be a bool, a string, or a number from 0 on");
    }
  }
  return request;
}

StatusOr<inference::TraceSettingRequest> ReadTraceSettings(std::string_view text, std::string_view model) {
  SWIZZLE_ASSIGN_OR_RETURN(const json read, ReadObject(text));
  inference::TraceSettingRequest request;
  request.set_model_name(std::string(model));
  for (const auto& [name, value] : read.items()) {
    auto& setting = (*request.mutable_settings())[name];
    if (value.is_null()) continue;
    if (!value.is_array()) {
      SWIZZLE_RETURN_IF_ERROR(AddTraceValue(name, value, setting));
      continue;
    }
    for (const json& each : value) SWIZZLE_RETURN_IF_ERROR(AddTraceValue(name, each, setting));
  }
  return request;
}

std::string WriteSettings(const inference::LogSettingsResponse& settings) {
  json written = json::object();
  for (const auto& [name, value] : settings.settings()) written[name] = JsonOf(value);
  return written.dump();
}

// Levels are an array, however many there are; all else is a string.
std::string WriteSettings(const inference::TraceSettingResponse& settings) {
  json written = json::object();
  for (const auto& [name, setting] : settings.settings()) {
    const bool levels = name == "trace_level" || setting.value_size() != 1;
    json& its = written[name] = levels ? json::array() : json(setting.value(0));
    for (int i = 0; levels && i < setting.value_size(); ++i) its.push_back(setting.value(i));
  }
  return written.dump();
}

}  // namespace swizzle

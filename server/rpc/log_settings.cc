#include "server/rpc/log_settings.h"

#include <array>
#include <string>
#include <utility>

#include "kernels/base/mutex.h"
#include "model_loader/files/printable_name.h"
#include "server/telemetry/logging.h"

namespace swizzle {
namespace {

using Value = inference::LogSettingsRequest::SettingValue;

// Two calls at once change what they name, and no other setting.
Mutex changing;

// By the names that they are told by.
constexpr std::array<std::pair<LogFormat, const char*>, 3> kFormats = {
    {{LogFormat::kText, "text"}, {LogFormat::kJson, "json"}, {LogFormat::kIsoText, "ISO8601"}}};

Status WrongType(const std::string& name, const char* type) {
  return MakeError(StatusCode::kInvalidArgument, "the log setting ", name, " is ", type);
}

Status SetFlag(const std::string& name, const Value& value, bool& flag) {
  if (value.parameter_choice_case() != Value::kBoolParam) return WrongType(name, "true or false");
  flag = value.bool_param();
  return absl::OkStatus();
}

Status SetFormat(const Value& value, LogFormat& format) {
  if (value.parameter_choice_case() != Value::kStringParam) return WrongType("log_format", "a text");
  if (value.string_param() == "default") {
    format = FirstLogSettings().format;
    return absl::OkStatus();
  }
  for (const auto& [each, name] : kFormats) {
    if (value.string_param() != name) continue;
    format = each;
    return absl::OkStatus();
  }
  return MakeError(StatusCode::kInvalidArgument, "the log setting log_format is default, text, json or ISO8601, not ",
                   QuotedName(value.string_param()));
}

Status Set(const std::string& name, const Value& value, LogSettings& settings) {
  if (name == "log_info") return SetFlag(name, value, settings.info);
  if (name == "log_warning") return SetFlag(name, value, settings.warning);
  if (name == "log_error") return SetFlag(name, value, settings.error);
  if (name == "log_format") return SetFormat(value, settings.format);
  if (name == "log_verbose_level") {
    if (value.parameter_choice_case() != Value::kUint32Param) return WrongType(name, "a number");
    settings.verbose_level = value.uint32_param();
    return absl::OkStatus();
  }
  if (name == "log_file") {
    // Empty is what it is: whoever sets all that was read changes nothing.
    if (value.parameter_choice_case() == Value::kStringParam && value.string_param().empty()) return absl::OkStatus();
    return MakeError(StatusCode::kInvalidArgument,
                     "the log setting log_file can't be changed: the log goes to standard error");
  }
  return MakeError(StatusCode::kInvalidArgument, "there is no log setting ", QuotedName(name));
}

const char* FormatName(LogFormat format) {
  for (const auto& [each, name] : kFormats) {
    if (each == format) return name;
  }
  return "";
}

const char* OnOff(bool on) { return on ? "on" : "off"; }

}  // namespace

Status ApplyLogSettings(const inference::LogSettingsRequest& request) {
  const MutexLock lock(changing);
  LogSettings settings = CurrentLogSettings();
  for (const auto& [name, value] : request.settings()) SWIZZLE_RETURN_IF_ERROR(Set(name, value, settings));
  ChangeLogSettings(settings);
  Log(LogLevel::kInfo, "log settings changed",
      {{"error", OnOff(settings.error)},
       {"warning", OnOff(settings.warning)},
       {"info", OnOff(settings.info)},
       {"verbose_level", settings.verbose_level},
       {"format", FormatName(settings.format)}});
  return absl::OkStatus();
}

inference::LogSettingsResponse DescribeLogSettings() {
  const LogSettings settings = CurrentLogSettings();
  inference::LogSettingsResponse response;
  auto& all = *response.mutable_settings();
  all["log_file"].set_string_param("");
  all["log_info"].set_bool_param(settings.info);
  all["log_warning"].set_bool_param(settings.warning);
  all["log_error"].set_bool_param(settings.error);
  all["log_verbose_level"].set_uint32_param(settings.verbose_level);
  all["log_format"].set_string_param(FormatName(settings.format));
  return response;
}

}  // namespace swizzle

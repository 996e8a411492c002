#include "server/rpc/trace_settings.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "kernels/base/mutex.h"
#include "model_loader/files/printable_name.h"
#include "server/telemetry/logging.h"

namespace swizzle {
namespace {

using Value = inference::TraceSettingRequest::SettingValue;

// Two calls at once change what they name, and no other setting.
Mutex changing;

// What can't be changed: the value that it has.
const std::map<std::string, std::string, std::less<>>& FixedSettings() {
  static const std::map<std::string, std::string, std::less<>> fixed = {
      {"trace_file", ""}, {"log_frequency", "0"}, {"trace_mode", "opentelemetry"}};
  return fixed;
}

StatusOr<int64_t> Number(const std::string& name, const Value& value, int64_t least) {
  const std::string& text = value.value(0);
  int64_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (value.value_size() == 1 && error == std::errc() && stop == text.data() + text.size() && number >= least &&
      number <= std::numeric_limits<int32_t>::max()) {
    return number;
  }
  return MakeError(StatusCode::kInvalidArgument, "the trace setting ", name, " is a whole number from ", least,
                   ", not ", QuotedName(text));
}

Status SetLevel(const Value& value, bool& on) {
  for (const std::string& level : value.value()) {
    if (level != "OFF" && level != "TIMESTAMPS") {
      return MakeError(StatusCode::kInvalidArgument, "the trace setting trace_level is OFF or TIMESTAMPS, not ",
                       QuotedName(level));
    }
    on = level == "TIMESTAMPS";
  }
  return absl::OkStatus();
}

Status Set(const std::string& name, const Value& value, const TraceSettings& first, TraceSettings& settings) {
  const bool reset = value.value_size() == 0;
  if (name == "trace_level") {
    settings.on = first.on;
    return reset ? absl::OkStatus() : SetLevel(value, settings.on);
  }
  if (name == "trace_rate") {
    settings.share = first.share;
    if (reset) return absl::OkStatus();
    SWIZZLE_ASSIGN_OR_RETURN(const int64_t one_in, Number(name, value, 0));
    settings.share = one_in == 0 ? 0.0 : 1.0 / static_cast<double>(one_in);
    return absl::OkStatus();
  }
  if (name == "trace_count") {
    settings.count = first.count;
    if (reset) return absl::OkStatus();
    SWIZZLE_ASSIGN_OR_RETURN(settings.count, Number(name, value, -1));
    return absl::OkStatus();
  }
  const auto fixed = FixedSettings().find(name);
  if (fixed == FixedSettings().end()) {
    return MakeError(StatusCode::kInvalidArgument, "there is no trace setting ", QuotedName(name));
  }
  // Whoever sets all that was read changes nothing.
  if (reset || (value.value_size() == 1 && value.value(0) == fixed->second)) return absl::OkStatus();
  return MakeError(StatusCode::kInvalidArgument, "the trace setting ", name,
                   " can't be changed: traces go to the collector that the server was started with");
}

std::string OneIn(double share) {
  return share > 0.0 ? std::to_string(static_cast<int64_t>(std::llround(1.0 / share))) : "0";
}

}  // namespace

Status ApplyTraceSettings(const inference::TraceSettingRequest& request, TraceSampling* sampling) {
  if (!request.model_name().empty()) {
    return MakeError(StatusCode::kInvalidArgument,
                     "trace settings are the server's: they can't be changed for one model");
  }
  if (sampling == nullptr) {
    return MakeError(StatusCode::kFailedPrecondition,
                     "nothing is traced: the server was started without --trace-endpoint");
  }
  const MutexLock lock(changing);
  TraceSettings settings = sampling->Current();
  for (const auto& [name, value] : request.settings()) {
    SWIZZLE_RETURN_IF_ERROR(Set(name, value, sampling->first(), settings));
  }
  sampling->Change(settings);
  Log(LogLevel::kInfo, "trace settings changed",
      {{"level", settings.on ? "TIMESTAMPS" : "OFF"}, {"rate", OneIn(settings.share)}, {"count", settings.count}});
  return absl::OkStatus();
}

inference::TraceSettingResponse DescribeTraceSettings(const TraceSampling* sampling) {
  const TraceSettings settings = sampling == nullptr ? TraceSettings{.on = false} : sampling->Current();
  inference::TraceSettingResponse response;
  auto& all = *response.mutable_settings();
  all["trace_level"].add_value(settings.on ? "TIMESTAMPS" : "OFF");
  all["trace_rate"].add_value(OneIn(settings.share));
  all["trace_count"].add_value(std::to_string(settings.count));
  for (const auto& [name, value] : FixedSettings()) all[name].add_value(value);
  return response;
}

}  // namespace swizzle

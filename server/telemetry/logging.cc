#include "server/telemetry/logging.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <array>
#include <atomic>
#include <memory>
#include <nlohmann/json.hpp>

#include "server/libraries/versions.h"
#include "server/telemetry/event_budget.h"
#include "server/threading/clock.h"

namespace swizzle {
namespace {

// Of gRPC's warnings, which who connects can cause.
constexpr int kGrpcEventsASecond = 10;

// What each line looks up. The four are changed one after the other: a line goes by the old or the new of each.
struct LiveSettings {
  std::atomic<LogFormat> format = LogFormat::kText;
  std::atomic<bool> error = true, warning = true, info = true;
  std::atomic<uint32_t> verbose_level = 0;

  void Store(const LogSettings& settings) {
    format = settings.format;
    error = settings.error;
    warning = settings.warning;
    info = settings.info;
    verbose_level = settings.verbose_level;
  }
  bool Has(LogLevel level) const {
    switch (level) {
      case LogLevel::kDebug:
        return verbose_level > 0;
      case LogLevel::kInfo:
        return info;
      case LogLevel::kWarning:
        return warning;
      case LogLevel::kError:
        return error;
    }
    return true;
  }
};

LiveSettings live;
LogSettings first;

// One for each format, by LogFormat; empty before InitLogging. All write to standard error, a line at a time.
std::array<std::shared_ptr<spdlog::logger>, 3> loggers;

spdlog::logger& LoggerOf(LogFormat format) {
  const auto& logger = loggers[static_cast<size_t>(format)];
  return logger == nullptr ? *spdlog::default_logger_raw() : *logger;
}

const char* PatternOf(LogFormat format) {
  switch (format) {
    case LogFormat::kText:
      return "%Y-%m-%d %H:%M:%S.%e %^%-7l%$ %v";
    case LogFormat::kJson:
      return R"({"time":"%Y-%m-%dT%H:%M:%S.%f%z","level":"%l",%v})";
    case LogFormat::kIsoText:
      return "%Y-%m-%dT%H:%M:%S.%e%z %^%-7l%$ %v";
  }
  return "%v";
}

// Whatever bytes `text` holds, the result is a valid JSON string.
std::string JsonString(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

bool IsPlain(std::string_view text) {
  if (text.empty()) return false;
  for (const char c : text) {
    if (c <= ' ' || c == '"' || c == '=' || c == '\\' || c == 127) return false;
  }
  return true;
}

spdlog::level::level_enum SpdlogLevel(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

void WriteEvent(LogLevel level, std::string_view message, std::span<const LogField> fields) {
  if (!live.Has(level)) return;
  const LogFormat format = live.format;
  LoggerOf(format).log(SpdlogLevel(level), "{}", FormatLogEvent(format, message, fields));
}

// gRPC reports as errors what concerns one connection or listener; what matters of it reaches our callers as status.
void LogGrpc(bool is_error, std::string_view text) {
  if (!is_error) return Log(LogLevel::kDebug, "grpc", {{"detail", text}});
  static EventBudget budget(kGrpcEventsASecond);
  const EventBudget::Answer answer = budget.Ask(Clock::Real().Now());
  if (!answer.may_log) return;
  if (answer.left_out == 0) return Log(LogLevel::kWarning, "grpc", {{"detail", text}});
  Log(LogLevel::kWarning, "grpc", {{"detail", text}, {"left_out_before", answer.left_out}});
}

}  // namespace

std::string FormatLogEvent(LogFormat format, std::string_view message, std::span<const LogField> fields) {
  const bool json = format == LogFormat::kJson;
  std::string line = json ? "\"message\":" + JsonString(message) : std::string(message);
  for (const LogField& field : fields) {
    const bool bare = field.is_number || (!json && IsPlain(field.value));
    line += json ? "," + JsonString(field.key) + ":" : " " + std::string(field.key) + "=";
    line += bare ? field.value : JsonString(field.value);
  }
  return line;
}

void InitLogging(LogFormat format, LogLevel level) {
  for (const LogFormat each : {LogFormat::kText, LogFormat::kJson, LogFormat::kIsoText}) {
    auto logger = std::make_shared<spdlog::logger>("swizzle", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    logger->set_level(spdlog::level::debug);
    logger->set_pattern(PatternOf(each));
    logger->flush_on(spdlog::level::debug);
    loggers[static_cast<size_t>(each)] = std::move(logger);
  }
  spdlog::set_default_logger(loggers[static_cast<size_t>(format)]);
  first = {.format = format,
           .error = true,
           .warning = level <= LogLevel::kWarning,
           .info = level <= LogLevel::kInfo,
           .verbose_level = level <= LogLevel::kDebug ? 1u : 0u};
  live.Store(first);
  SetLogWriter(WriteEvent);
  SetGrpcLog(LogGrpc);
}

LogSettings CurrentLogSettings() {
  return {.format = live.format,
          .error = live.error,
          .warning = live.warning,
          .info = live.info,
          .verbose_level = live.verbose_level};
}

LogSettings FirstLogSettings() { return first; }

void ChangeLogSettings(const LogSettings& settings) { live.Store(settings); }

void LogRecord(std::string_view message, std::span<const LogField> fields) {
  LoggerOf(LogFormat::kJson).log(spdlog::level::info, "{}", FormatLogEvent(LogFormat::kJson, message, fields));
}

void FlushLog() { LoggerOf(live.format).flush(); }

}  // namespace swizzle

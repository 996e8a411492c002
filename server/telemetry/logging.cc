#include "server/telemetry/logging.h"

#include <grpc/support/log.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <memory>
#include <nlohmann/json.hpp>

#include "server/telemetry/event_budget.h"
#include "server/threading/clock.h"

namespace swizzle {
namespace {

// Of gRPC's warnings, which who connects can cause.
constexpr int kGrpcEventsASecond = 10;

std::atomic<LogFormat> log_format{LogFormat::kText};

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

// gRPC reports as errors what concerns one connection or listener; what matters of it reaches our callers as status.
void LogGrpc(gpr_log_func_args* args) {
  const LogLevel level = args->severity == GPR_LOG_SEVERITY_ERROR ? LogLevel::kWarning : LogLevel::kDebug;
  if (level == LogLevel::kDebug) return Log(level, "grpc", {{"detail", args->message}});
  static EventBudget budget(kGrpcEventsASecond);
  const EventBudget::Answer answer = budget.Ask(Clock::Real().Now());
  if (!answer.may_log) return;
  if (answer.left_out == 0) return Log(level, "grpc", {{"detail", args->message}});
  Log(level, "grpc", {{"detail", args->message}, {"left_out_before", answer.left_out}});
}

}  // namespace

std::string FormatLogEvent(LogFormat format, std::string_view message, std::initializer_list<LogField> fields) {
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
  log_format = format;
  auto logger = std::make_shared<spdlog::logger>("swizzle", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  logger->set_level(SpdlogLevel(level));
  logger->set_pattern(format == LogFormat::kJson ? R"({"time":"%Y-%m-%dT%H:%M:%S.%f%z","level":"%l",%v})"
                                                 : "%Y-%m-%d %H:%M:%S.%e %^%-7l%$ %v");
  logger->flush_on(spdlog::level::debug);
  spdlog::set_default_logger(std::move(logger));
  gpr_set_log_function(LogGrpc);
}

void Log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields) {
  spdlog::logger& logger = *spdlog::default_logger_raw();
  if (!logger.should_log(SpdlogLevel(level))) return;
  logger.log(SpdlogLevel(level), "{}", FormatLogEvent(log_format, message, fields));
}

void FlushLog() { spdlog::default_logger_raw()->flush(); }

}  // namespace swizzle

// The server's log: one line an event, on standard error, as text or as JSON.
//
// An event is a fixed message and named fields: `model loaded model=mobilenet version=1 layers=28`, or
// `{"time":"...","level":"info","message":"model loaded","model":"mobilenet",...}`. Thread-safe after InitLogging. What
// is written may be changed at any time; a line is of one format throughout. spdlog is included only by logging.cc.
#ifndef SWIZZLE_SERVER_TELEMETRY_LOGGING_H_
#define SWIZZLE_SERVER_TELEMETRY_LOGGING_H_

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "server/telemetry/log_event.h"

namespace swizzle {

enum class LogFormat { kText, kJson, kIsoText };  // the last: as text, with times as ISO 8601 writes them

// Which events are written, and how.
struct LogSettings {
  LogFormat format = LogFormat::kText;
  bool error = true, warning = true, info = true;
  uint32_t verbose_level = 0;  // 0: no events for debugging, any other: all

  friend bool operator==(const LogSettings&, const LogSettings&) = default;
};

// Sets the process's log up, which nothing is written to before; the first thing main does. Messages of gRPC's own go
// to the same log.
void InitLogging(LogFormat format, LogLevel level);

LogSettings CurrentLogSettings();
// What the process was started with.
LogSettings FirstLogSettings();
void ChangeLogSettings(const LogSettings& settings);

// A line of a log of its own beside the events: always written, and always JSON.
void LogRecord(std::string_view message, std::span<const LogField> fields);

// Returns once all that was logged is written.
void FlushLog();

// The line without time and level, as Log writes it. Text values with spaces or quotes are quoted.
std::string FormatLogEvent(LogFormat format, std::string_view message, std::span<const LogField> fields);
inline std::string FormatLogEvent(LogFormat format, std::string_view message, std::initializer_list<LogField> fields) {
  return FormatLogEvent(format, message, std::span(fields.begin(), fields.size()));
}

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_TELEMETRY_LOGGING_H_

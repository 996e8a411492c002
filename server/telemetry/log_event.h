// Events that are logged, by whatever writes them: logging.h does in a server, and nothing does until it is told to. An
// event is a fixed message and named fields. Thread-safe.
#ifndef SWIZZLE_SERVER_TELEMETRY_LOG_EVENT_H_
#define SWIZZLE_SERVER_TELEMETRY_LOG_EVENT_H_

#include <concepts>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "kernels/base/status.h"

namespace swizzle {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// Numbers stay numbers in JSON.
struct LogField {
  LogField(std::string_view field_key, std::string_view text) : key(field_key), value(text) {}
  template <typename Number>
  requires std::integral<Number> || std::floating_point<Number> LogField(std::string_view field_key, Number number)
      : key(field_key), value(Concat(number)), is_number(true) {}

  std::string_view key;
  std::string value;
  bool is_number = false;
};

void Log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields = {});

// Gets all events from now on, from any thread; null: they are dropped.
using LogWriter = void (*)(LogLevel level, std::string_view message, std::span<const LogField> fields);
void SetLogWriter(LogWriter writer);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_TELEMETRY_LOG_EVENT_H_

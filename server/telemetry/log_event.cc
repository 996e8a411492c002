#include "server/telemetry/log_event.h"

#include <atomic>

namespace swizzle {
namespace {

std::atomic<LogWriter> log_writer = nullptr;

}  // namespace

void Log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields) {
  if (const LogWriter writer = log_writer) writer(level, message, std::span(fields.begin(), fields.size()));
}

void SetLogWriter(LogWriter writer) { log_writer = writer; }

}  // namespace swizzle

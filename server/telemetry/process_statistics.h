// What Linux says of this process, for the metrics process_*.
#ifndef SWIZZLE_SERVER_TELEMETRY_PROCESS_STATISTICS_H_
#define SWIZZLE_SERVER_TELEMETRY_PROCESS_STATISTICS_H_

#include <optional>
#include <string>

namespace swizzle {

struct ProcessStatistics {
  double cpu_seconds = 0;  // user and system
  double resident_bytes = 0;
  double virtual_bytes = 0;
  double start_time_seconds = 0;  // Unix time
  double open_fds = 0;
  double max_fds = 0;
};

// Nothing where /proc cannot be read.
std::optional<ProcessStatistics> ReadProcessStatistics();

// The part that /proc/<pid>/stat gives; start_time_seconds counts from boot. Nothing if `stat` is malformed.
// The program's name, in parentheses, may hold anything.
std::optional<ProcessStatistics> ParseProcessStat(const std::string& stat, double ticks_per_second, double page_bytes);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_TELEMETRY_PROCESS_STATISTICS_H_

#include "server/telemetry/process_statistics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

namespace swizzle {
namespace {

std::string ReadFile(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Unix time of the machine's start.
double BootTimeSeconds() {
  std::ifstream file("/proc/stat");
  std::string key;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    double value = 0;
    if (words >> key >> value && key == "btime") return value;
  }
  return 0;
}

double OpenFileDescriptors() {
  std::error_code error;
  double count = 0;
  for (std::filesystem::directory_iterator entry("/proc/self/fd", error), end; !error && entry != end;
       entry.increment(error)) {
    ++count;
  }
  return count;
}

double MaxFileDescriptors() {
  rlimit limit = {};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? static_cast<double>(limit.rlim_cur) : 0;
}

}  // namespace

std::optional<ProcessStatistics> ParseProcessStat(const std::string& stat, double ticks_per_second, double page_bytes) {
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream words(stat.substr(name_end + 1));
  std::string state;
  words >> state;                     // field 3 of proc(5)
  std::array<double, 25> field = {};  // by proc(5)'s numbers
  for (size_t i = 4; i < field.size(); ++i) {
    if (!(words >> field[i])) return std::nullopt;
  }
  ProcessStatistics result;
  result.cpu_seconds = (field[14] + field[15]) / ticks_per_second;
  result.start_time_seconds = field[22] / ticks_per_second;
  result.virtual_bytes = field[23];
  result.resident_bytes = field[24] * page_bytes;
  return result;
}

std::optional<ProcessStatistics> ReadProcessStatistics() {
  std::optional<ProcessStatistics> result =
      ParseProcessStat(ReadFile("/proc/self/stat"), static_cast<double>(sysconf(_SC_CLK_TCK)),
                       static_cast<double>(sysconf(_SC_PAGESIZE)));
  if (!result.has_value()) return std::nullopt;
  result->start_time_seconds += BootTimeSeconds();
  result->open_fds = OpenFileDescriptors();
  result->max_fds = MaxFileDescriptors();
  return result;
}

}  // namespace swizzle

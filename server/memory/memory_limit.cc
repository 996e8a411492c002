#include "server/memory/memory_limit.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <sstream>

namespace swizzle {
namespace {

namespace fs = std::filesystem;

// Version 1 writes "none" as the largest number of whole pages.
constexpr int64_t kNoLimit = int64_t{1} << 60;

std::string ReadText(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// None for "max", for what is no number, and for numbers that mean none.
std::optional<int64_t> LimitIn(const fs::path& file) {
  const std::string text = ReadText(file);
  int64_t limit = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), limit);
  if (error != std::errc() || limit <= 0 || limit >= kNoLimit) return std::nullopt;
  return limit;
}

std::optional<int64_t> Smaller(std::optional<int64_t> a, std::optional<int64_t> b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

// Of `group`, a path below `root`, and of the groups above it, root included.
std::optional<int64_t> LimitUpTo(const fs::path& root, fs::path group, const char* name) {
  std::optional<int64_t> limit = LimitIn(root / name);
  for (; !group.empty(); group = group.parent_path()) limit = Smaller(limit, LimitIn(root / group / name));
  return limit;
}

bool NamesMemory(const std::string& controllers) {
  std::istringstream in(controllers);
  for (std::string name; std::getline(in, name, ',');) {
    if (name == "memory") return true;
  }
  return false;
}

}  // namespace

std::optional<int64_t> CgroupMemoryLimit(const std::string& membership, const fs::path& mount) {
  std::optional<int64_t> limit;
  std::istringstream lines(membership);
  for (std::string line; std::getline(lines, line);) {  // "hierarchy:controllers:/path"
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const fs::path group = fs::path(line.substr(second + 1)).relative_path();
    if (controllers.empty()) {
      limit = Smaller(limit, LimitUpTo(mount, group, "memory.max"));
      limit = Smaller(limit, LimitUpTo(mount / "unified", group, "memory.max"));
    }
    if (NamesMemory(controllers)) limit = Smaller(limit, LimitUpTo(mount / "memory", group, "memory.limit_in_bytes"));
  }
  return limit;
}

int64_t MemoryLimit() {
  const int64_t machine = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  return std::min(machine, CgroupMemoryLimit(ReadText("/proc/self/cgroup"), "/sys/fs/cgroup").value_or(machine));
}

int64_t ResidentBytes() {
  std::istringstream text(ReadText("/proc/self/statm"));
  int64_t all = 0, resident = 0;
  text >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

}  // namespace swizzle

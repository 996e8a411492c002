#include "server/memory/memory_limit.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <sstream>

#include "kernels/base/control_groups.h"

namespace swizzle {
namespace {

namespace fs = std::filesystem;

// Version 1 writes "none" as the largest number of whole pages.
constexpr int64_t kNoLimit = int64_t{1} << 60;

// None for "max", for what is no number, and for numbers that mean none.
std::optional<int64_t> LimitIn(const fs::path& file) {
  const std::string text = ReadKernelFile(file);
  int64_t limit = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), limit);
  if (error != std::errc() || limit <= 0 || limit >= kNoLimit) return std::nullopt;
  return limit;
}

}  // namespace

std::optional<int64_t> CgroupMemoryLimit(const std::string& membership, const fs::path& mount) {
  std::optional<int64_t> limit;
  for (const fs::path& group : ControlGroups(membership, mount, "memory")) {
    limit = Smaller(limit, LimitIn(group / "memory.max"));
    limit = Smaller(limit, LimitIn(group / "memory.limit_in_bytes"));
  }
  return limit;
}

int64_t MemoryLimit() {
  const int64_t machine = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  return std::min(machine, CgroupMemoryLimit(ReadKernelFile("/proc/self/cgroup"), "/sys/fs/cgroup").value_or(machine));
}

int64_t ResidentBytes() {
  std::istringstream text(ReadKernelFile("/proc/self/statm"));
  int64_t all = 0, resident = 0;
  text >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

}  // namespace swizzle

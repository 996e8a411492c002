#include "kernels/cpu/runtime/available_cpus.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <sstream>

namespace swizzle {
namespace cpu {
namespace {

namespace fs = std::filesystem;

std::string ReadText(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Processors granted by a "quota period" pair in microseconds; none if the quota is "max" or -1, or the text is not
// such a pair.
std::optional<double> ParseQuota(const std::string& text) {
  std::istringstream in(text);
  double quota = 0;
  double period = 0;
  if (!(in >> quota >> period) || quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

std::optional<double> GroupQuota(const fs::path& group) {
  if (const auto quota = ParseQuota(ReadText(group / "cpu.max"))) return quota;
  return ParseQuota(ReadText(group / "cpu.cfs_quota_us") + " " + ReadText(group / "cpu.cfs_period_us"));
}

std::optional<double> Smaller(std::optional<double> a, std::optional<double> b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

// The smallest quota of `group`, a path below `root`, and of the groups above it, root included.
std::optional<double> QuotaUpTo(const fs::path& root, fs::path group) {
  std::optional<double> quota = GroupQuota(root);
  for (; !group.empty(); group = group.parent_path()) quota = Smaller(quota, GroupQuota(root / group));
  return quota;
}

bool NamesCpu(const std::string& controllers) {
  std::istringstream in(controllers);
  for (std::string name; std::getline(in, name, ',');) {
    if (name == "cpu") return true;
  }
  return false;
}

// 0: of the calling thread.
std::vector<int> MaskOf(pid_t thread) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(thread, sizeof(set), &set) != 0) return {0};
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

}  // namespace

std::vector<int> AffinityMask() { return MaskOf(getpid()); }

std::vector<int> AffinityMaskOfThisThread() { return MaskOf(0); }

std::optional<double> CgroupCpuQuota(const std::string& membership, const fs::path& mount) {
  std::optional<double> quota;
  std::istringstream lines(membership);
  for (std::string line; std::getline(lines, line);) {  // "hierarchy:controllers:/path"
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const fs::path group = fs::path(line.substr(second + 1)).relative_path();
    if (controllers.empty()) quota = Smaller(quota, QuotaUpTo(mount, group));
    if (NamesCpu(controllers)) {
      quota = Smaller(quota, QuotaUpTo(mount / "cpu", group));
      quota = Smaller(quota, QuotaUpTo(mount / controllers, group));
    }
  }
  return quota;
}

}  // namespace cpu

int AffinityCpus() { return static_cast<int>(cpu::AffinityMask().size()); }

int AvailableCpus() {
  const int cpus = AffinityCpus();
  const auto quota = cpu::CgroupCpuQuota(cpu::ReadText("/proc/self/cgroup"), "/sys/fs/cgroup");
  return quota ? std::clamp(static_cast<int>(*quota), 1, cpus) : cpus;
}

}  // namespace swizzle

#include "kernels/cpu/runtime/available_cpus.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "kernels/base/control_groups.h"

namespace swizzle {
namespace cpu {
namespace {

namespace fs = std::filesystem;

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
  if (const auto quota = ParseQuota(ReadKernelFile(group / "cpu.max"))) return quota;
  return ParseQuota(ReadKernelFile(group / "cpu.cfs_quota_us") + " " + ReadKernelFile(group / "cpu.cfs_period_us"));
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
  for (const fs::path& group : ControlGroups(membership, mount, "cpu")) quota = Smaller(quota, GroupQuota(group));
  return quota;
}

}  // namespace cpu

int AffinityCpus() { return static_cast<int>(cpu::AffinityMask().size()); }

int AvailableCpus() {
  const int cpus = AffinityCpus();
  const auto quota = cpu::CgroupCpuQuota(ReadKernelFile("/proc/self/cgroup"), "/sys/fs/cgroup");
  return quota ? std::clamp(static_cast<int>(*quota), 1, cpus) : cpus;
}

}  // namespace swizzle

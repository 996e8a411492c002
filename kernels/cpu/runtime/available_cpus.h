// Which processors a process may use, and how many its cgroup lets it.
#ifndef SWIZZLE_KERNELS_CPU_RUNTIME_AVAILABLE_CPUS_H_
#define SWIZZLE_KERNELS_CPU_RUNTIME_AVAILABLE_CPUS_H_

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace swizzle {

// Processors in this process's affinity mask. At least 1.
int AffinityCpus();

// Processors that this process may use: the affinity mask, cut by the cgroup's cpu.max. At least 1.
int AvailableCpus();

namespace cpu {

// The smallest quota, in processors, of a process's cgroup and the groups above it (control_groups.h); none if there is
// no limit. Knows version 2 (cpu.max) and version 1 (cpu.cfs_quota_us).
std::optional<double> CgroupCpuQuota(const std::string& membership, const std::filesystem::path& mount);

// Numbers of the processors in an affinity mask, ascending. Not empty. The process's is its first thread's: others may
// have been pinned.
std::vector<int> AffinityMask();
std::vector<int> AffinityMaskOfThisThread();

}  // namespace cpu
}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_CPU_RUNTIME_AVAILABLE_CPUS_H_

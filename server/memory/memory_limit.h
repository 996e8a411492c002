// How much memory this process may take: what its control groups (versions 1 and 2) and the machine leave it.
#ifndef SWIZZLE_SERVER_MEMORY_MEMORY_LIMIT_H_
#define SWIZZLE_SERVER_MEMORY_MEMORY_LIMIT_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace swizzle {

// The machine's memory, or the least limit of a control group that this process is in.
int64_t MemoryLimit();

// The part that control groups say. `membership` is the text of /proc/self/cgroup, `mount` where they are mounted.
// Nothing where none of them has a limit.
std::optional<int64_t> CgroupMemoryLimit(const std::string& membership, const std::filesystem::path& mount);

// What of this process is in memory now.
int64_t ResidentBytes();

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_MEMORY_MEMORY_LIMIT_H_

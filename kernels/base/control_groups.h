// Where the limits of this process's control groups stand: the part that limits of processors and of memory share.
// Functions only.
#ifndef SWIZZLE_KERNELS_BASE_CONTROL_GROUPS_H_
#define SWIZZLE_KERNELS_BASE_CONTROL_GROUPS_H_

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace swizzle {

// Folders of the groups that a process is in for `controller` ("cpu", "memory"), and of the groups above each, the
// mount's root included: the least limit in any of them holds. `membership` is the text of /proc/self/cgroup; `mount`
// is where the cgroup file systems are, /sys/fs/cgroup. Knows version 2 and version 1, under the controller's own
// mount. Some folders may not be there: in a container the path in `membership` may be the host's, and the mount's root
// is then the group.
std::vector<std::filesystem::path> ControlGroups(const std::string& membership, const std::filesystem::path& mount,
                                                 std::string_view controller);

// The one that holds; none if there are none.
template <typename Limit>
std::optional<Limit> Smaller(std::optional<Limit> a, std::optional<Limit> b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

// A small file of /proc or of a control group; empty where it can't be read.
std::string ReadKernelFile(const std::filesystem::path& path);

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_BASE_CONTROL_GROUPS_H_

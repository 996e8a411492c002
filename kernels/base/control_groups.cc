#include "kernels/base/control_groups.h"

#include <fstream>
#include <iterator>
#include <sstream>

namespace swizzle {
namespace {

namespace fs = std::filesystem;

// Of `group`, a path below `root`, and of the groups above it.
void AddUpTo(const fs::path& root, fs::path group, std::vector<fs::path>& folders) {
  folders.push_back(root);
  for (; !group.empty(); group = group.parent_path()) folders.push_back(root / group);
}

bool Names(const std::string& controllers, std::string_view wanted) {
  std::istringstream in(controllers);
  for (std::string name; std::getline(in, name, ',');) {
    if (name == wanted) return true;
  }
  return false;
}

}  // namespace

std::vector<fs::path> ControlGroups(const std::string& membership, const fs::path& mount, std::string_view controller) {
  std::vector<fs::path> folders;
  std::istringstream lines(membership);
  for (std::string line; std::getline(lines, line);) {  // "hierarchy:controllers:/path"
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const fs::path group = fs::path(line.substr(second + 1)).relative_path();
    if (controllers.empty()) {
      AddUpTo(mount, group, folders);
      AddUpTo(mount / "unified", group, folders);
    } else if (Names(controllers, controller)) {
      AddUpTo(mount / controller, group, folders);
      AddUpTo(mount / controllers, group, folders);
    }
  }
  return folders;
}

std::string ReadKernelFile(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace swizzle

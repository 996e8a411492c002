#include "model_loader/files/contained_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

namespace swizzle {
namespace {

// The components of a location that stays below its folder; none if it does not.
std::vector<std::string> Components(const std::string& location) {
  std::vector<std::string> components;
  for (size_t begin = 0; begin <= location.size();) {
    const size_t end = std::min(location.find('/', begin), location.size());
    const std::string component = location.substr(begin, end - begin);
    if (component.empty() || component == "..") return {};
    if (component != ".") components.push_back(component);
    begin = end + 1;
  }
  return components;
}

// Of the call that just failed; `file` is how messages call it.
Status OpenError(const std::string& file) {
  const int error = errno;
  if (error == ELOOP || error == ENOTDIR) {
    return InvalidArgument(file,
                           " is, or lies behind, a symbolic link or something that is no folder: "
                           "put the file itself beside the model");
  }
  if (error == ENOENT) {
    return MakeError(StatusCode::kNotFound, file, " is not there: copy it along with the model");
  }
  return MakeError(absl::ErrnoToStatusCode(error), file, " cannot be opened: ", std::strerror(error));
}

StatusOr<FileDescriptor> OpenBelow(const std::filesystem::path& folder, const std::string& location,
                                   const std::string& file) {
  std::vector<std::string> components = Components(location);
  if (components.empty()) {
    return InvalidArgument(file, " is not below the model's folder: it must be a relative path without '..'");
  }
  const std::string name = std::move(components.back());
  components.pop_back();
  FileDescriptor parent(open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  for (const std::string& component : components) {
    if (!parent.is_open()) break;
    parent = FileDescriptor(openat(parent.get(), component.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  }
  if (!parent.is_open()) return OpenError(file);
  // Not blocking: a pipe would wait for its writer.
  FileDescriptor opened(openat(parent.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!opened.is_open()) return OpenError(file);
  return opened;
}

}  // namespace

StatusOr<ContainedFile> ContainedFile::Open(const std::filesystem::path& folder, const std::string& location,
                                            const std::string& what) {
  const std::string file = Concat(what, " '", location, "'");
  SWIZZLE_ASSIGN_OR_RETURN(FileDescriptor opened, OpenBelow(folder, location, file));
  struct stat status;
  if (fstat(opened.get(), &status) != 0) return OpenError(file);
  if (!S_ISREG(status.st_mode)) return InvalidArgument(file, " is not a regular file");
  if (status.st_nlink > 1) {
    return InvalidArgument(file, " has other names (hard links), under which it may belong to somebody else: copy it");
  }
  return ContainedFile(std::move(opened), location, status.st_size);
}

bool ContainedFile::ReadAt(int64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t read = pread(file_.get(), bytes.data(), bytes.size(), offset);
    if (read < 0 && errno == EINTR) continue;
    if (read <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(read));
    offset += read;
  }
  return true;
}

}  // namespace swizzle

#include "model_loader/files/contained_file.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <system_error>
#include <vector>

#include "model_loader/files/printable_name.h"

namespace swizzle {
namespace {

namespace fs = std::filesystem;

// Not blocking: a pipe would wait for its writer.
constexpr int kReadOnly = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
constexpr int kFolder = O_PATH | O_DIRECTORY | O_CLOEXEC;

// A blob is called after the SHA-1 or the SHA-256 of its content.
bool IsBlobName(std::string_view name) {
  return (name.size() == 40 || name.size() == 64) &&
         name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool IsSameFolder(const FileDescriptor& a, const FileDescriptor& b) {
  struct stat of_a, of_b;
  return a.is_open() && b.is_open() && fstat(a.get(), &of_a) == 0 && fstat(b.get(), &of_b) == 0 &&
         of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

// What the link `name` in `parent` shows, if that is a blob of the store. It is opened within the store, so that a link
// that is changed meanwhile leads nowhere else.
FileDescriptor OpenBlob(const FileDescriptor& parent, const std::string& name, const fs::path& blobs) {
  std::array<char, PATH_MAX> text;
  const ssize_t size = readlinkat(parent.get(), name.c_str(), text.data(), text.size());
  if (size <= 0) return {};
  const fs::path target(std::string(text.data(), static_cast<size_t>(size)));
  const std::string blob = target.filename().string();
  if (!IsBlobName(blob) || !target.has_parent_path()) return {};
  const FileDescriptor shown(openat(parent.get(), target.parent_path().c_str(), kFolder));
  const FileDescriptor store(open(blobs.c_str(), kFolder | O_NOFOLLOW));
  if (!IsSameFolder(shown, store)) {
    errno = ELOOP;
    return {};
  }
  return FileDescriptor(openat(store.get(), blob.c_str(), kReadOnly));
}

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

StatusOr<FileDescriptor> OpenBelow(const ModelFolder& folder, const std::string& location, const std::string& file) {
  std::vector<std::string> components = Components(location);
  if (components.empty()) {
    return InvalidArgument(file, " is not below the model's folder: it must be a relative path without '..'");
  }
  const std::string name = std::move(components.back());
  components.pop_back();
  FileDescriptor parent(open(folder.path.c_str(), kFolder));
  for (const std::string& component : components) {
    if (!parent.is_open()) break;
    parent = FileDescriptor(openat(parent.get(), component.c_str(), kFolder | O_NOFOLLOW));
  }
  if (!parent.is_open()) return OpenError(file);
  FileDescriptor opened(openat(parent.get(), name.c_str(), kReadOnly));
  if (!opened.is_open() && errno == ELOOP && !folder.blobs.empty()) opened = OpenBlob(parent, name, folder.blobs);
  if (!opened.is_open()) return OpenError(file);
  return opened;
}

}  // namespace

ModelFolder ModelFolder::Of(const fs::path& file) {
  ModelFolder folder{file.has_parent_path() ? file.parent_path() : ".", {}};
  std::error_code error;
  if (!fs::is_symlink(fs::symlink_status(file, error))) return folder;
  const fs::path blob = fs::canonical(file, error);
  if (!error && IsBlobName(blob.filename().string()) && blob.parent_path().filename() == "blobs") {
    folder.blobs = blob.parent_path();
  }
  return folder;
}

StatusOr<ContainedFile> ContainedFile::Open(const ModelFolder& folder, const std::string& location,
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

StatusOr<std::string> ContainedFile::Read(const ModelFolder& folder, const std::string& location,
                                          const std::string& what, int64_t most) {
  SWIZZLE_RETURN_IF_ERROR(CheckName(location, what));
  SWIZZLE_ASSIGN_OR_RETURN(const ContainedFile file, Open(folder, location, what));
  if (file.bytes() > most) {
    return InvalidArgument(what, " '", location, "' has ", file.bytes(), " bytes; it may have ", most, " at most");
  }
  std::string bytes(static_cast<size_t>(file.bytes()), '\0');
  if (file.ReadAt(0, std::as_writable_bytes(std::span(bytes)))) return bytes;
  return MakeError(StatusCode::kFailedPrecondition, what, " '", location,
                   "' cannot be read, or became shorter meanwhile");
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

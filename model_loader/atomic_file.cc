#include "model_loader/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

namespace swizzle {
namespace {

Status ErrnoError(const char* what, const std::filesystem::path& file) {
  const int error = errno;
  return MakeError(absl::ErrnoToStatusCode(error), "cannot ", what, " ", file.string(), ": ", std::strerror(error));
}

// A file descriptor, closed at the end of its scope.
class Descriptor {
 public:
  Descriptor(const std::filesystem::path& path, int flags) : fd_(open(path.c_str(), flags | O_CLOEXEC, 0666)) {}
  ~Descriptor() { Close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  bool is_open() const { return fd_ >= 0; }

  bool Write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t written = write(fd_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return false;
      bytes = bytes.subspan(static_cast<size_t>(written));
    }
    return true;
  }

  bool Flush() { return fsync(fd_) == 0; }

  bool Close() { return fd_ < 0 || close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

Status WriteNew(const std::filesystem::path& path, const std::filesystem::path& target,
                std::span<const std::byte> bytes) {
  Descriptor descriptor(path, O_WRONLY | O_CREAT | O_EXCL);
  if (!descriptor.is_open()) return ErrnoError("write", target);
  if (!descriptor.Write(bytes) || !descriptor.Flush() || !descriptor.Close()) return ErrnoError("write", target);
  return {};
}

// Makes the rename itself last. Some file systems can't: then it lasts a little later.
void FlushFolder(const std::filesystem::path& file) {
  Descriptor folder(file.has_parent_path() ? file.parent_path() : ".", O_RDONLY | O_DIRECTORY);
  if (folder.is_open()) folder.Flush();
}

}  // namespace

Status WriteFileAtomically(const std::filesystem::path& file, std::span<const std::byte> bytes) {
  std::filesystem::path temporary = file;
  temporary.replace_filename("." + file.filename().string() + "." + std::to_string(getpid()) + ".tmp");
  unlink(temporary.c_str());  // what an earlier process of this number left when it was killed
  Status status = WriteNew(temporary, file, bytes);
  if (status.ok() && std::rename(temporary.c_str(), file.c_str()) != 0) status = ErrnoError("write", file);
  if (status.ok()) {
    FlushFolder(file);
  } else {
    unlink(temporary.c_str());
  }
  return status;
}

}  // namespace swizzle

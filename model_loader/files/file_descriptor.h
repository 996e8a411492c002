// A POSIX file descriptor, closed at the end of its scope. Thread-compatible.
#ifndef SWIZZLE_MODEL_LOADER_FILES_FILE_DESCRIPTOR_H_
#define SWIZZLE_MODEL_LOADER_FILES_FILE_DESCRIPTOR_H_

#include <unistd.h>

#include <utility>

namespace swizzle {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  // Takes what open() and its like return; a negative number is no descriptor.
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() { Close(); }
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }

  bool is_open() const { return fd_ >= 0; }
  int get() const { return fd_; }
  // Whoever asks closes it.
  int Release() { return std::exchange(fd_, -1); }

  // False, with errno, where what was written could not be kept.
  bool Close() { return fd_ < 0 || close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_ = -1;
};

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_FILES_FILE_DESCRIPTOR_H_

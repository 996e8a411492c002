#include "server/rpc/shared_storage.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "model_loader/files/file_descriptor.h"
#include "model_loader/files/printable_name.h"

namespace swizzle {
namespace {

int64_t SizeOf(const FileDescriptor& file) {
  struct stat found = {};
  return fstat(file.get(), &found) == 0 ? static_cast<int64_t>(found.st_size) : 0;
}

Status Shrunk() { return InvalidArgument("it is smaller than when it was registered; do not shrink it while it is"); }

// A plain name below /dev/shm, with or without the slash that shm_open wants.
StatusOr<FileDescriptor> OpenFile(const std::string& key, const std::string& prefix) {
  const std::string name = key.starts_with('/') ? key.substr(1) : key;
  if (!name.starts_with(prefix) || name.find('/') != std::string::npos || name.find('\0') != std::string::npos) {
    return InvalidArgument("shared memory ", QuotedName(key), " may not be registered: its name has to begin with ",
                           QuotedName(prefix), ", and has no further slash");
  }
  FileDescriptor file(shm_open(("/" + name).c_str(), O_RDWR | O_CLOEXEC, 0));
  struct stat found = {};
  if (file.is_open() && fstat(file.get(), &found) == 0 && S_ISREG(found.st_mode)) return file;
  return InvalidArgument("shared memory ", QuotedName(key),
                         " cannot be opened; is it there, and may the server's user read and write it?");
}

class SharedFile final : public SharedStorage {
 public:
  SharedFile(FileDescriptor file, int64_t start) : file_(std::move(file)), start_(start) {}

  Status Read(int64_t offset, std::span<std::byte> to) const override {
    for (off_t at = start_ + offset; !to.empty();) {
      const ssize_t count = pread(file_.get(), to.data(), to.size(), at);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return Shrunk();
      to = to.subspan(static_cast<size_t>(count));
      at += count;
    }
    return absl::OkStatus();
  }

  // Writing beyond its end would make it larger again.
  Status Write(int64_t offset, std::span<const std::byte> from) const override {
    off_t at = start_ + offset;
    if (!IsWithin(at, static_cast<int64_t>(from.size()), SizeOf(file_))) return Shrunk();
    while (!from.empty()) {
      const ssize_t count = pwrite(file_.get(), from.data(), from.size(), at);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) {
        return MakeError(StatusCode::kResourceExhausted, "it cannot be written: there is no memory for it");
      }
      from = from.subspan(static_cast<size_t>(count));
      at += count;
    }
    return absl::OkStatus();
  }

 private:
  const FileDescriptor file_;
  const int64_t start_;
};

class SharedDevice final : public SharedStorage {
 public:
  explicit SharedDevice(std::unique_ptr<SharedDeviceMemory> memory) : memory_(std::move(memory)) {}

  Status Read(int64_t offset, std::span<std::byte> to) const override { return memory_->Read(offset, to); }
  Status Write(int64_t offset, std::span<const std::byte> from) const override { return memory_->Write(offset, from); }

 private:
  const std::unique_ptr<SharedDeviceMemory> memory_;
};

}  // namespace

StatusOr<std::unique_ptr<SharedStorage>> OpenSharedFile(const std::string& key, const std::string& prefix,
                                                        int64_t offset, int64_t bytes) {
  SWIZZLE_ASSIGN_OR_RETURN(FileDescriptor file, OpenFile(key, prefix));
  if (const int64_t all = SizeOf(file); bytes == 0 || !IsWithin(offset, bytes, all)) {
    return InvalidArgument("shared memory ", QuotedName(key), " has ", all, " bytes; a region of ", bytes,
                           " from byte ", offset, " on is not in it");
  }
  return std::make_unique<SharedFile>(std::move(file), offset);
}

StatusOr<std::unique_ptr<SharedStorage>> OpenSharedDevice(const OpenDeviceMemory& open, int64_t device,
                                                          std::string_view handle, int64_t bytes) {
  SWIZZLE_ASSIGN_OR_RETURN(std::unique_ptr<SharedDeviceMemory> memory, open(device, handle));
  if (bytes == 0 || bytes > memory->bytes()) {
    return InvalidArgument("the memory of this handle has ", memory->bytes(), " bytes; a region of ", bytes,
                           " is not in it");
  }
  return std::make_unique<SharedDevice>(std::move(memory));
}

}  // namespace swizzle

#include "model_loader/files/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <system_error>

#include "model_loader/files/file_descriptor.h"

namespace swizzle {
namespace {

Status ErrnoError(const char* what, const std::filesystem::path& file) {
  const int error = errno;
  return MakeError(absl::ErrnoToStatusCode(error), "cannot ", what, " ", file.string(), ": ", std::strerror(error));
}

FileDescriptor Open(const std::filesystem::path& path, int flags) {
  return FileDescriptor(open(path.c_str(), flags | O_CLOEXEC, 0666));
}

bool Write(const FileDescriptor& file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return true;
}

bool Flush(const FileDescriptor& file) { return fsync(file.get()) == 0; }

using Pieces = std::span<const std::span<const std::byte>>;

Status WriteNew(const std::filesystem::path& path, const std::filesystem::path& target, Pieces pieces) {
  FileDescriptor file = Open(path, O_WRONLY | O_CREAT | O_EXCL);
  const auto write = [&](std::span<const std::byte> piece) { return Write(file, piece); };
  if (!file.is_open() || !std::ranges::all_of(pieces, write) || !Flush(file) || !file.Close()) {
    return ErrnoError("write", target);
  }
  return {};
}

// Makes the rename itself last. Some file systems can't: then it lasts a little later.
void FlushFolder(const std::filesystem::path& file) {
  const FileDescriptor folder = Open(file.has_parent_path() ? file.parent_path() : ".", O_RDONLY | O_DIRECTORY);
  if (folder.is_open()) Flush(folder);
}

// The file that links lead to, which need not be there yet: else the first link would be replaced in its place.
StatusOr<std::filesystem::path> TargetOf(const std::filesystem::path& file) {
  constexpr int kMostLinks = 40;  // as the system follows
  std::filesystem::path target = file;
  std::error_code error;
  for (int links = 0; std::filesystem::is_symlink(target, error); ++links) {
    if (links == kMostLinks) {
      return MakeError(StatusCode::kFailedPrecondition, "cannot write ", file.string(), ": its links lead in a circle");
    }
    target = target.parent_path() / std::filesystem::read_symlink(target, error);
  }
  return target;
}

Status WriteAll(const std::filesystem::path& link, Pieces pieces) {
  SWIZZLE_ASSIGN_OR_RETURN(const std::filesystem::path file, TargetOf(link));
  std::filesystem::path temporary = file;
  temporary.replace_filename("." + file.filename().string() + "." + std::to_string(getpid()) + ".tmp");
  unlink(temporary.c_str());  // what an earlier process of this number left when it was killed
  Status status = WriteNew(temporary, file, pieces);
  if (status.ok() && std::rename(temporary.c_str(), file.c_str()) != 0) status = ErrnoError("write", file);
  if (status.ok()) {
    FlushFolder(file);
  } else {
    unlink(temporary.c_str());
  }
  return status;
}

}  // namespace

Status WriteFileAtomically(const std::filesystem::path& file, std::span<const std::byte> bytes) {
  return WriteAll(file, {&bytes, 1});
}

Status WriteFileAtomically(const std::filesystem::path& file, std::span<const std::vector<std::byte>> pieces) {
  return WriteAll(file, std::vector<std::span<const std::byte>>(pieces.begin(), pieces.end()));
}

Status MakeFolder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return InvalidArgument("cannot make the folder ", folder.string(), ": ", error.message());
  return {};
}

Status MakeFolderOf(const std::filesystem::path& file) {
  return file.has_parent_path() ? MakeFolder(file.parent_path()) : Status();
}

}  // namespace swizzle

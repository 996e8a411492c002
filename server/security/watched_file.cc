#include "server/security/watched_file.h"

#include <vector>

#include "model_loader/files/read_file.h"

namespace swizzle {
namespace {

constexpr int64_t kMostBytes = 1 << 20;

int64_t Nanoseconds(const timespec& time) { return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; }

}  // namespace

WatchedFile::Version WatchedFile::VersionOf(const std::filesystem::path& path) {
  struct stat found = {};
  if (stat(path.c_str(), &found) != 0) return {};
  return {found.st_dev, found.st_ino, found.st_size, Nanoseconds(found.st_mtim), Nanoseconds(found.st_ctim)};
}

bool WatchedFile::Changed() const {
  const Version now = VersionOf(path_);
  return now.size < 0 || now != read_;
}

StatusOr<std::string> WatchedFile::Read() {
  const Version before = VersionOf(path_);
  const StatusOr<std::vector<std::byte>> bytes = ReadFile(path_, kMostBytes);
  if (!bytes.ok()) return Annotate(bytes.status(), what_);
  if (VersionOf(path_) != before) return MakeError(StatusCode::kUnavailable, name(), " changed while it was read");
  read_ = before;
  return std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size());
}

}  // namespace swizzle

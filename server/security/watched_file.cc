#include "server/security/watched_file.h"

#include <sys/stat.h>

#include <vector>

#include "model_loader/files/read_file.h"

namespace swizzle {
namespace {

constexpr int64_t kMostBytes = 1 << 20;

}  // namespace

std::optional<WatchedFile::Version> WatchedFile::VersionOf(const std::filesystem::path& path) {
  struct stat found = {};
  if (stat(path.c_str(), &found) != 0) return std::nullopt;
  return Version{FileState::Of(found), Nanoseconds(found.st_ctim)};
}

bool WatchedFile::Changed() const {
  const std::optional<Version> now = VersionOf(path_);
  return !now || now != read_;
}

StatusOr<std::string> WatchedFile::Read() {
  const std::optional<Version> before = VersionOf(path_);
  const StatusOr<std::vector<std::byte>> bytes = ReadFile(path_, kMostBytes);
  if (!bytes.ok()) return Annotate(bytes.status(), what_);
  if (VersionOf(path_) != before) return MakeError(StatusCode::kUnavailable, name(), " changed while it was read");
  read_ = before;
  return std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size());
}

}  // namespace swizzle

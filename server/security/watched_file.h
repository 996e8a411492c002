// A small file that is read again when it has changed: certificates, keys and tokens.
//
// A change is seen by what the system says of the file that the path leads to: its inode, its size and its times.
// Kubernetes mounts a secret as links through ..data, which it renames into place: the path then leads to another file.
// Thread-compatible.
#ifndef SWIZZLE_SERVER_SECURITY_WATCHED_FILE_H_
#define SWIZZLE_SERVER_SECURITY_WATCHED_FILE_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "kernels/base/status.h"
#include "model_loader/files/file_state.h"

namespace swizzle {

class WatchedFile {
 public:
  // `what` it holds, for errors: "certificate".
  WatchedFile(std::filesystem::path path, std::string what) : path_(std::move(path)), what_(std::move(what)) {}

  const std::filesystem::path& path() const { return path_; }
  // "certificate PATH", as errors name it.
  std::string name() const { return Concat(what_, " ", path_.string()); }

  // Whether it is another file than when it was read last, or cannot be looked at. True before it was read.
  bool Changed() const;

  // All that is in it; an error names it. REQUIRES: it is a text of no more than a MiB.
  StatusOr<std::string> Read();

 private:
  // Whoever gives a file an old time, as copying does, changes the time of that.
  struct Version {
    FileState state;
    int64_t changed_ns = 0;
    bool operator==(const Version&) const = default;
  };
  // None if there is none.
  static std::optional<Version> VersionOf(const std::filesystem::path& path);

  std::filesystem::path path_;
  std::string what_;
  std::optional<Version> read_;
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_SECURITY_WATCHED_FILE_H_

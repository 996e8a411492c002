// What the system says of a file, by which a change of it is seen without reading it. Value type.
#ifndef SWIZZLE_MODEL_LOADER_FILES_FILE_STATE_H_
#define SWIZZLE_MODEL_LOADER_FILES_FILE_STATE_H_

#include <sys/stat.h>

#include <cstdint>
#include <ctime>

namespace swizzle {

inline int64_t Nanoseconds(const timespec& time) { return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; }

// Whoever writes to a file changes its time, whoever replaces it its inode.
struct FileState {
  uint64_t device = 0, inode = 0;
  int64_t bytes = 0;
  int64_t modified_ns = 0;

  static FileState Of(const struct stat& found) {
    return {found.st_dev, found.st_ino, found.st_size, Nanoseconds(found.st_mtim)};
  }
  bool operator==(const FileState&) const = default;
};

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_FILES_FILE_STATE_H_

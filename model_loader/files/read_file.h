// Reads whole files through owned memory, so that one that shrinks meanwhile is an error and no crash.
#ifndef SWIZZLE_MODEL_LOADER_FILES_READ_FILE_H_
#define SWIZZLE_MODEL_LOADER_FILES_READ_FILE_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <vector>

#include "kernels/base/status.h"

namespace swizzle {

// Errors name the file: NOT_FOUND, INVALID_ARGUMENT for anything but a regular file, RESOURCE_EXHAUSTED above
// `max_bytes`, and the like. Links are followed.
StatusOr<std::vector<std::byte>> ReadFile(const std::filesystem::path& file, int64_t max_bytes);

// A file to be read from its beginning, which holds so many bytes.
struct FileStream {
  std::ifstream stream;
  int64_t bytes;
};

// Errors are those of ReadFile, and name no file.
StatusOr<FileStream> OpenFile(const std::filesystem::path& file, int64_t max_bytes);
// Of a stream that ends before its bytes do, or goes on after them.
Status ChangedWhileRead();

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_FILES_READ_FILE_H_

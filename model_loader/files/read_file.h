// Reads a whole file into owned memory, so that one that shrinks meanwhile is an error and no crash.
#ifndef SWIZZLE_MODEL_LOADER_FILES_READ_FILE_H_
#define SWIZZLE_MODEL_LOADER_FILES_READ_FILE_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "kernels/base/status.h"

namespace swizzle {

// Errors name the file: NOT_FOUND, INVALID_ARGUMENT for anything but a regular file, RESOURCE_EXHAUSTED above
// `max_bytes`, and the like. Links are followed.
StatusOr<std::vector<std::byte>> ReadFile(const std::filesystem::path& file, int64_t max_bytes);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_FILES_READ_FILE_H_

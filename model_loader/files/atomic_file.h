// Replaces files so that a reader, or a crash, sees the old file or the whole new one; makes folders for them.
#ifndef SWIZZLE_MODEL_LOADER_FILES_ATOMIC_FILE_H_
#define SWIZZLE_MODEL_LOADER_FILES_ATOMIC_FILE_H_

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

#include "kernels/base/status.h"

namespace swizzle {

// Writes a new file beside `file`, flushes it to the disk, and renames it over `file`; where that is a link, all this
// is done to the file that it leads to. On an error `file` is as it was and nothing is left beside it. NOT_FOUND,
// PERMISSION_DENIED, RESOURCE_EXHAUSTED, ... naming the file.
Status WriteFileAtomically(const std::filesystem::path& file, std::span<const std::byte> bytes);
// Writes bytes that lie in several pieces, one behind another, in the same way.
Status WriteFileAtomically(const std::filesystem::path& file, std::span<const std::vector<std::byte>> pieces);

// Makes this folder and those above it, as far as they are missing. INVALID_ARGUMENT naming the folder.
Status MakeFolder(const std::filesystem::path& folder);

// The same for the folder that `file` lies in.
Status MakeFolderOf(const std::filesystem::path& file);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_FILES_ATOMIC_FILE_H_

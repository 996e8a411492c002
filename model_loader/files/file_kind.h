// What a file is that was given for a model and is none, by how its content begins: downloads go wrong, and models of
// other programs get the name of one of ours. Free functions, thread-safe.
#ifndef SWIZZLE_MODEL_LOADER_FILES_FILE_KIND_H_
#define SWIZZLE_MODEL_LOADER_FILES_FILE_KIND_H_

#include <cstddef>
#include <span>
#include <string_view>

namespace swizzle {

// How many bytes it takes to tell.
inline constexpr size_t kFileKindBytes = 512;

// The end of a sentence that begins with "this is", and what to do: "a pointer file of Git LFS, ...". Empty for content
// of which nothing is known. `content` is the whole file, or its beginning, of at least kFileKindBytes if it has them.
std::string_view KindOfFile(std::span<const std::byte> content);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_FILES_FILE_KIND_H_

// NumPy's .npz files: arrays by name, as numpy.savez writes them, which is a zip archive of .npy files that are not
// compressed. Free functions, thread-safe.
#ifndef SWIZZLE_MODEL_LOADER_FILES_NPZ_H_
#define SWIZZLE_MODEL_LOADER_FILES_NPZ_H_

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>

#include "kernels/base/status.h"
#include "model_loader/files/npy.h"

namespace swizzle {

using NpyArrays = std::map<std::string, NpyArray>;

// INVALID_ARGUMENT if the archive is malformed, an array's checksum is wrong, or a name stands twice; what ParseNpy
// refuses, naming the array; UNIMPLEMENTED, naming the fix, for compressed arrays.
StatusOr<NpyArrays> ParseNpz(std::span<const std::byte> file);

// Errors name the file.
StatusOr<NpyArrays> ReadNpz(const std::filesystem::path& file);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_FILES_NPZ_H_

// NumPy's .npy files: one array with its type and shape. Free functions, thread-safe.
//
// The client has a reader of its own: it may not depend on this folder.
#ifndef SWIZZLE_MODEL_LOADER_FILES_NPY_H_
#define SWIZZLE_MODEL_LOADER_FILES_NPY_H_

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

#include "kernels/base/status.h"
#include "kernels/base/tensor.h"

namespace swizzle {

// A row-major array in memory of its own.
struct NpyArray {
  DType dtype = DType::kFloat32;
  Shape shape;
  std::vector<std::byte> bytes;

  TensorView view() const { return {dtype, shape, bytes}; }
};

// Format versions 1.0 and 2.0, row-major ('fortran_order': False), little-endian. INVALID_ARGUMENT if the file is
// malformed, or has other bytes than its shape and type say; UNIMPLEMENTED, naming the fix, for what NumPy can write
// and this does not read: other byte orders, column-major arrays, strings.
StatusOr<NpyArray> ParseNpy(std::span<const std::byte> file);

// The bytes of a version 1.0 file. UNIMPLEMENTED for kBFloat16 and kString, which NumPy has no type for.
// REQUIRES: the view's bytes fit its shape and type.
StatusOr<std::vector<std::byte>> FormatNpy(const TensorView& array);

// The same from and to files; errors name the file. A file that is there is replaced as a whole.
StatusOr<NpyArray> ReadNpy(const std::filesystem::path& file);
Status WriteNpy(const std::filesystem::path& file, const TensorView& array);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_FILES_NPY_H_

// Reads safetensors, the file format of Hugging Face checkpoints, trusting nothing in the file.
//
// A file is the length N of its header (8 bytes, little-endian), the header (N bytes of JSON), and the elements of all
// tensors, one after another and row-major:
//   28 00 00 00 00 00 00 00  {"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}  <8 bytes>
// Nothing promises that elements are aligned: they are copied before anybody reads them as numbers. Free functions,
// thread-safe.
#ifndef SWIZZLE_MODEL_LOADER_SAFETENSORS_SAFETENSORS_FILE_H_
#define SWIZZLE_MODEL_LOADER_SAFETENSORS_SAFETENSORS_FILE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "kernels/base/status.h"
#include "kernels/base/tensor.h"
#include "model_loader/graph/graph.h"

namespace swizzle {

// The format's own limit on N.
inline constexpr uint64_t kMaxSafetensorsHeaderBytes = 100'000'000;

struct SafetensorsFile {
  std::map<std::string, TensorView> tensors;  // by name; their bytes lie in the file's
  std::map<std::string, std::string> metadata;
};

// `file` outlives the result. INVALID_ARGUMENT, naming the tensor where there is one, unless
//  - N and the header are within the file, and the header is one UTF-8 JSON object, behind which only white space may
//    stand; no key occurs twice; "__metadata__" holds nothing but strings;
//  - every tensor has a printable name, a known dtype, a shape of at most 64 dimensions, and two offsets, all of them
//    whole numbers that are not negative, and no other key;
//  - the offsets enclose just the bytes that dtype and shape take, in checked arithmetic;
//  - the tensors fill the rest of the file without a gap and without overlapping.
// UNIMPLEMENTED for dtypes that safetensors knows and no tensor here can have (8 bits and less, complex).
StatusOr<SafetensorsFile> ParseSafetensors(std::span<const std::byte> file);

// Tensors of a checkpoint, with elements of their own, by name.
using TensorMap = std::map<std::string, Tensor>;

// A copy in memory of its own.
Tensor CopyOf(const TensorView& view);

// The elements in FP32; exact for F16 and BF16, rounded for F64. UNIMPLEMENTED, naming `what`, for other types.
StatusOr<Tensor> ToFloat32(Tensor tensor, const std::string& what);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SAFETENSORS_SAFETENSORS_FILE_H_

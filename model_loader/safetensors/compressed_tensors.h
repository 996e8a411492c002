// Checkpoints whose weights lie compressed, as the Python package compressed-tensors writes them up to version 0.14.
//
// In place of a weight `P.weight` [.., C] stand the tensors of the format that config.json names
// (compression_config.h); bit c % 8 of byte c / 8 of a row's bitmask says whether column c is stored.
//   sparse-bitmask     P.shape I64[rank], P.bitmask U8[.., ceil(C/8)], P.compressed[stored], and P.row_offsets I64[..],
//                      of each row the stored elements of the rows before it (along dimension 0)
//   sparse-24-bitmask  P.shape I64[2,1], P.bitmask U8[R, ceil(C/8)], P.compressed[R, C/2]: two of every four columns
//
//   0 5 0 0    shape {3,4}    bitmask {2, 9, 0}    row_offsets {0, 1, 3}    compressed {5, 6, 7}
//   6 0 0 7
//   0 0 0 0
//
// Weights become dense, with zeros: how Swizzle stores them is chosen later, by their zeros. Free functions,
// thread-safe.
#ifndef SWIZZLE_MODEL_LOADER_SAFETENSORS_COMPRESSED_TENSORS_H_
#define SWIZZLE_MODEL_LOADER_SAFETENSORS_COMPRESSED_TENSORS_H_

#include <cstdint>

#include "kernels/base/status.h"
#include "model_loader/safetensors/compression_config.h"
#include "model_loader/safetensors/safetensors_file.h"

namespace swizzle {

// Replaces the tensors that make up a compressed weight by the weight: INT8 where it is stored so, else FP32. A
// checkpoint may have dense weights beside compressed ones. At most `max_dense_bytes` are made in all, compared before
// they are. INVALID_ARGUMENT, naming the tensor, if one is missing or left over, or if any shape, length, count or bit
// is not as above.
Status Decompress(SparsityFormat format, int64_t max_dense_bytes, TensorMap& tensors);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SAFETENSORS_COMPRESSED_TENSORS_H_

// The tensors of a checkpoint, from one safetensors file or from several and their index. Free functions, thread-safe.
//
// An index (model.safetensors.index.json) says which shard holds each tensor:
//   {"metadata": {...}, "weight_map": {"embeddings.word_embeddings.weight": "model-00001-of-00002.safetensors", ...}}
#ifndef SWIZZLE_MODEL_LOADER_SAFETENSORS_SHARDED_CHECKPOINT_H_
#define SWIZZLE_MODEL_LOADER_SAFETENSORS_SHARDED_CHECKPOINT_H_

#include <filesystem>

#include "kernels/base/status.h"
#include "model_loader/safetensors/safetensors_file.h"

namespace swizzle {

// What the name of an index ends in.
inline constexpr char kIndexEnding[] = ".safetensors.index.json";

// Of `file`, an index if its name ends in kIndexEnding, else a safetensors file. Shards are read one by one, so that no
// more than one is held beside the tensors. INVALID_ARGUMENT, naming shard and tensor, if a file is malformed, if a
// shard is anything but the plain name of a file beside the index that contained_file.h would open, or if shards and
// weight_map disagree: each tensor is in the shard that the map names, and in no other. NOT_FOUND and the like for
// files.
StatusOr<TensorMap> ReadTensors(const std::filesystem::path& file);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SAFETENSORS_SHARDED_CHECKPOINT_H_

// Reads a Hugging Face checkpoint: config.json and safetensors, single or sharded, dense or compressed. Free functions,
// thread-safe.
#ifndef SWIZZLE_MODEL_LOADER_SAFETENSORS_CHECKPOINT_H_
#define SWIZZLE_MODEL_LOADER_SAFETENSORS_CHECKPOINT_H_

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "kernels/base/status.h"
#include "model_loader/graph/graph.h"
#include "model_loader/graph/operator_table.h"
#include "model_loader/safetensors/safetensors_file.h"

namespace swizzle {

struct CheckpointOptions {
  int64_t max_dense_bytes = int64_t{1} << 33;  // of all compressed weights together, once dense
  OperatorFinder find_operator = FindSequenceOperator;
  GraphRevision revise = nullptr;  // null: the graph stays as it was built
};

// The graph of bert_graph.h and the like, verified (graph/verify.h). `config` is the text of config.json, to which
// errors in it refer. Beside the errors of compression_config.h, compressed_tensors.h, checkpoint_weights.h,
// encoder_config.h and bert_graph.h: UNIMPLEMENTED, naming the node, for an operator that `find_operator` doesn't know.
StatusOr<Graph> MakeCheckpointGraph(std::string_view config, TensorMap tensors, const CheckpointOptions& options = {});

// Whether this is the path of a checkpoint: a folder, a *.safetensors file, or an index of shards. Folders that are
// called like other models, *.onnx and *.swz, are not.
bool IsCheckpoint(const std::filesystem::path& model);

// A folder holds config.json and either model.safetensors or model.safetensors.index.json; beside a file lies its
// config.json. Errors name the file: those of MakeCheckpointGraph and sharded_checkpoint.h, and NOT_FOUND and the like.
StatusOr<Graph> ReadCheckpoint(const std::filesystem::path& model, const CheckpointOptions& options = {});

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SAFETENSORS_CHECKPOINT_H_

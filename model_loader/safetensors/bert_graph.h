// Writes the encoder that a Hugging Face checkpoint holds as a Graph of the operators that an exporter to ONNX writes
// for it: one form for the passes, the optimised plan and the fallback executor, wherever a model came from.
//
// Opset 17. Inputs: input_ids, attention_mask and, where BERT has them, token_type_ids, all INT64 [batch, sequence].
// Outputs: last_hidden_state FP32 [batch, sequence, hidden] and, where its weights are there, pooler_output FP32
// [batch, hidden]. Both dimensions are free. A linear layer is MatMul with a weight [in, out], then Add; attention is
// MatMul, Div, Add of the mask (0, or the lowest float), Softmax, MatMul; GELU is written out with Erf or Tanh. Free
// functions, thread-safe.
#ifndef SWIZZLE_MODEL_LOADER_SAFETENSORS_BERT_GRAPH_H_
#define SWIZZLE_MODEL_LOADER_SAFETENSORS_BERT_GRAPH_H_

#include "kernels/base/status.h"
#include "model_loader/graph/graph.h"
#include "model_loader/safetensors/bert_config.h"
#include "model_loader/safetensors/safetensors_file.h"

namespace swizzle {

// `tensors` are dense and of floating types. Layers may be pruned by heads and rows: their sizes are those of their
// tensors. Heads for tasks (classifiers and the like) are left out. INVALID_ARGUMENT, naming the tensor, if one is
// missing, has another shape than those around it demand, or is of the encoder but not read by it; UNIMPLEMENTED if it
// isn't of a floating type, or a layer has lost all its heads or rows.
StatusOr<Graph> BuildBertGraph(const BertConfig& config, TensorMap tensors);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SAFETENSORS_BERT_GRAPH_H_

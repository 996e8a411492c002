// Writes the encoder that a Hugging Face checkpoint holds as a Graph of the operators that an exporter to ONNX writes
// for it: one form for the passes, the optimised plan and the interpreter, wherever a model came from.
//
// Opset 17. Inputs: input_ids, attention_mask and, where BERT has them, token_type_ids, all INT64 [batch, sequence].
// Outputs: last_hidden_state FP32 [batch, sequence, hidden] and, where their weights are there, pooler_output FP32
// [batch, hidden] and a classifier's logits FP32 [batch, labels]. Batch and sequence are free. A linear layer is MatMul
// with a weight [in, out], then Add; attention is MatMul, Div, Add of the mask (0, or the lowest float), Softmax,
// MatMul; GELU is written out with Erf or Tanh.
//
// Layers of whole numbers are spelled as ONNX Runtime's quantiser spells them. Where what they read is quantised by
// scale, QuantizeLinear and DequantizeLinear stand before the MatMul, and DequantizeLinear behind its weight. Where
// each token has a scale of its own, MatMul is DynamicQuantizeLinear, MatMulInteger, Cast and Mul: the plan takes each
// token by itself, as the checkpoint asks, and the interpreter all of a request together. Free functions,
// thread-safe.
#ifndef SWIZZLE_MODEL_LOADER_SAFETENSORS_BERT_GRAPH_H_
#define SWIZZLE_MODEL_LOADER_SAFETENSORS_BERT_GRAPH_H_

#include "kernels/base/status.h"
#include "model_loader/graph/graph.h"
#include "model_loader/safetensors/bert_config.h"
#include "model_loader/safetensors/checkpoint_weights.h"

namespace swizzle {

// Layers may be pruned by heads and rows: their sizes are those of their tensors. Heads for tasks other
// than classifying sequences are left out. INVALID_ARGUMENT, naming the tensor, if one is missing, has another shape
// than those around it demand, or is of the encoder but not read by it; UNIMPLEMENTED if its type is not supported, or
// a layer has lost all its heads or rows.
StatusOr<Graph> BuildEncoderGraph(const BertConfig& config, CheckpointWeights weights);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SAFETENSORS_BERT_GRAPH_H_

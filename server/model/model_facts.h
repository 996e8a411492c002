// What metadata and metrics say of a compiled model.
//
// ModelFacts::properties (decimal numbers; bytes are of weights and biases):
//   swizzle_format        formats of the stored weights with the number of layers, "csr:13,dense:15"
//   swizzle_sparsity      share of zeros in all weights, "0.8731"
//   swizzle_nnz           nonzero weights
//   swizzle_stored_bytes  as their formats hold them
//   swizzle_device        the device's name
//   swizzle_threads       per executor
//   swizzle_kernels       kernels with the number of layers that run on them, at some batch size,
//                         "conv_csr_f32_avx512:13,..."
//   swizzle_dense_fallback_layers  sparse weights for which a dense kernel was faster, at some batch size
// and where one plan takes the whole:
//   swizzle_dense_bytes   had all weights been dense
//   swizzle_device_bytes  as the kernels hold them in memory
//   swizzle_micro_batch   rows, or tokens, of a larger batch that are computed at once
// and of one that takes sequences of tokens:
//   swizzle_ids.INPUT     how many ids the input may hold, from 0 on, "30522"
//   swizzle_mask.INPUT    "1": its ones are the tokens that count
//   swizzle_max_length    of a sequence, in tokens
// and of one that runs in regions:
//   swizzle_fallback         "all": every node runs on the interpreter; "parts": what no region holds does
//   swizzle_fallback_reason  why the optimised plan does not take the model whole
//   swizzle_zeros            that zeros in weights bring nothing, and why, where that is so of all layers or of some
//   swizzle_fallback_nodes   operators of such nodes with their number, "Conv:3,Relu:3"
//   swizzle_regions          how many parts of the model are planned
//   swizzle_device_nodes     where it runs on a GPU: nodes between the regions that run there, too
//   swizzle_not_on_gpu       why it runs on the CPU, where there is a GPU that it was to run on
#ifndef SWIZZLE_SERVER_MODEL_MODEL_FACTS_H_
#define SWIZZLE_SERVER_MODEL_MODEL_FACTS_H_

#include <span>

#include "model_loader/compiled/compiled_model.h"
#include "server/model/model.h"

namespace swizzle {

// The facts are the first one's, with the plans that run now; the others, on other devices, only add these. `threads`:
// of each executor, on the host, in regions. What sequences ask of requests is SequenceRules' to add.
ModelFacts FactsOf(std::span<const CompiledModel> models, int threads);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_MODEL_MODEL_FACTS_H_

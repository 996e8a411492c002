// What config.json says of an encoder, of whichever family. Free functions, thread-safe.
#ifndef SWIZZLE_MODEL_LOADER_SAFETENSORS_ENCODER_CONFIG_H_
#define SWIZZLE_MODEL_LOADER_SAFETENSORS_ENCODER_CONFIG_H_

#include <string_view>
#include <variant>

#include "kernels/base/status.h"
#include "model_loader/safetensors/bert_config.h"
#include "model_loader/safetensors/deberta_config.h"
#include "model_loader/safetensors/modernbert_config.h"
#include "model_loader/safetensors/nomic_bert_config.h"
#include "model_loader/safetensors/qwen_config.h"

namespace swizzle {

// A family is what is computed alike. Its type tells how its tensors are called (tensor_names.h) and which graph is
// written of them (BuildEncoderGraph of bert_graph.h and the like).
using EncoderConfig = std::variant<BertConfig, DebertaConfig, ModernBertConfig, NomicBertConfig, QwenConfig>;

// Fields that are left out, or null, have the values that transformers gives them. A missing model_type follows from
// architectures, and where these are missing, too, is `type_of_tensors`, which may be empty. Fields that only say how
// large tensors are (vocab_size, intermediate_size, type_vocab_size, pruned_heads) are not read: the tensors' shapes
// are what counts, and in pruned models they vary by layer. INVALID_ARGUMENT, naming the field, if one is of another
// type or out of range, or if nothing tells the kind of model; UNIMPLEMENTED, naming field and value, for other kinds
// of model, activation or position embedding, and for decoders.
StatusOr<EncoderConfig> ParseEncoderConfig(std::string_view config, std::string_view type_of_tensors = "");

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SAFETENSORS_ENCODER_CONFIG_H_

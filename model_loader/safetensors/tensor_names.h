// How checkpoints call the encoder's tensors. Free functions, thread-safe.
//
// Whatever wraps an encoder puts a prefix before all of its names: "bert." in models for tasks, "module." where several
// GPUs trained it, "0.auto_model." in Sentence Transformers. None of them are listed here: the prefix is what stands
// before the name of the table of words, which every encoder has.
#ifndef SWIZZLE_MODEL_LOADER_SAFETENSORS_TENSOR_NAMES_H_
#define SWIZZLE_MODEL_LOADER_SAFETENSORS_TENSOR_NAMES_H_

#include <string>
#include <string_view>

#include "kernels/base/status.h"
#include "model_loader/safetensors/encoder_config.h"
#include "model_loader/safetensors/safetensors_file.h"

namespace swizzle {

// What stands before the names of the encoder's tensors; empty if nothing does, or no encoder is there.
// INVALID_ARGUMENT, naming both prefixes, if there are two encoders.
StatusOr<std::string> EncoderPrefix(const TensorMap& tensors);

// The model_type that names of tensors speak of, such as "roberta" for "roberta."; empty if they leave it open.
std::string TypeByNames(const TensorMap& tensors, std::string_view prefix);

// One weight of the encoder, by the name that its `.weight` or `.bias` has in BERT without a prefix:
// "encoder.layer.3.attention.self.query.weight". Empty for tensors that the encoder does not read: buffers such as
// position_ids, heads, and what else a wrapper holds.
//
// Takes off `prefix`, and translates DistilBERT's and MPNet's names and the old ones of LayerNorm (gamma, beta).
std::string CanonicalName(BertFamily family, std::string_view prefix, std::string_view name);

// One weight of the encoder, or of the classifier that the configuration has behind it, by the name that its family's
// graph has for it; empty for other tensors.
std::string TensorName(const EncoderConfig& config, std::string_view prefix, std::string_view name);

// One weight of a classifier beside the encoder, without what wraps both: "classifier.out_proj.weight" or
// "pre_classifier.bias". Empty for other tensors.
std::string ClassifierName(std::string_view prefix, std::string_view name);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SAFETENSORS_TENSOR_NAMES_H_

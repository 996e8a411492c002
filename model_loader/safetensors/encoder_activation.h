// The activations of encoders, by the names that config.json has for them. Free functions, thread-safe.
#ifndef SWIZZLE_MODEL_LOADER_SAFETENSORS_ENCODER_ACTIVATION_H_
#define SWIZZLE_MODEL_LOADER_SAFETENSORS_ENCODER_ACTIVATION_H_

#include "kernels/base/status.h"
#include "model_loader/safetensors/config_fields.h"

namespace swizzle {

enum class EncoderActivation {
  kGelu,
  kGeluTanh,
  kGelu10,  // GELU, between -10 and 10
  kQuickGelu,
  kSilu,
  kMish,
  kRelu,
  kRelu2,  // squared
  kRelu6,
  kLeakyRelu,
  kTanh,
  kSigmoid,
  kLinear,
};

// Of the field `name`; `absent` where it is left out. UNIMPLEMENTED, naming field and value, for others than
// transformers knows, and for those that have weights of their own.
StatusOr<EncoderActivation> ReadActivation(const ConfigFields& fields, const char* name, const char* absent = "gelu");

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SAFETENSORS_ENCODER_ACTIVATION_H_

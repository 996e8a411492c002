// What config.json says of how a checkpoint stores its weights: with zeros left out, as whole numbers, or both, as the
// Python package compressed-tensors writes it up to version 0.14. Free functions, thread-safe.
//
// `quantization_config` (older: `compression_config`) holds a `sparsity_config` with the format of sparse weights
// (compressed_tensors.h). Where weights are whole numbers (checkpoint_weights.h), it holds their `format` and, in
// `config_groups`, what is done to weights and to what layers read:
//   {"format": "int-quantized", "config_groups": {"group_0": {
//     "weights": {"num_bits": 8, "type": "int", "strategy": "channel"},
//     "input_activations": {"num_bits": 8, "type": "int", "strategy": "token", "dynamic": true}}}}
#ifndef SWIZZLE_MODEL_LOADER_SAFETENSORS_COMPRESSION_CONFIG_H_
#define SWIZZLE_MODEL_LOADER_SAFETENSORS_COMPRESSION_CONFIG_H_

#include <cstdint>
#include <string_view>

#include "kernels/base/status.h"

namespace swizzle {

enum class SparsityFormat { kDense, kBitmask, kTwoFourBitmask };

// How layers of whole numbers round what they read.
enum class ActivationRounding : uint8_t {
  kNone,     // not at all: the weights stand for real numbers
  kByScale,  // by a scale that the checkpoint has
  kByToken,  // each token by one of its own, when it is there
};

struct Compression {
  SparsityFormat sparsity = SparsityFormat::kDense;
  bool quantised = false;
  ActivationRounding activations = ActivationRounding::kNone;
};

// All as initialised if it says nothing. INVALID_ARGUMENT if it is malformed. UNIMPLEMENTED, naming what and the fix,
// for formats but dense, sparse-bitmask, sparse-24-bitmask, int-quantized and naive-quantized; for numbers that are not
// integers, or activations of other than 8 bits; for groups of layers that round what they read in different ways; for
// what else a checkpoint may have rounded (outputs, caches), and for every other method of quantisation.
StatusOr<Compression> ReadCompression(std::string_view config);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SAFETENSORS_COMPRESSION_CONFIG_H_

// What config.json says of attention that knows positions by rotating queries and keys, and of layers that see a window
// of them: as transformers writes it from version 5 on, and as it did before. Free functions, thread-safe.
#ifndef SWIZZLE_MODEL_LOADER_SAFETENSORS_ATTENTION_CONFIG_H_
#define SWIZZLE_MODEL_LOADER_SAFETENSORS_ATTENTION_CONFIG_H_

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "kernels/base/status.h"
#include "model_loader/safetensors/config_fields.h"

namespace swizzle {

// Layers that see all tokens, and layers that see those near by, as layer_types calls them.
constexpr char kFullAttention[] = "full_attention", kSlidingAttention[] = "sliding_attention";

// The base of the angles' periods: rope_theta of rope_parameters, or of what they hold for `attention`; without them
// the field `name`, and `absent` where there is neither. UNIMPLEMENTED, naming the field, if angles are to be scaled.
StatusOr<float> ReadTheta(const ConfigFields& fields, const char* attention, const char* name, float absent);

// Of each layer, whether it sees a window: by layer_types, or as `absent` says. INVALID_ARGUMENT if they are of other
// layers, UNIMPLEMENTED for other types.
StatusOr<std::vector<bool>> ReadWindowed(const ConfigFields& fields, int64_t layers,
                                         const std::function<bool(int64_t layer)>& absent);

// INVALID_ARGUMENT unless `hidden_size` is made of whole `heads`, of a size that angles can rotate.
Status CheckHeads(int64_t hidden_size, int64_t heads, std::string_view heads_field);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SAFETENSORS_ATTENTION_CONFIG_H_

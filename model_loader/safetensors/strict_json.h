// Parses JSON that came with a checkpoint.
#ifndef SWIZZLE_MODEL_LOADER_SAFETENSORS_STRICT_JSON_H_
#define SWIZZLE_MODEL_LOADER_SAFETENSORS_STRICT_JSON_H_

#include <nlohmann/json.hpp>
#include <string_view>

#include "kernels/base/status.h"

namespace swizzle {

// INVALID_ARGUMENT unless `text` is one UTF-8 JSON object that nests at most 32 deep and in which no key occurs twice
// in one object, of which the parser itself would keep the last.
StatusOr<nlohmann::json> ParseStrictJson(std::string_view text);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SAFETENSORS_STRICT_JSON_H_

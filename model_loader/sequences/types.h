// Element types as the operators of sequence graphs speak of them.
#ifndef SWIZZLE_MODEL_LOADER_SEQUENCES_TYPES_H_
#define SWIZZLE_MODEL_LOADER_SEQUENCES_TYPES_H_

#include <optional>

#include "model_loader/graph/graph.h"

namespace swizzle {

inline bool IsReal(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64 || dtype == DType::kFloat16 || dtype == DType::kBFloat16;
}

// What a Cast casts to; nothing for types that no arithmetic is done in.
std::optional<DType> CastTarget(const Node& node);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SEQUENCES_TYPES_H_

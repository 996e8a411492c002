// ONNX's names of what a Resize may be told. Pure functions.
#ifndef SWIZZLE_MODEL_LOADER_SEMANTICS_RESAMPLING_MODES_H_
#define SWIZZLE_MODEL_LOADER_SEMANTICS_RESAMPLING_MODES_H_

#include <optional>
#include <string_view>

#include "kernels/operator/attributes.h"

namespace swizzle {

// Nothing for a name that is no coordinate_transformation_mode, or nearest_mode, that kernels know.
std::optional<Coordinates> CoordinatesNamed(std::string_view name);
std::optional<Nearest> NearestNamed(std::string_view name);

// Which is nearest along an axis of this scale before opset 11, where there was no choice: what shrinks took the next
// position, by ONNX's example then and in ONNX Runtime now.
inline Nearest NearestBeforeOpset11(double scale) { return scale < 1.0 ? Nearest::kCeil : Nearest::kFloor; }

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SEMANTICS_RESAMPLING_MODES_H_

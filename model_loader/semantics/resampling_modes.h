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

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SEMANTICS_RESAMPLING_MODES_H_

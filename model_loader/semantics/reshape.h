// The shapes that Reshape, Squeeze and Unsqueeze make. Pure functions.
#ifndef SWIZZLE_MODEL_LOADER_SEMANTICS_RESHAPE_H_
#define SWIZZLE_MODEL_LOADER_SEMANTICS_RESHAPE_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "kernels/base/tensor.h"
#include "model_loader/graph/graph.h"

namespace swizzle {

// The operators that give all elements of their first input in another shape or order, and do nothing else.
inline constexpr std::array<std::string_view, 5> kMoveOperators = {"Flatten", "Reshape", "Squeeze", "Transpose",
                                                                   "Unsqueeze"};

// Whether a zero in Reshape's target is a dimension of no elements, and not the input's dimension at its place.
StatusOr<bool> AllowsZero(const Node& node);

// What Reshape makes of a tensor of shape `from`: zeros in the target stand for the dimension of `from` at their place,
// unless `allow_zero` is set, and one -1 for what is left. INVALID_ARGUMENT if that is no shape of as many elements.
StatusOr<Shape> ReshapedShape(const Shape& from, Shape target, bool allow_zero);

// The dimensions that Squeeze leaves, of any kind: all but `axes`, or but those of 1 where it names none. `axes` are
// ascending. INVALID_ARGUMENT if one of them is not 1.
template <typename Dimension, typename IsOne>
StatusOr<std::vector<Dimension>> SqueezedDimensions(const std::vector<Dimension>& from,
                                                    const std::optional<std::vector<int64_t>>& axes,
                                                    const IsOne& is_one) {
  std::vector<Dimension> kept;
  for (size_t i = 0; i < from.size(); ++i) {
    const bool named = axes && std::binary_search(axes->begin(), axes->end(), static_cast<int64_t>(i));
    if (named && !is_one(from[i])) return InvalidArgument("dimension ", i, " is to be squeezed and is not 1");
    if (axes ? !named : !is_one(from[i])) kept.push_back(from[i]);
  }
  return kept;
}

// The dimensions after Unsqueeze. REQUIRES: `axes` are ascending, below the new rank, none twice.
template <typename Dimension>
std::vector<Dimension> UnsqueezedDimensions(std::vector<Dimension> dimensions, const std::vector<int64_t>& axes) {
  for (const int64_t axis : axes) dimensions.insert(dimensions.begin() + axis, Dimension{1});
  return dimensions;
}

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SEMANTICS_RESHAPE_H_

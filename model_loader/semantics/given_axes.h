// The axes that a node is given: as an input or, in older opsets, as its attribute axes.
#ifndef SWIZZLE_MODEL_LOADER_SEMANTICS_GIVEN_AXES_H_
#define SWIZZLE_MODEL_LOADER_SEMANTICS_GIVEN_AXES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "model_loader/graph/graph.h"

namespace swizzle {

// As they are given, neither counted from the front nor in order; nothing where there are neither. The input goes
// before the attribute: whoever knows its elements reads them, as StatusOr<std::vector<int64_t>>.
template <typename ReadInput>
StatusOr<std::optional<std::vector<int64_t>>> GivenAxes(const Node& node, bool as_input, const ReadInput& read_input) {
  std::optional<std::vector<int64_t>> axes;
  if (as_input) {
    SWIZZLE_ASSIGN_OR_RETURN(axes, read_input());
  } else if (node.attributes.contains("axes")) {
    SWIZZLE_ASSIGN_OR_RETURN(axes, IntsAttribute(node, "axes", {}));
  }
  return axes;
}

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SEMANTICS_GIVEN_AXES_H_

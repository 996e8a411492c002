#include "model_loader/semantics/slice_arguments.h"

#include <numeric>

#include "model_loader/semantics/axes.h"

namespace swizzle {

Status CompleteSlice(size_t starts, size_t ends, int64_t rank, std::vector<int64_t>& axes,
                     std::vector<int64_t>& steps) {
  if (axes.empty()) {
    axes.resize(starts);
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (steps.empty()) steps.assign(starts, 1);
  if (ends != starts || axes.size() != starts || steps.size() != starts) {
    return InvalidArgument("its starts, ends, axes and steps differ in length");
  }
  std::vector<bool> seen(static_cast<size_t>(rank), false);
  for (int64_t& axis : axes) {
    SWIZZLE_ASSIGN_OR_RETURN(axis, NormalAxis(axis, rank));
    if (seen[static_cast<size_t>(axis)]) return InvalidArgument("axis ", axis, " is given twice");
    seen[static_cast<size_t>(axis)] = true;
  }
  return {};
}

}  // namespace swizzle

#include "model_loader/semantics/axes.h"

#include <algorithm>
#include <numeric>

namespace swizzle {

StatusOr<int64_t> NormalAxis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank) return InvalidArgument("axis ", axis, " is not one of ", rank, " dimensions");
  return axis < 0 ? axis + rank : axis;
}

StatusOr<int64_t> NormalAxis(const Node& node, int64_t axis, int64_t rank) {
  StatusOr<int64_t> normal = NormalAxis(axis, rank);
  if (!normal.ok()) return Annotate(normal.status(), Describe(node));
  return normal;
}

StatusOr<std::vector<int64_t>> NormalAxes(std::vector<int64_t> axes, int64_t rank) {
  for (int64_t& axis : axes) {
    SWIZZLE_ASSIGN_OR_RETURN(axis, NormalAxis(axis, rank));
  }
  std::sort(axes.begin(), axes.end());
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end()) return InvalidArgument("an axis is given twice");
  return axes;
}

StatusOr<std::vector<int64_t>> PermutationOf(const Node& node, size_t rank) {
  std::vector<int64_t> perm(rank);
  std::iota(perm.rbegin(), perm.rend(), 0);
  SWIZZLE_ASSIGN_OR_RETURN(perm, IntsAttribute(node, "perm", perm));
  const auto sorted = NormalAxes(perm, static_cast<int64_t>(rank));
  if (!sorted.ok() || sorted->size() != rank) {
    return InvalidArgument(Describe(node), ": perm is not a permutation of ", rank, " axes");
  }
  for (int64_t& axis : perm) axis = axis < 0 ? axis + static_cast<int64_t>(rank) : axis;
  return perm;
}

StatusOr<int64_t> FlattenAxis(const Node& node, int64_t rank) {
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t axis, IntAttribute(node, "axis", 1));
  if (axis == rank) return axis;
  return NormalAxis(node, axis, rank);
}

StatusOr<std::vector<int64_t>> SoftmaxAxes(const Node& node, int64_t opset, int64_t rank) {
  constexpr int64_t kOneAxis = 13;  // from this opset on
  SWIZZLE_ASSIGN_OR_RETURN(int64_t axis, IntAttribute(node, "axis", opset < kOneAxis ? 1 : -1));
  SWIZZLE_ASSIGN_OR_RETURN(axis, NormalAxis(node, axis, rank));
  std::vector<int64_t> axes(static_cast<size_t>(opset < kOneAxis ? rank - axis : 1));
  std::iota(axes.begin(), axes.end(), axis);
  return axes;
}

StatusOr<bool> KeepsAxes(const Node& node) {
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t keep, IntAttribute(node, "keepdims", 1));
  return keep != 0;
}

}  // namespace swizzle

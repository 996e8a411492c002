#include "model_loader/semantics/reshape.h"

namespace swizzle {

StatusOr<bool> AllowsZero(const Node& node) {
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t allow_zero, IntAttribute(node, "allowzero", 0));
  return allow_zero != 0;
}

StatusOr<Shape> ReshapedShape(const Shape& from, Shape target, bool allow_zero) {
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t elements, ElementCount(from));
  int64_t known = 1;
  int64_t* inferred = nullptr;
  bool possible = true;
  for (size_t d = 0; d < target.size(); ++d) {
    if (target[d] == 0 && !allow_zero && d < from.size()) target[d] = from[d];
    if (target[d] == -1 && inferred == nullptr) {
      inferred = &target[d];
    } else {
      possible = possible && target[d] >= 0 && !__builtin_mul_overflow(known, target[d], &known);
    }
  }
  if (inferred != nullptr && possible) *inferred = known == 0 ? 0 : elements / known;
  const auto count = ElementCount(target);
  if (possible && count.ok() && *count == elements) return target;
  return InvalidArgument("a value of shape ", ShapeText(from), " cannot become ", ShapeText(target));
}

}  // namespace swizzle

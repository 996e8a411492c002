#include "model_loader/interpreter/values/rows.h"

#include <algorithm>
#include <utility>

namespace swizzle::interpreter {

StatusOr<Rows> AlongAxes(Call& call, Array array, const std::vector<int64_t>& axes) {
  Rows rows;
  for (int64_t axis = 0; axis < array.rank(); ++axis) {
    if (std::binary_search(axes.begin(), axes.end(), axis)) {
      rows.length *= array.shape[static_cast<size_t>(axis)];
    } else {
      rows.count *= array.shape[static_cast<size_t>(axis)];
      rows.order.push_back(axis);
    }
  }
  rows.order.insert(rows.order.end(), axes.begin(), axes.end());
  SWIZZLE_ASSIGN_OR_RETURN(rows.array, Transposed(call, std::move(array), rows.order));
  return rows;
}

StatusOr<Array> BackInOrder(Call& call, const Rows& rows, Array array) {
  if (std::ranges::is_sorted(rows.order)) return array;
  std::vector<int64_t> inverse(rows.order.size());
  for (size_t i = 0; i < rows.order.size(); ++i) inverse[static_cast<size_t>(rows.order[i])] = static_cast<int64_t>(i);
  return Transposed(call, std::move(array), inverse);
}

}  // namespace swizzle::interpreter

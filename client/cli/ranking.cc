#include "client/cli/ranking.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "absl/strings/str_cat.h"

namespace swizzle::client {

std::vector<Ranked> Best(std::span<const float> values, int count) {
  std::vector<int64_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  const size_t kept = std::min(order.size(), static_cast<size_t>(std::max(count, 0)));
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(),
                    [&](int64_t a, int64_t b) { return values[a] != values[b] ? values[a] > values[b] : a < b; });
  std::vector<Ranked> best;
  for (size_t i = 0; i < kept; ++i) best.push_back({order[i], values[order[i]]});
  return best;
}

absl::StatusOr<std::vector<std::vector<Ranked>>> BestOfRows(const Tensor& tensor, int count) {
  if (tensor.datatype != "FP32" || tensor.shape.empty() || tensor.shape.back() == 0) {
    return absl::UnimplementedError(absl::StrCat("output '", tensor.name, "' is ", tensor.datatype, " ",
                                                 ShapeText(tensor.shape), "; only rows of FP32 can be ranked"));
  }
  const std::span<const float> values = tensor.Values<float>();
  const auto classes = static_cast<size_t>(tensor.shape.back());
  std::vector<std::vector<Ranked>> rows;
  for (size_t at = 0; at + classes <= values.size(); at += classes)
    rows.push_back(Best(values.subspan(at, classes), count));
  return rows;
}

}  // namespace swizzle::client

#include "model_loader/pack/comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "model_loader/files/npy.h"
#include "model_loader/plan/run/token_packing.h"

namespace swizzle::pack {

void Difference::See(std::span<const double> reference, std::span<const double> candidate) {
  for (size_t i = 0; i < reference.size(); ++i) {
    // Equal infinities differ by nothing; whatever else is not finite differs without bound, even from itself.
    const double distance = std::abs(reference[i] - candidate[i]);
    const bool same = reference[i] == candidate[i];
    const double bounded = std::isfinite(distance) ? distance : std::numeric_limits<double>::infinity();
    if (!same) largest_difference = std::max(largest_difference, bounded);
    if (std::isfinite(reference[i])) largest_magnitude = std::max(largest_magnitude, std::abs(reference[i]));
  }
}

double Difference::relative() const {
  if (largest_difference == 0.0) return 0.0;
  return largest_magnitude == 0.0 ? std::numeric_limits<double>::infinity() : largest_difference / largest_magnitude;
}

// The classes of `rows` rows, each below `classes`.
StatusOr<std::vector<int64_t>> ReadLabels(const std::filesystem::path& file, int64_t rows, int64_t classes) {
  SWIZZLE_ASSIGN_OR_RETURN(const NpyArray array, ReadNpy(file));
  if (array.dtype != DType::kInt64 && array.dtype != DType::kInt32) {
    return InvalidArgument(file.string(), ": labels are ", DTypeName(array.dtype), "; save array.astype('<i8')");
  }
  if (array.shape != Shape{rows}) {
    return InvalidArgument(file.string(), ": labels are ", ShapeText(array.shape), "; they must be ", ShapeText({rows}),
                           ", one for each row of the inputs");
  }
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t label = WholeAt(array.view(), i);
    if (label < 0 || label >= classes) {
      return InvalidArgument(file.string(), ": label ", i, " is ", label, "; the model's classes are 0 to ",
                             classes - 1);
    }
    labels.push_back(label);
  }
  return labels;
}

int64_t CountRight(std::span<const double> scores, std::span<const int64_t> labels) {
  const size_t classes = scores.size() / labels.size();
  int64_t right = 0;
  for (size_t row = 0; row < labels.size(); ++row) {
    const auto of_row = scores.subspan(row * classes, classes);
    right += std::ranges::max_element(of_row) - of_row.begin() == labels[row] ? 1 : 0;
  }
  return right;
}

}  // namespace swizzle::pack

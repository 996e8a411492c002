#include "model_loader/semantics/evaluate_products.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "model_loader/semantics/evaluate.h"

namespace swizzle {
namespace {

std::vector<float> FloatsOf(const Elements& elements) {
  std::vector<float> floats;
  floats.reserve(elements.scalars.size());
  for (const Scalar& scalar : elements.scalars) floats.push_back(static_cast<float>(scalar.real));
  return floats;
}

// to[columns] = row[depth] times a matrix [depth, columns].
void MultiplyRow(const float* row, int64_t depth, const float* matrix, int64_t columns, Scalar* to) {
  constexpr int64_t kBlock = 64;  // a number that the compiler knows lets it take vectors
  for (int64_t first = 0; first < columns; first += kBlock) {
    std::array<float, kBlock> sums = {};
    const int64_t count = std::min(kBlock, columns - first);
    for (int64_t k = 0; k < depth; ++k) {
      const float factor = row[k];
      const float* const from = matrix + k * columns + first;
      if (count == kBlock) {
        for (size_t i = 0; i < sums.size(); ++i) sums[i] += factor * from[i];
      } else {
        for (int64_t i = 0; i < count; ++i) sums[static_cast<size_t>(i)] += factor * from[i];
      }
    }
    for (int64_t i = 0; i < count; ++i) to[first + i].real = sums[static_cast<size_t>(i)];
  }
}

}  // namespace

StatusOr<std::optional<Elements>> EvaluateMatMul(const Node& node, std::span<const Elements* const> inputs) {
  constexpr int64_t kMostProducts = int64_t{1} << 31;
  const Elements &a = *inputs[0], &b = *inputs[1];
  if (a.dtype != DType::kFloat32 || b.dtype != DType::kFloat32) return std::nullopt;
  if (a.shape.size() < 2 || b.shape.size() != 2) return std::nullopt;
  const int64_t depth = a.shape.back(), columns = b.shape[1];
  if (depth != b.shape[0]) return InvalidArgument(Describe(node), ": its matrices do not fit");
  Elements result{DType::kFloat32, a.shape, {}};
  result.shape.back() = columns;
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t elements, ElementCount(result.shape));
  if (elements == 0 || elements > kMaxEvaluatedElements || depth > kMostProducts / elements) return std::nullopt;
  const std::vector<float> left = FloatsOf(a), right = FloatsOf(b);
  result.scalars.resize(static_cast<size_t>(elements));
  for (int64_t row = 0; row < elements / columns; ++row) {
    MultiplyRow(left.data() + row * depth, depth, right.data(), columns, result.scalars.data() + row * columns);
  }
  return result;
}

StatusOr<std::optional<Elements>> EvaluateLayerNorm(const Node& node, std::span<const Elements* const> inputs) {
  const Elements &x = *inputs[0], &scale = *inputs[1];
  const Elements* const shift = inputs.size() > 2 ? inputs[2] : nullptr;
  SWIZZLE_ASSIGN_OR_RETURN(const int64_t axis, IntAttribute(node, "axis", -1));
  SWIZZLE_ASSIGN_OR_RETURN(const float epsilon, FloatAttribute(node, "epsilon", 1e-5f));
  const auto rank = static_cast<int64_t>(x.shape.size());
  if (x.dtype != DType::kFloat32 || rank == 0 || (axis != -1 && axis != rank - 1)) return std::nullopt;
  const auto channels = static_cast<size_t>(x.shape.back());
  const bool fits = scale.scalars.size() == channels && (shift == nullptr || shift->scalars.size() == channels);
  if (!fits || channels == 0) return std::nullopt;
  Elements result = x;
  for (size_t first = 0; first < result.scalars.size(); first += channels) {
    const std::span<Scalar> row(result.scalars.data() + first, channels);
    double mean = 0, variance = 0;
    for (const Scalar& scalar : row) mean += scalar.real / static_cast<double>(channels);
    for (const Scalar& scalar : row) {
      variance += (scalar.real - mean) * (scalar.real - mean) / static_cast<double>(channels);
    }
    const double inverse = 1.0 / std::sqrt(variance + epsilon);
    for (size_t c = 0; c < channels; ++c) {
      const double scaled = (row[c].real - mean) * inverse * scale.scalars[c].real;
      row[c].real = static_cast<float>(scaled + (shift == nullptr ? 0.0 : shift->scalars[c].real));
    }
  }
  return result;
}

}  // namespace swizzle

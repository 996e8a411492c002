#include "model_loader/interpreter/operators/images/smoothing.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "kernels/base/dtype_row.h"
#include "model_loader/interpreter/values/rows.h"
#include "model_loader/interpreter/values/strided.h"

namespace swizzle::interpreter {
namespace {

double WeightAt(double distance, const SmoothAxis& axis) {
  const double d = std::abs(distance), a = axis.coefficient;
  if (!axis.cubic) return std::max(0.0, 1.0 - d);
  if (d <= 1.0) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2.0 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0.0;
}

// The input positions [first, first + weights.size()) that an output position is made of.
struct Window {
  int64_t first = 0;
  std::vector<float> weights;
};

Window WindowOf(const SmoothAxis& axis, int64_t position) {
  const double stretch = std::min(axis.scale, 1.0), radius = (axis.cubic ? 2.0 : 1.0) / stretch;
  const double exact = axis.source(position);
  const double x = std::isnan(exact) ? 0.0 : std::clamp(exact, -1e9, 1e9);
  const auto begin = static_cast<int64_t>(std::floor(x - radius)) + 1;
  const auto end = static_cast<int64_t>(std::ceil(x + radius));
  const int64_t last = axis.from - 1;
  Window window{std::clamp<int64_t>(begin, 0, last), {}};
  window.weights.resize(static_cast<size_t>(std::clamp<int64_t>(end - 1, 0, last) - window.first + 1));
  double total = 0.0;
  for (int64_t i = begin; i < end; ++i) {
    if (axis.exclude_outside && (i < 0 || i > last)) continue;
    const double weight = WeightAt((static_cast<double>(i) - x) * stretch, axis);
    window.weights[static_cast<size_t>(std::clamp<int64_t>(i, 0, last) - window.first)] += static_cast<float>(weight);
    total += weight;
  }
  if (total != 0.0) {
    for (float& weight : window.weights) weight = static_cast<float>(weight / total);
  }
  return window;
}

}  // namespace

StatusOr<Array> ResizeSmoothly(Call& call, const Array& x, int64_t d, Array y, const SmoothAxis& axis) {
  if (call.device() != nullptr) return Unimplemented("a device does not resize with antialias");
  const Rows rows{.array = {}, .order = {}, .count = axis.to, .length = ProductOf(x.shape, 0, x.rank())};
  const int64_t outer = ProductOf(x.shape, 0, d), inner = ProductOf(x.shape, d + 1, x.rank());
  const float* const from = x.As<float>().data();
  float* const to = y.Mutable<float>().data();
  ForEachRow(call, rows, [&](int64_t position) {
    const Window window = WindowOf(axis, position);
    for (int64_t o = 0; o < outer; ++o) {
      float* const out = to + (o * axis.to + position) * inner;
      std::fill_n(out, inner, 0.0f);
      for (size_t k = 0; k < window.weights.size(); ++k) {
        const float* const in = from + (o * axis.from + window.first + static_cast<int64_t>(k)) * inner;
        for (int64_t j = 0; j < inner; ++j) out[j] += window.weights[k] * in[j];
      }
    }
  });
  return y;
}

void RoundTo(DType dtype, Array& array) {
  const DTypeRow& row = RowOf(dtype);
  const bool is_signed = row.kind == DTypeKind::kSigned;
  const float most = std::ldexp(1.0f, std::min(row.digits, 24)) - 1.0f;
  for (float& element : array.Mutable<float>()) {
    element = std::clamp(std::nearbyint(element), is_signed ? -most - 1.0f : 0.0f, most);
  }
}

}  // namespace swizzle::interpreter

#include "kernels/cpu/conv/feature_panels.h"

#include <algorithm>

#include "kernels/base/integers.h"

namespace swizzle::cpu {
namespace {

constexpr size_t kSpare = kBufferAlignment / sizeof(float);

float* Aligned(float* data) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address is rounded up
  return reinterpret_cast<float*>(RoundUp(reinterpret_cast<uintptr_t>(data), kBufferAlignment));
}

}  // namespace

FeaturePanels::FeaturePanels(const DenseMatrix& matrix, std::span<const float> bias)
    : rows_(matrix.rows),
      cols_(matrix.cols),
      grid_(matrix.rows),
      memory_(static_cast<size_t>(padded() * (cols_ + 1)) + kSpare),
      aligned_(Aligned(memory_.data())) {
  for (int64_t panel = 0; panel < grid_.count(); ++panel) {
    const int64_t first = grid_.Begin(panel), width = grid_.Width(panel);
    float* const to = aligned_ + first * cols_;
    const int64_t features = std::min(width, rows_ - first);
    for (int64_t f = 0; f < features; ++f) {
      const float* const from = matrix.values.data() + (first + f) * cols_;
      for (int64_t k = 0; k < cols_; ++k) to[k * width + f] = from[k];
    }
  }
  std::copy(bias.begin(), bias.end(), aligned_ + padded() * cols_);
}

}  // namespace swizzle::cpu

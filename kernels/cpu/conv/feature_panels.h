// The layout of a linear layer's weights in which neighbouring output features share a vector: features are cut into
// panels as positions are (kernels/base/layout.h), up to 64 wide, in units of 16, and a panel has for each input
// feature the weights of its output features. Worked example, panels of 2 instead: of W = (a b), (c d), (e f), a row an
// output,
//     a c  b d | e 0  f 0
// Spare features of the last panel are zeros. Immutable, thread-safe.
#ifndef SWIZZLE_KERNELS_CPU_CONV_FEATURE_PANELS_H_
#define SWIZZLE_KERNELS_CPU_CONV_FEATURE_PANELS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/backend/kernel_table.h"
#include "kernels/base/layout.h"

namespace swizzle::cpu {

class FeaturePanels final : public PackedWeight {
 public:
  FeaturePanels(const DenseMatrix& matrix, std::span<const float> bias);

  size_t bytes() const override { return static_cast<size_t>(padded() * (cols_ + 1)) * sizeof(float); }
  int64_t rows() const { return rows_; }  // output features
  int64_t cols() const { return cols_; }  // input features
  const PanelGrid& grid() const { return grid_; }
  // As wide as the panel, for each input feature from `column` on; what follows are the next panel's.
  const float* weights(int64_t panel, int64_t column) const {
    return aligned_ + grid_.Begin(panel) * cols_ + column * grid_.Width(panel);
  }
  const float* bias() const { return aligned_ + padded() * cols_; }  // of each padded feature; zero if there is none

 private:
  int64_t padded() const { return grid_.padded_positions(); }

  const int64_t rows_;
  const int64_t cols_;
  const PanelGrid grid_;
  std::vector<float> memory_;
  float* const aligned_;  // to kBufferAlignment, in memory_
};

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_CONV_FEATURE_PANELS_H_

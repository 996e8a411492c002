// A weight in panels beside what its rows' sums end with: of scaled layers RowEnds, of those whose input is quantised
// by positions PositionEnds. Immutable, thread-safe.
#ifndef SWIZZLE_KERNELS_CUDA_INT8_PANEL_WEIGHT_H_
#define SWIZZLE_KERNELS_CUDA_INT8_PANEL_WEIGHT_H_

#include <cstddef>
#include <memory>
#include <utility>

#include "kernels/backend/kernel_table.h"
#include "kernels/cuda/int8/byte_panels.h"

namespace swizzle::cuda {

template <typename Ends>
class PanelWeight final : public PackedWeight {
 public:
  PanelWeight(std::unique_ptr<BytePanels> panels, Ends ends) : panels_(std::move(panels)), ends_(std::move(ends)) {}
  size_t bytes() const override { return panels_->bytes() + ends_.bytes(); }
  const BytePanels& panels() const { return *panels_; }
  const Ends& ends() const { return ends_; }

 private:
  const std::unique_ptr<BytePanels> panels_;
  const Ends ends_;
};

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_INT8_PANEL_WEIGHT_H_

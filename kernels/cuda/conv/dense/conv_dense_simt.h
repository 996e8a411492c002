// Dense convolution of any window as an implicit matrix product on CUDA cores, fp32: rows conv_nhwc_dense_f32_sm75 and
// conv_rows_dense_f32_sm75, for where cuDNN is not, and where gathering columns costs more than it saves.
//
// A block computes a tile of positions x output channels; what it multiplies is gathered straight from the input, a few
// columns at a time, into shared memory, while the columns before are multiplied. Columns are ordered [taps][channels].
// Where tiles are too few to fill the GPU, several blocks share one, each taking some of the columns; their sums go
// through the workspace and are added in a fixed order.
#ifndef SWIZZLE_KERNELS_CUDA_CONV_DENSE_CONV_DENSE_SIMT_H_
#define SWIZZLE_KERNELS_CUDA_CONV_DENSE_CONV_DENSE_SIMT_H_

#include <cstdint>
#include <limits>
#include <memory>

#include "kernels/backend/kernel_table.h"

namespace swizzle::cuda {

bool AcceptsConvSimt(const Problem& problem);  // fewer than four million output channels
StatusOr<std::unique_ptr<PackedWeight>> PrepareConvSimt(const Weight& weight, const Problem& problem);
template <Layout kLayout>
size_t ConvSimtWorkspaceBytes(const Problem& problem);
template <Layout kLayout>
void ConvSimt(const KernelArgs& args, Stream& stream);

// What is below is for the functions above.

// How a problem is cut: tiles, and splits of the columns.
struct SimtCut {
  int positions, channels;  // of a tile
  int64_t tiles_across, tiles_down, splits, steps_per_split;
};

// What a cut has to fit: the device, and splits that the workspace has room for.
struct SimtRoom {
  int multiprocessors;
  int64_t most_splits = std::numeric_limits<int64_t>::max();  // 0: as 1
};

SimtCut CutForSimt(const Problem& problem, const SimtRoom& room);

extern template size_t ConvSimtWorkspaceBytes<Layout::kNhwc>(const Problem&);
extern template size_t ConvSimtWorkspaceBytes<Layout::kRows>(const Problem&);
extern template void ConvSimt<Layout::kNhwc>(const KernelArgs&, Stream&);
extern template void ConvSimt<Layout::kRows>(const KernelArgs&, Stream&);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_CONV_DENSE_CONV_DENSE_SIMT_H_

// The columns that a convolution multiplies its weights with, on a GPU, from kRows.
//
// Row k = (channel * kernel_h + i) * kernel_w + j holds, for each output position, the input at tap (i, j) of the window
// there, and zero where the tap falls outside the plane.
#ifndef SWIZZLE_KERNELS_CUDA_IM2COL_H_
#define SWIZZLE_KERNELS_CUDA_IM2COL_H_

#include "kernels/cuda/cuda_stream.h"

namespace swizzle::cuda {

// Output positions [begin, begin + count), their rows `count` elements apart. Positions past the last repeat it. In the
// problem's element type.
struct ColumnBlock {
  int64_t begin = 0;
  int64_t count = 0;
  void* columns = nullptr;
};
void GatherColumns(const Problem& problem, const void* input, const ColumnBlock& block, CudaStream& stream);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_IM2COL_H_

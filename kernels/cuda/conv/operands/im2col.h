// The columns that a convolution multiplies its weights with, on a GPU, in the problem's element type. Outside the
// plane they are zero.
#ifndef SWIZZLE_KERNELS_CUDA_CONV_OPERANDS_IM2COL_H_
#define SWIZZLE_KERNELS_CUDA_CONV_OPERANDS_IM2COL_H_

#include "kernels/backend/kernel_args.h"

namespace swizzle::cuda {

// Output positions [begin, begin + count), to `columns`.
struct ColumnBlock {
  int64_t begin = 0;
  int64_t count = 0;
  void* columns = nullptr;
};

// From kRows to [channels][taps][count]. Positions past the last repeat it.
void GatherColumns(const Problem& problem, const Operand& input, const ColumnBlock& block, Stream& stream);
// From kNhwc, perhaps with a pitch, to [count][taps][channels]. REQUIRES: the problem has all these positions.
void GatherColumnsNhwc(const Problem& problem, const Operand& input, const ColumnBlock& block, Stream& stream);

// All columns of a kRows input: itself where its columns are the positions, else in the workspace, RowStride apart.
const void* AllColumns(const KernelArgs& args, Stream& stream);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_CONV_OPERANDS_IM2COL_H_

// Convolutions with windows whose rows of weights share columns, on tensor cores in half precision, X and Y in kRows:
// what conv_shfl_bw.h says, without unfolding the whole window.
//
// A tap's shift misaligns the rows of X that 16-byte copies want. So shifts along the width alone are unfolded first,
// for the pairs of channel and column of the window that some weight has: a slot of the workspace for each,
// [slot][image][line][output columns, padded to 8], lines being rows of the input. That is a third of what a 3x3 window
// would unfold to, and less where few weights are left. Taps of one column are then rows of it further on, and the
// padding above and below is zeros that copies make. Tiles are of padded output columns; what lies past a row's end is
// not stored.
#ifndef SWIZZLE_KERNELS_CUDA_CONV_SHFL_BW_CONV_SHFL_BW_WINDOW_H_
#define SWIZZLE_KERNELS_CUDA_CONV_SHFL_BW_CONV_SHFL_BW_WINDOW_H_

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/backend/kernel_table.h"
#include "kernels/cuda/conv/operands/row_groups.h"

namespace swizzle::cuda {

// The rows of the input that a slot has: of a window of one row only those that the output takes.
struct WindowLines {
  int64_t count;
  int64_t first, step;          // line i is row first + i * step of the input, zeros if that is outside
  int64_t out_first, out_step;  // row y of the output begins with line out_first + y * out_step

  static WindowLines Of(const Problem& problem) {
    const Window& window = problem.window();
    if (window.kernel_h == 1) return {problem.output.height, -window.pad_top, window.stride_h, 0, 1};
    return {problem.input.height, 0, 1, -window.pad_top, window.stride_h};
  }
};

// The slot of each pair, channel * kernel_w + column of the window, that a column of the weight names; -1 of others.
// At least one pair has a slot.
std::vector<int32_t> SlotsOfPairs(std::span<const uint32_t> columns, int64_t channels, const Window& window);

// Row functions; FP16 and BF16, windows of at most 31 rows that are not pointwise. The weight is PrepareConvShflBw's.
bool AcceptsConvShflBwWindow(const Problem& problem);
size_t ConvShflBwWindowWorkspaceBytes(const Problem& problem);
// Tiles of kWidth columns: 64, 128 or 256.
template <int kWidth>
void RunConvShflBwWindow(const KernelArgs& args, Stream& stream);

// Dense weights of few columns, stems and the first layers after them, as groups that keep all columns: a window of
// theirs is then never unfolded whole, and where positions are many their loads and stores are all that counts. Row
// functions as above, for pointwise windows too.
bool AcceptsConvThin(const Problem& problem);
StatusOr<std::unique_ptr<PackedWeight>> PrepareConvThin(const Weight& weight, const Problem& problem);
size_t ConvThinWorkspaceBytes(const Problem& problem);
template <int kWidth>
void RunConvThin(const KernelArgs& args, Stream& stream);

// What is below is for the launch functions.

// Everything in device memory; elements of X, residual and Y are of the problem's type. Residual may be null.
struct WindowOperands {
  const RowGroups* weight;
  const int32_t* slot_of_pair;
  const Problem* problem;
  const void* x;  // unfolded along the width
  const void* residual;
  void* y;
  int64_t stride;   // of rows of the residual and Y
  int64_t columns;  // padded ones
  Epilogue epilogue = {};
};

// The slots of the workspace, from X in kRows.
void UnfoldWidth(const Problem& problem, const int32_t* slot_of_pair, const void* x, void* unfolded,
                 cudaStream_t queue);
template <int kWidth>
void QueueWindowGroups(const WindowOperands& operands, int multiprocessors, cudaStream_t queue);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_CONV_SHFL_BW_CONV_SHFL_BW_WINDOW_H_

// Convolutions whose rows of weights share columns, on tensor cores in half precision, X and Y in kBatched.
//
// A position's images lie together there, in pieces of 16 bytes. So the row of X that a column names, a channel and a
// tap of the window, is made of whole pieces whatever the window, its stride and its padding: nothing is unfolded, a
// copy each brings them, and those outside of the plane are zeros that copies make. Rows of Y begin on 16 bytes. The
// weights, the ring and the products are those of conv_shfl_bw.h and conv_shfl_bw_window.h, which read the same packed
// weights: a plan may take kRows for single images and kBatched for many.
//
// Pointwise products do not ask in which order positions come: they are conv_shfl_bw.h's own.
#ifndef SWIZZLE_KERNELS_CUDA_CONV_SHFL_BW_CONV_SHFL_BW_BATCHED_H_
#define SWIZZLE_KERNELS_CUDA_CONV_SHFL_BW_CONV_SHFL_BW_BATCHED_H_

#include <cuda_runtime.h>

#include <bit>
#include <cstdint>

#include "kernels/backend/kernel_table.h"
#include "kernels/cuda/conv/shfl_bw/conv_shfl_bw_window.h"

namespace swizzle::cuda {

// Row functions; FP16 and BF16, tiles of kWidth columns: 64, 128 or 256, of pointwise ones 192, too.
bool AcceptsConvBatched(const Problem& problem);  // pointwise ones, by PrepareConvShflBw
template <int kWidth>
void RunConvBatched(const KernelArgs& args, Stream& stream);
bool AcceptsConvBatchedWindow(const Problem& problem);  // others of at most 63 taps, likewise
template <int kWidth>
void RunConvBatchedWindow(const KernelArgs& args, Stream& stream);
bool AcceptsConvBatchedThin(const Problem& problem);  // either, by PrepareConvThin
template <int kWidth>
void RunConvBatchedThin(const KernelArgs& args, Stream& stream);

// What is below is for the launch functions.

// Everything in device memory; elements of X, residual and Y are of the problem's type. Residual may be null.
struct BatchedOperands {
  const RowGroups* weight;
  const Problem* problem;
  const void* x;
  const void* residual;
  void* y;
  int64_t stride;   // of rows of the residual and Y
  int64_t columns;  // of Y, those that round the batch up included
  Epilogue epilogue = {};
};

// A column's word in the kernel is a tap in so many bits, and above it how many pieces of X its channel and tap are
// away.
inline int TapBits(const Window& window) { return std::bit_width(static_cast<uint32_t>(window.taps() - 1)); }
inline int64_t MostBatchedElements(const Window& window) {
  return (int64_t{1} << (31 - TapBits(window))) * kBatchUnit;  // of channels, and as many of a window's reach
}

template <int kWidth>
void QueueBatchedGroups(const BatchedOperands& operands, int multiprocessors, cudaStream_t queue);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_CONV_SHFL_BW_CONV_SHFL_BW_BATCHED_H_

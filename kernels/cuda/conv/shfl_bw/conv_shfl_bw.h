// Convolutions and linear layers whose rows of weights share columns, on tensor cores in half precision:
// Y[M,N] = W[M,K] X[K,N], X and Y in kRows, other windows unfolded first, as in conv_csr.h. W is packed by
// row_groups.h; rows of Y are written where they belong, whatever order the groups have (Huang et al., "Shfl-BW", DAC
// 2022).
//
// On Hopper a CTA has 64 rows of Y by 64, 128, 192 or 256 columns and two roles. Producers, four warps, gather the rows
// of X that the group's columns name, 16 bytes a lane, by asynchronous copies into a ring of stages, and bring the
// weights by bulk copies; consumers multiply. What decides the speed are the copies (an SM takes 47 bytes a clock), so:
//   two CTAs an SM, each with a ring of its own, take turns at the end of a tile;
//   a producer does little besides: its columns lie in its own order, one 16-byte load brings eight, asked for four
//   stages ahead, and no copy is conditional;
//   no branch stands between the products of a stage; a residual comes through the ring after the tile's columns.
// A column tile that reaches past the row's end reads its last 16 bytes again and stores nothing there.
//
// Groups with the same columns (vectors of 128 rows) are multiplied in pairs: one CTA an SM, 128 rows of Y, consumers
// for each group and producers that gather once for both.
//
// For few columns, and devices before Hopper, conv_shfl_bw_few.cu multiplies the same weights by warps: a CTA has 16 or
// 32 rows of a group by up to 64 columns, its 8 or 16 warps share K, and operands go from memory to registers.
#ifndef SWIZZLE_KERNELS_CUDA_CONV_SHFL_BW_CONV_SHFL_BW_H_
#define SWIZZLE_KERNELS_CUDA_CONV_SHFL_BW_CONV_SHFL_BW_H_

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>

#include "kernels/backend/kernel_table.h"
#include "kernels/cuda/conv/operands/row_groups.h"

namespace swizzle::cuda {

// Row functions; FP16 and BF16. The workspace is ConvCsrWorkspaceBytes.
bool AcceptsConvShflBw(const Problem& problem);
// Whether its rows can be grouped (FindRowGrouping).
bool HoldsRowGroups(const Weight& weight, const Problem& problem);
// Whether these are in pairs (row_groups.h).
bool HoldsRowPairs(const Weight& weight, const Problem& problem);
StatusOr<std::unique_ptr<PackedWeight>> PrepareConvShflBw(const Weight& weight, const Problem& problem);
// Of what that made.
const RowGroups& RowGroupsOf(const PackedWeight& weight);
const int32_t* WindowSlotsOf(
    const PackedWeight& weight);  // conv_shfl_bw_window.h's, where the window is no pointwise one
// Tiles of kWidth columns: 64, 128, 192 or 256.
template <int kWidth>
void RunConvShflBw(const KernelArgs& args, Stream& stream);
// Two groups of a pair at once.
template <int kWidth>
void RunConvShflBwPairs(const KernelArgs& args, Stream& stream);
void RunConvShflBwFew(const KernelArgs& args, Stream& stream);

// The same kernels for weights in blocks of 16x16 and beside them (HB-ELL): groups of 64 neighbouring rows, with all
// columns that one of them uses. Full blocks are dense in them; what is scattered costs a column of a group each time,
// which tensor cores take as long for as CUDA cores for one or two entries. A part of its own for these was tried:
// PERFORMANCE.md.
bool HoldsMixedBlocks(const Weight& weight, const Problem& problem);
StatusOr<std::unique_ptr<PackedWeight>> PrepareConvHbEll(const Weight& weight, const Problem& problem);

// What is below is for the launch functions and for benchmarks.

// Everything in device memory; elements of X, residual and Y are of `dtype`. Residual may be null, or Y.
// Y = ending(alpha * W X + beta * residual + bias).
struct GroupOperands {
  const RowGroups* weight;
  DType dtype;
  const void* x;
  const void* residual;
  void* y;
  int64_t stride;   // of rows of X, residual and Y: a multiple of 16 elements
  int64_t columns;  // N; up to the stride are computed
  Epilogue epilogue = {};
  float alpha = 1, beta = 1;
};

template <int kWidth>
void QueueGroups(const GroupOperands& operands, int multiprocessors, cudaStream_t queue);
// REQUIRES: the weight is in pairs.
template <int kWidth>
void QueuePairs(const GroupOperands& operands, int multiprocessors, cudaStream_t queue);
void QueueFewColumns(const GroupOperands& operands, int multiprocessors, cudaStream_t queue);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_CONV_SHFL_BW_CONV_SHFL_BW_H_

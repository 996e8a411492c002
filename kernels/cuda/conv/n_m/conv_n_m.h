// Convolutions and linear layers with 2:4 sparse weights on sparse tensor cores in half precision:
// Y[M,N] = W[M,K] X[K,N], X and Y in kRows, other windows unfolded first, as in conv_csr.h. W is packed by
// two_of_four.h.
//
// On Hopper a CTA has 128 rows of Y by 128 or 256 columns and three roles: a thread that fetches, and two warpgroups of
// 64 rows each. Slabs of X, 64 rows by 64 columns, come by the tensor memory accelerator, which swizzles them and gives
// zeros past the edges; weights with their places by one bulk copy a stage. So nothing but products is left to do, and
// what bounds them is that a product of 64 by 256 reads 16 KiB of X from shared memory in the 128 clocks that it takes:
// twice the dense rate is out of reach.
//
// Devices from Ampere on multiply the same weights by warps (conv_n_m_warps.cu): a CTA has 128 rows of Y by 64 or 128
// columns, asynchronous copies fill three stages, and each of eight warps has 32 columns of some of the rows.
#ifndef SWIZZLE_KERNELS_CUDA_CONV_N_M_CONV_N_M_H_
#define SWIZZLE_KERNELS_CUDA_CONV_N_M_CONV_N_M_H_

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>

#include "kernels/backend/kernel_table.h"
#include "kernels/cuda/conv/n_m/two_of_four.h"

namespace swizzle::cuda {

// Row functions; FP16 and BF16. The workspace is ConvCsrWorkspaceBytes.
bool AcceptsConvTwoOfFour(const Problem& problem);
// Whether at most two of any four neighbouring columns are not zero.
bool HoldsTwoOfFour(const Weight& weight, const Problem& problem);
StatusOr<std::unique_ptr<PackedWeight>> PrepareConvTwoOfFour(const Weight& weight, const Problem& problem);
// Tiles of kWidth columns: 128 or 256.
template <int kWidth>
void RunConvTwoOfFour(const KernelArgs& args, Stream& stream);
// By warps, tiles of 64 or 128 columns.
template <int kWidth>
void RunConvTwoOfFourByWarps(const KernelArgs& args, Stream& stream);

// What is below is for the launch functions and for benchmarks.

// Everything in device memory; elements of X, residual and Y are of `dtype`. Residual may be null.
struct TwoOfFourOperands {
  const TwoOfFour* weight;
  DType dtype;
  const void* x;
  const void* residual;
  void* y;
  int64_t stride;   // of rows of X, residual and Y: a multiple of 16 elements
  int64_t columns;  // N; up to the stride are computed
  Epilogue epilogue = {};
};

template <int kWidth>
void QueueTwoOfFour(const TwoOfFourOperands& operands, int multiprocessors, cudaStream_t queue);
template <int kWidth>
void QueueTwoOfFourByWarps(const TwoOfFourOperands& operands, cudaStream_t queue);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_CONV_N_M_CONV_N_M_H_

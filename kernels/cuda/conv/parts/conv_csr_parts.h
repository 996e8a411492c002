// Convolutions and linear layers with a sparse FP32 weight by products of halves on Hopper's tensor cores: Y[M,N] =
// W[M,K] X[K,N], X and Y in kRows, other windows unfolded first, as in conv_csr.h. As in conv_csr_wgmma.h the weight is
// read sparse (fragment_csr.h) and multiplied dense. But X is split once, by a kernel of its own (position_parts.h),
// and sums stay in tensor cores from the first column to the last: conv_row_parts.h says what that loses. These rows
// are for plans whose precision allows it.
//
// A CTA has 128 rows by kWidth columns of Y and three warpgroups. A thread of one asks the tensor memory accelerator
// for slabs of both parts, 64 rows of X each, into a ring; the other two have 64 rows of Y each, and decode the weights
// of the next slab while the products of this one run. They wait for slabs, and for each other only where one is a
// whole ring ahead.
#ifndef SWIZZLE_KERNELS_CUDA_CONV_PARTS_CONV_CSR_PARTS_H_
#define SWIZZLE_KERNELS_CUDA_CONV_PARTS_CONV_CSR_PARTS_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/backend/kernel_table.h"
#include "kernels/cuda/conv/csr/fragment_csr.h"
#include "kernels/cuda/conv/parts/conv_row_parts.h"

namespace swizzle::cuda {

// Row function; FP32. Weights are PrepareConvCsrWgmma's, the workspace is ConvRowPartsWorkspaceBytes. Tiles of kWidth
// columns: 64, 128 or 192.
template <int kWidth>
void RunConvCsrParts(const KernelArgs& args, Stream& stream);

// What is below is for the launch functions and for benchmarks.

using CsrPartOperands = OperandsInParts<FragmentCsr>;

template <int kWidth>
void QueueCsrParts(const CsrPartOperands& operands, int multiprocessors, cudaStream_t queue);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_CONV_PARTS_CONV_CSR_PARTS_H_

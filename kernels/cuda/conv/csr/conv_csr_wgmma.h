// Convolutions and linear layers with a sparse FP32 weight on Hopper's tensor cores: Y[M,N] = W[M,K] X[K,N], X and Y in
// kRows, other windows unfolded first, as in conv_csr.h. The weight is read sparse and multiplied dense (Xia et al.,
// "Flash-LLM", VLDB 2023): packed by fragment_csr.h, it becomes operands in registers, zeros included.
//
// FP32 products are three of FP16 parts (operand.cuh has the source). Parts of X are made as a slab of it comes
// in, each of its columns scaled by the power of two that suits the largest of its 64 numbers. (A factor for all
// columns would be cheaper, but they may belong to several requests, and one with huge numbers would lose the others
// theirs.) Tensor cores cut their sums off where
// FP32 units round them, which adds up: so they sum the products of a slab, and FP32 units add those to the others.
// Against double precision the largest error over the DLMC is 4.3e-7 of the largest sum, and cuBLAS's in FP32 3.6e-7
// (1.46 times on geometric average); FP32 multiply-adds one after the other err 0.4 to 2.1 times as much as this.
//
// Why it can be faster though it multiplies zeros: tensor cores give 2048 FP16 multiply-adds a clock and SM, a third of
// that in FP32 parts: 5 times the FP32 units. X is read from shared memory once for 64 rows of W, so that the bound of
// conv_csr.h, an element of X for each multiply-add, does not hold. Its time hardly depends on the zeros: 1.2 us a
// slab (64 rows of X) for 64 rows and 64 columns of Y, 1.8 us for 128 rows, both measured with one factor for all
// columns (a factor for each adds 4 %, over the DLMC). That is a fifth of what tensor cores could do, and 8 warps of an
// SM spend it on decoding, splitting and waiting for each other, at 4.5 clocks an instruction.
// Tried and slower: mma.sync (12 instructions for each of its products; 1.1 to 1.5 times the time), two CTAs of 128
// registers (they spill), four warpgroups a CTA, copies of X ahead of time in registers.
//
// A CTA has two warpgroups and 64 or 128 rows by 64 columns of Y. Where that makes too few CTAs, those of a cluster
// share K and add up their sums through distributed shared memory, in a fixed order.
#ifndef SWIZZLE_KERNELS_CUDA_CONV_CSR_CONV_CSR_WGMMA_H_
#define SWIZZLE_KERNELS_CUDA_CONV_CSR_CONV_CSR_WGMMA_H_

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>

#include "kernels/backend/kernel_table.h"
#include "kernels/cuda/conv/csr/fragment_csr.h"
#include "kernels/cuda/conv/csr/wgmma_plan.h"

namespace swizzle::cuda {

// Row functions; FP32 only. The workspace is ConvCsrWorkspaceBytes.
StatusOr<std::unique_ptr<PackedWeight>> PrepareConvCsrWgmma(const Weight& weight, const Problem& problem);
const FragmentCsr& FragmentCsrOf(const PackedWeight& weight);  // of what that made
void RunConvCsrWgmma(const KernelArgs& args, Stream& stream);

// What is below is for the launch functions and for benchmarks.

// Everything in device memory. Residual may be null.
struct WgmmaOperands {
  const FragmentCsr* weight;
  const float* x;
  const float* residual;
  float* y;
  int64_t stride;   // of rows of X, residual and Y: a multiple of 16 elements
  int64_t columns;  // N; up to 3 columns after it are computed too
  Epilogue epilogue = {};
};

WgmmaDevice CurrentWgmmaDevice();
void QueueWgmma(const WgmmaOperands& operands, const WgmmaPlan& plan, cudaStream_t queue);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_CONV_CSR_CONV_CSR_WGMMA_H_

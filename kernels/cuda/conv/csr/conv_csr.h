// Convolutions and linear layers with a sparse weight on a GPU: Y[M,N] = W[M,K] X[K,N], W packed by quad_csr.h, X and Y
// in kRows; windows other than 1x1 are first unfolded into such an X (im2col.h) in the workspace. Sums are in fp32.
//
// After Sputnik's SpMM (Gale et al., SC20, section 5): a row of Y belongs to eight lanes (a subwarp), four rows to a
// warp, 16 bytes of X to a lane, so that a load of X by a warp is four whole lines and serves 128 multiply-adds.
// Instead of its masks, tiles of 32 entries and residues, rows come padded in quads; instead of one warp to a CTA,
// eight or sixteen share X through the first cache or shared memory, and share long rows.
//
// Bounds, for nnz multiply-adds times N, on an H200 (132 SMs, 1.755 to 1.98 GHz):
//   fp32 units    128 a clock and SM: 67 TFLOP/s at most.
//   first cache   4 bytes of X a multiply-add, at 128 bytes a clock and SM: 25 % of that peak. Weights and columns are
//                 broadcast, but by our reckoning take as long to reach 32 lanes' registers as X does: 6 clocks for
//                 four entries of four rows, whose X takes 16 for each vector a lane has. That leaves 18 % with one
//                 vector, 21 % with two; 16 to 18 % are reached.
//   second cache  about 40 bytes a clock and SM: X has to be read from the first cache, on average, three times.
// To read an X less than once for each multiply-add takes rows with entries in the same column. Among 4 rows of pruned
// weights there are 1.16 entries a column used at 90 % sparsity and 1.36 at 80 %: too few to pay for the choice of the
// row, as registers cannot be indexed. Two ways share X:
//   pieces   A warp is a piece of a quad and reads X through the first cache; pieces of a quad lie in one CTA and are
//            summed in its shared memory. Best where rows are long, columns many, or products short.
//   tile     All of X's rows of a column tile lie in shared memory, and the CTA's warps take one quad after another.
//            Best for K of some hundred and many rows or columns. Tiles of 128 bytes of a row (one vector a lane), or
//            of 256.
// Measured on an H200 over the DLMC by tests/bench/cuda/cuda_spmm_bench.cc: tests/bench/results/cuda_spmm_h200.json.
// Where K is long and zeros are 80 %, tensor cores are faster, though they multiply the zeros: conv_csr_wgmma.h.
// Tried and not kept: pieces of a quad by columns over the CTAs of a cluster, slices of a large K in the tiles of a
// cluster, and quads shared by a CTA's warps in rounds. All read X less often and were slower; why is not known.
#ifndef SWIZZLE_KERNELS_CUDA_CONV_CSR_CONV_CSR_H_
#define SWIZZLE_KERNELS_CUDA_CONV_CSR_CONV_CSR_H_

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>

#include "kernels/backend/kernel_table.h"
#include "kernels/cuda/conv/csr/quad_csr.h"
#include "kernels/cuda/conv/csr/spmm_plan.h"
#include "kernels/cuda/runtime/shared_memory.h"

namespace swizzle::cuda {

SpmmDevice CurrentSpmmDevice();

// Row functions. The dtype is the problem's.
StatusOr<std::unique_ptr<PackedWeight>> PrepareConvCsr(const Weight& weight, const Problem& problem);
size_t ConvCsrWorkspaceBytes(const Problem& problem);
void RunConvCsrPieces(const KernelArgs& args, Stream& stream);
void RunConvCsrTile128(const KernelArgs& args, Stream& stream);
void RunConvCsrTile256(const KernelArgs& args, Stream& stream);

// Tiles of this many bytes of a row, where the current device has memory for one of all rows of X.
template <int kBytes>
bool AcceptsConvCsrTile(const Problem& problem) {
  const int64_t cols = problem.input.channels * problem.window().taps();
  return cols * kBytes <= static_cast<int64_t>(MostSharedMemory());
}

// What is below is for the launch functions and for benchmarks.

// Everything in device memory; elements of X, residual and Y are of `dtype`. Residual may be null.
struct SpmmOperands {
  const QuadCsr* weight;
  DType dtype;
  const void* x;
  const void* residual;
  void* y;
  int64_t stride;   // of rows of X, residual and Y: a multiple of 16 elements
  int64_t columns;  // N; up to 7 columns after it are computed too
  Epilogue epilogue = {};
};

void QueueSpmm(const SpmmOperands& operands, const SpmmPlan& plan, cudaStream_t queue);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_CONV_CSR_CONV_CSR_H_

// Convolutions and linear layers with a sparse weight on a GPU: Y[M,N] = W[M,K] X[K,N], W packed by quad_csr.h, X and Y in
// kRows; windows other than 1x1 are first unfolded into such an X (im2col.h) in the workspace. Sums are in fp32.
//
// After Sputnik's SpMM (Gale et al., SC20, section 5): a row of Y belongs to eight lanes (a subwarp), four rows to a warp,
// 16 bytes of X to a lane, so that a load of X by a warp is four whole lines and serves 128 multiply-adds. Instead of its
// masks, tiles of 32 entries and residues, rows come padded in quads; instead of one warp to a CTA, eight or sixteen share
// X through the first cache or shared memory, and share long rows.
//
// Bounds, for nnz multiply-adds times N, on an H200 (132 SMs, 1.755 to 1.98 GHz):
//   fp32 units    128 a clock and SM: 67 TFLOP/s at most.
//   first cache   4 bytes of X a multiply-add, at 128 bytes a clock and SM: 25 % of that peak; weights and columns, read once
//                 for 8 * kVectors lanes, add 1 / (8 * kVectors): 22 % with one vector of X a lane, 24 % with four.
//   second cache  about 40 bytes a clock and SM: X has to be read from the first cache, on average, three times.
// To read an X less than once for each multiply-add takes rows with entries in the same column. Among 4 rows of magnitude-
// pruned weights there are 1.16 entries a column used at 90 % sparsity and 1.36 at 80 %: too few to pay for the choice of the
// row, as registers cannot be indexed. What is left is to come close to the 22 %, where Sputnik reaches 10 to 12, by
// three ways to share X:
//   pieces   a warp is a piece of a quad; pieces of a quad lie in one CTA and are summed in its shared memory.
//   cluster  a quad is cut into 2, 4 or 8 pieces by columns, each in another CTA of a cluster; eight quads share a slice of X in
//            the first cache, which matters for large K and small N. Summed through distributed shared memory. Hopper.
//   tile     all of X's K rows of a column tile lie in shared memory, and the CTA's warps take one quad after another: small
//            K, large N.
#ifndef SWIZZLE_KERNELS_CUDA_CONV_CSR_H_
#define SWIZZLE_KERNELS_CUDA_CONV_CSR_H_

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/quad_csr.h"
#include "kernels/kernel_table.h"

namespace swizzle::cuda {

// Row functions.
bool AcceptsConvCsrF32(const Problem& problem);
bool AcceptsConvCsrF16(const Problem& problem);
bool AcceptsConvCsrBf16(const Problem& problem);
StatusOr<std::unique_ptr<PackedWeight>> PrepareConvCsrF32(const Weight& weight, const Problem& problem);
StatusOr<std::unique_ptr<PackedWeight>> PrepareConvCsrF16(const Weight& weight, const Problem& problem);
StatusOr<std::unique_ptr<PackedWeight>> PrepareConvCsrBf16(const Weight& weight, const Problem& problem);
size_t ConvCsrWorkspaceBytes(const Problem& problem);
void RunConvCsrF32(const KernelArgs& args, Stream& stream);
void RunConvCsrF16(const KernelArgs& args, Stream& stream);
void RunConvCsrBf16(const KernelArgs& args, Stream& stream);

// What is below is for the launch functions and for benchmarks.

// How a product is laid over the device.
struct SpmmPlan {
  enum class Way : uint8_t { kPieces, kCluster, kTile };
  Way way = Way::kPieces;
  int vectors = 1;  // 16-byte vectors of X a lane has of a row: 1, 2 or 4. A column tile is 128 bytes times this
  int cut = 0;      // kPieces: which of QuadCsr::cuts()
  int parts = 1;    // kCluster: CTAs of a cluster: 2, 4 or 8. kTile: CTAs that share the quads of a column tile
};

// Everything in device memory; elements of X, residual and Y are of `dtype`. Residual may be null.
struct SpmmOperands {
  const QuadCsr* weight;
  DType dtype;
  const void* x;
  const void* residual;
  void* y;
  int64_t stride;  // of rows of X, residual and Y: a multiple of 16 elements
  int64_t columns;  // N; up to 7 columns after it are computed too
  float low, high;
};

struct SpmmDevice {
  int multiprocessors = 132;
  int shared_bytes = 0;  // that a CTA may have
  bool clusters = false;
};
SpmmDevice CurrentSpmmDevice();

// Whether the plan fits the weight and device; MakeSpmmPlan's does.
bool Fits(const SpmmPlan& plan, const QuadCsr& weight, const SpmmDevice& device);
SpmmPlan MakeSpmmPlan(const QuadCsr& weight, int64_t columns, const SpmmDevice& device, DType dtype);
std::vector<SpmmPlan> AllSpmmPlans(const QuadCsr& weight, const SpmmDevice& device);
std::string SpmmPlanText(const SpmmPlan& plan);  // "cluster v2 x4"
void QueueSpmm(const SpmmOperands& operands, const SpmmPlan& plan, cudaStream_t queue);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_CONV_CSR_H_

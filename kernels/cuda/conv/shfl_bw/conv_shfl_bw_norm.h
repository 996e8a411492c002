// A linear layer, the residual that is added to it and the layer norm that alone reads their sum, as one kernel in half
// precision: rows layer_norm_rows_shfl_bw_. A problem of such is a kLayerNorm with a residual, whose weight is the
// linear layer's matrix [M, K]; its bias has the layer's M biases, the norm's M scales and its M biases one after the
// other (plan/choose/norm_pairs.h makes them).
//
// Groups of rows are multiplied as in conv_shfl_bw.h. The blocks of a cluster have one tile of columns of Y, and a
// group or two each of its rows: all of them together. Sums stay in registers: each block finds the mean and the
// squares of differences from it of its rows of each column (lanes join theirs by pairs: Chan, Golub and LeVeque,
// "Algorithms for computing the sample variance", 1983, section 1), tells them to the others through distributed shared
// memory, and normalises. The sum is not rounded on the way, and goes neither to memory nor back. For few columns warps
// multiply, as in conv_shfl_bw_few.cu.
//
// More than eight groups are two a block, or, spread, one: clusters are then larger than every device runs, and twice
// as many multiprocessors work where there are few columns.
#ifndef SWIZZLE_KERNELS_CUDA_CONV_SHFL_BW_CONV_SHFL_BW_NORM_H_
#define SWIZZLE_KERNELS_CUDA_CONV_SHFL_BW_CONV_SHFL_BW_NORM_H_

#include <memory>

#include "kernels/cuda/conv/shfl_bw/conv_shfl_bw.h"

namespace swizzle::cuda {

// Row functions; FP16 and BF16. M is a multiple of 64 that a cluster's blocks share evenly.
bool AcceptsNormShflBw(const Problem& problem);
StatusOr<std::unique_ptr<PackedWeight>> PrepareNormShflBw(const Weight& weight, const Problem& problem);
// Tiles of kWidth columns: 64 or 128.
template <int kWidth>
void RunNormShflBw(const KernelArgs& args, Stream& stream);
void RunNormShflBwFew(const KernelArgs& args, Stream& stream);

// What is below is for the launch functions and for benchmarks.

// y = (s - mean(s)) * factor(s) * scale + bias of s = W X + residual + the layer's bias.
struct NormOperands {
  GroupOperands product;  // its epilogue, alpha and beta do not count
  const float* scales;    // of each row
  const float* biases;    // likewise
  float epsilon;
  bool centred;         // else the mean is taken to be 0
  bool spread = false;  // REQUIRES: the device runs such clusters, and they have no more blocks than kMostSpreadOf
};

constexpr int kMostSpreadBlocks = 16, kFewColumnsOfTile = 32;
// Of tiles of kWidth columns: more would not leave room for two blocks of 128.
template <int kWidth>
constexpr int kMostSpreadOf = kWidth == 64 ? kMostSpreadBlocks : 14;
// Groups of rows that each of a cluster's blocks has, which are two to eight; 0 where no such number does.
constexpr int GroupsOfBlock(int64_t groups) {
  constexpr int64_t kMostBlocks = 8;  // that every device with clusters runs at once
  if (groups < 2) return 0;
  if (groups <= kMostBlocks) return 1;
  return groups <= 2 * kMostBlocks && groups % 2 == 0 ? 2 : 0;
}

// Clusters of a block for each of so many groups that the current device has room for at once, by either kernel.
template <int kWidth>
int MostSpreadNormGroups(int64_t groups);
int MostSpreadNormFewColumns(int64_t groups);

template <int kWidth>
void QueueNormGroups(const NormOperands& operands, cudaStream_t queue);
void QueueNormFewColumns(const NormOperands& operands, cudaStream_t queue);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_CONV_SHFL_BW_CONV_SHFL_BW_NORM_H_

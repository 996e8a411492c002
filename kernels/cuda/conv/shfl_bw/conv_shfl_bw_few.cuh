// How warps multiply few columns by groups of rows (conv_shfl_bw.h): operands go from memory to registers, and the
// warps of a block share K. Device code.
#ifndef SWIZZLE_KERNELS_CUDA_CONV_SHFL_BW_CONV_SHFL_BW_FEW_CUH_
#define SWIZZLE_KERNELS_CUDA_CONV_SHFL_BW_CONV_SHFL_BW_FEW_CUH_

#include "kernels/cuda/conv/shfl_bw/conv_shfl_bw.h"
#include "kernels/cuda/runtime/dependent_launch.cuh"
#include "kernels/cuda/runtime/elements.cuh"
#include "kernels/cuda/tensor_core/mma.cuh"

namespace swizzle::cuda::shfl_bw_few {

constexpr int kWarp = 32;
constexpr int kStep = RowGroups::kStep, kStepPairs = RowGroups::kRows * kStep / 4;  // uint2 of a step's weights

struct Args {
  const void* x;
  const uint2* weights;
  const uint16_t* columns;
  const RowGroup* groups;
  const int32_t* rows;
  const float* bias;
  const void* residual;
  void* y;
  int64_t stride;     // elements
  int32_t row_tiles;  // of all groups
  float alpha, beta;  // of sums and residual
};

// kOctets times eight columns of Y by kSixteens times 16 rows of a group: what a CTA computes. Its warps share K, and
// each asks for the operands of kAtOnce steps together.
template <int kColumnOctets, int kRowSixteens, int kStepsAtOnce = 2, int kWarpsOfBlock = 8>
struct Tile {
  static constexpr int kWarps = kWarpsOfBlock, kThreads = kWarps * kWarp;
  static constexpr int kOctets = kColumnOctets, kSixteens = kRowSixteens;
  static constexpr int kColumns = 8 * kOctets, kRows = 16 * kSixteens, kTilesOfGroup = RowGroups::kRows / kRows;
  static constexpr int kAtOnce = kStepsAtOnce;
  static constexpr int kPitch = kColumns + 4;  // of a row of sums, in shared memory
  // Sums of so many warps lie side by side there; those of the others are added to them in turn.
  static constexpr int kWarpBytes = kRows * kPitch * 4, kMostBytes = 48 * 1024;
  static constexpr int kParts = kWarps * kWarpBytes <= kMostBytes       ? kWarps
                                : kWarps / 2 * kWarpBytes <= kMostBytes ? kWarps / 2
                                                                        : kWarps / 4;
  static_assert(kParts * kWarpBytes <= kMostBytes);
  using Sums = float[kSixteens][kOctets][4];
};

// A step's operands as products take them. Lane (g, t) has columns 4t to 4t + 3 of the step, whatever numbers they have
// in a product, and columns kOctets * g and on of X: octet j of products has every kOctets-th column from j on.
template <typename S>
struct StepOperands {
  uint32_t weights[S::kSixteens][4];
  uint32_t columns[4];
  Pack<uint16_t, S::kOctets> x[4];

  // `step` of the group; warps' order of columns is that of row_groups.h.
  __device__ void LoadWeights(const Args& args, const RowGroup& group, int first_row, int step) {
    const int g = threadIdx.x % kWarp / 4, t = threadIdx.x % 4;
    const uint2* const from = args.weights + (int64_t{group.weights} + step) * kStepPairs + t / 2 * (kStepPairs / 2) +
                              (first_row + g) * 2 + t % 2;
    const uint16_t* const columns =
        args.columns + int64_t{group.columns} * RowGroups::kChunk + step / 2 * RowGroups::kStage + step % 2 * 4 + t;
#pragma unroll
    for (int i = 0; i < 4; ++i) this->columns[i] = __ldg(columns + i * (RowGroups::kStage / 4));
#pragma unroll
    for (int i = 0; i < S::kSixteens; ++i) {
      const uint2 upper = __ldg(from + i * 32), lower = __ldg(from + i * 32 + 16);
      weights[i][0] = upper.x, weights[i][1] = lower.x, weights[i][2] = upper.y, weights[i][3] = lower.y;
    }
  }

  // `from`: the lane's columns of X's first row.
  __device__ void LoadX(const uint16_t* from, int64_t stride) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      x[i] = *reinterpret_cast<const Pack<uint16_t, S::kOctets>*>(from + columns[i] * stride);
    }
  }

  template <typename T>
  __device__ void AddTo(typename S::Sums& sums) const {
#pragma unroll
    for (int j = 0; j < S::kOctets; ++j) {
      const uint32_t b0 = x[0].values[j] | uint32_t{x[1].values[j]} << 16;
      const uint32_t b1 = x[2].values[j] | uint32_t{x[3].values[j]} << 16;
#pragma unroll
      for (int i = 0; i < S::kSixteens; ++i) Mma<T>(sums[i][j], weights[i], b0, b1);
    }
  }
};

// What a warp sums of its steps, every S::kWarps-th.
template <typename S, typename T>
__device__ void SumSteps(const Args& args, const RowGroup& group, int first_row, const uint16_t* x,
                         typename S::Sums& sums) {
  const int steps = static_cast<int>(group.steps);
  int step = threadIdx.x / kWarp;
  StepOperands<S> operands[S::kAtOnce];
  const auto load = [&](int first) {
#pragma unroll
    for (int i = 0; i < S::kAtOnce; ++i) {
      if (first + i * S::kWarps < steps) operands[i].LoadWeights(args, group, first_row, first + i * S::kWarps);
    }
  };
  load(step);
  WaitForResults();
  for (; step < steps; step += S::kAtOnce * S::kWarps) {
#pragma unroll
    for (int i = 0; i < S::kAtOnce; ++i) {
      if (step + i * S::kWarps < steps) operands[i].LoadX(x, args.stride);
    }
#pragma unroll
    for (int i = 0; i < S::kAtOnce; ++i) {
      if (step + i * S::kWarps < steps) operands[i].template AddTo<T>(sums);
    }
    load(step + S::kAtOnce * S::kWarps);
  }
}

// What a warp summed, to its rows of `parts`, kPitch floats each; or added to what its lanes find there.
template <typename S, bool kAdds = false>
__device__ void StoreSums(const typename S::Sums& sums, float (*parts)[S::kPitch]) {
  const int g = threadIdx.x % kWarp / 4, t = threadIdx.x % 4;
#pragma unroll
  for (int i = 0; i < S::kSixteens; ++i) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      float* const to = &parts[i * 16 + e / 2 * 8 + g][(2 * t + e % 2) * S::kOctets];
#pragma unroll
      for (int j = 0; j < S::kOctets; ++j) to[j] = kAdds ? to[j] + sums[i][j][e] : sums[i][j][e];
    }
  }
}

// What all warps of a block summed, to `parts`; the block meets after it.
template <typename S>
__device__ void StoreAllSums(const typename S::Sums& sums, float (*parts)[S::kRows][S::kPitch]) {
  const int warp = threadIdx.x / kWarp;
  auto* const part = parts[warp % S::kParts];
#pragma unroll
  for (int turn = 0; turn < S::kWarps / S::kParts; ++turn) {
    if (warp / S::kParts == turn) turn == 0 ? StoreSums<S>(sums, part) : StoreSums<S, true>(sums, part);
    __syncthreads();
  }
}

// Of operands whose weight has groups, each in so many tiles of rows.
inline Args ArgsOf(const GroupOperands& operands, int tiles_of_group) {
  const RowGroups& weight = *operands.weight;
  return {.x = operands.x,
          .weights = reinterpret_cast<const uint2*>(weight.weights()),
          .columns = weight.columns(),
          .groups = weight.groups(),
          .rows = weight.rows(),
          .bias = weight.bias(),
          .residual = operands.residual,
          .y = operands.y,
          .stride = operands.stride,
          .row_tiles = static_cast<int32_t>(weight.count() * tiles_of_group),
          .alpha = operands.alpha,
          .beta = operands.beta};
}

}  // namespace swizzle::cuda::shfl_bw_few

#endif  // SWIZZLE_KERNELS_CUDA_CONV_SHFL_BW_CONV_SHFL_BW_FEW_CUH_

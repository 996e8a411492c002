#include "kernels/cuda/attention/row_pieces.cuh"
#include "kernels/cuda/attention/sddmm_tiles.h"
#include "kernels/cuda/attention/sparse_attention.h"
#include "kernels/cuda/attention/sparse_softmax.h"
#include "kernels/cuda/runtime/elements.cuh"
#include "kernels/cuda/runtime/launch_grid.h"

namespace swizzle::cuda {
namespace {

struct Params {
  HeadMatrices values;
  MutableHeadMatrices output;
  const void* weights;
  int64_t value_stride;
  const uint32_t* row_offsets;
  const uint32_t* col_indices;
  const uint32_t* bundles;
  int tokens;
};

// A warp's row: subgroups take every kNonzeros-th nonzero, and are added up at the end.
template <typename T, int kHeadDim>
__device__ void MultiplyRow(const Params& p, int row) {
  using Pieces = RowPieces<T, kHeadDim, 32>;
  constexpr int kLanes = Pieces::kLanes, kNonzeros = 32 / kLanes, kElements = kPieceElements<T>;
  static_assert(Pieces::kPieces == 1);
  const int lane = threadIdx.x % 32, sublane = lane % kLanes, subgroup = lane / kLanes;
  const T* values = static_cast<const T*>(p.values.data) + blockIdx.y * p.values.head_stride;
  const T* weights = static_cast<const T*>(p.weights) + blockIdx.y * p.value_stride;
  const int begin = p.row_offsets[row], end = p.row_offsets[row + 1];
  float sums[1][kElements] = {};
  for (int base = begin; base < end; base += 32) {
    const int at = min(base + lane, end - 1);
    const int col = p.col_indices[at];
    const float weight = base + lane < end ? static_cast<float>(weights[at]) : 0.0f;
#pragma unroll 8
    for (int step = 0; step < 32; step += kNonzeros) {
      const int64_t key = __shfl_sync(0xFFFFFFFFu, col, step + subgroup);
      const float factor = __shfl_sync(0xFFFFFFFFu, weight, step + subgroup);
      Pieces pieces;
      pieces.Load(values + key * p.values.token_stride, sublane);
      pieces.AddTo(sums, factor);
    }
  }
#pragma unroll
  for (int e = 0; e < kElements; ++e) {
#pragma unroll
    for (int lanes = kLanes; lanes < 32; lanes *= 2) sums[0][e] += __shfl_xor_sync(0xFFFFFFFFu, sums[0][e], lanes);
  }
  T* output = static_cast<T*>(p.output.data) + blockIdx.y * p.output.head_stride + row * p.output.token_stride;
  if (subgroup == 0) reinterpret_cast<uint4*>(output)[sublane] = FromFloats(sums[0]);
}

template <typename T, int kHeadDim>
__global__ void __launch_bounds__(32 * kBundleRows) MultiplyBundle(const __grid_constant__ Params p) {
  const int row = p.bundles[blockIdx.x] * kBundleRows + threadIdx.x / 32;
  if (row < p.tokens) MultiplyRow<T, kHeadDim>(p, row);
}

template <typename T>
void Launch(int head_dim, const Params& params, const LaunchGrid& grid, cudaStream_t queue) {
  constexpr int kThreads = 32 * kBundleRows;
  switch (head_dim) {
    case 32:
      return MultiplyBundle<T, 32><<<grid, kThreads, 0, queue>>>(params);
    case 64:
      return MultiplyBundle<T, 64><<<grid, kThreads, 0, queue>>>(params);
    case 128:
      return MultiplyBundle<T, 128><<<grid, kThreads, 0, queue>>>(params);
  }
}

size_t ScoreBytes(const SparseAttentionArgs& args, int64_t nonzeros) {
  return args.heads * DeviceAttentionPattern::ValueStride(nonzeros) * ElementBytes(args.dtype);
}

}  // namespace

void PatternSpmm(const SparseAttentionArgs& args, const DeviceAttentionPattern& pattern, const void* weights,
                 cudaStream_t queue) {
  if (pattern.tokens() == 0) return;
  const Params params{
      args.values,           args.output,           weights,           pattern.value_stride(),
      pattern.row_offsets(), pattern.col_indices(), pattern.bundles(), static_cast<int>(pattern.tokens())};
  const LaunchGrid grid(pattern.bundle_count(), args.heads);
  VisitFloat32Or16(args.dtype, [&]<DType kType>() { Launch<Element<kType>>(args.head_dim, params, grid, queue); });
}

size_t SparseAttentionWorkspaceBytes(const SparseAttentionArgs& args, int64_t tokens, int64_t nonzeros) {
  return ScoreBytes(args, nonzeros) + SddmmWorkspaceBytes(args.dtype, args.head_dim, args.heads, tokens);
}

void SparseAttentionInParts(const SparseAttentionArgs& args, const DeviceAttentionPattern& pattern,
                            const DeviceSddmmTiles& tiles, std::span<std::byte> workspace, cudaStream_t queue) {
  void* const scores = workspace.data();
  SddmmByTiles({args.dtype, args.queries, args.keys, args.heads, args.head_dim, scores}, pattern, tiles,
               workspace.subspan(ScoreBytes(args, pattern.nnz())), queue);
  SparseSoftmax({args.dtype, scores, scores, args.heads, args.scale}, pattern, queue);
  PatternSpmm(args, pattern, scores, queue);
}

}  // namespace swizzle::cuda

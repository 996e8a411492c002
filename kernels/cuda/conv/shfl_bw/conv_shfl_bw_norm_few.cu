#include "kernels/cuda/conv/shfl_bw/conv_shfl_bw_few.cuh"
#include "kernels/cuda/conv/shfl_bw/conv_shfl_bw_norm.h"
#include "kernels/cuda/conv/shfl_bw/norm_moments.cuh"
#include "kernels/cuda/runtime/shared_memory.h"

namespace swizzle::cuda {
namespace shfl_bw_few {
namespace {

struct NormArgs : Args {
  const float* scales;
  const float* biases;
  float epsilon;
  bool centred;
  int32_t blocks;  // of a cluster
};

// All rows of a group by kOctets octets of columns. When the warps' sums are joined, a warp has eight rows; a lane has
// a column, and, where there are fewer columns than lanes, a part of these.
template <int kOctets, int kMostBlocks>
struct NormTile : Tile<kOctets, RowGroups::kRows / 16> {
  using S = Tile<kOctets, RowGroups::kRows / 16>;
  static constexpr int kWarps = S::kWarps;
  static constexpr int kLaneGroups = kWarp / S::kColumns;
  static constexpr int kRowsOfWarp = S::kRows / kWarps, kRowsOfLane = kRowsOfWarp / kLaneGroups;
  struct Shared {
    float parts[kWarps][S::kRows][S::kPitch];
    MomentExchange<kWarps, S::kColumns, kMostBlocks> exchange;
    BlockMoments<kWarps, S::kColumns> moments;
  };
};

// A lane's rows of a group: what is added to its sums, and what follows the norm.
template <typename T, int kRows>
struct LaneRows {
  int rows[kRows];
  float added[kRows], scales[kRows], biases[kRows];

  __device__ void Load(const NormArgs& args, int place) {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      rows[i] = __ldg(args.rows + place + i);
      added[i] = __ldg(args.bias + place + i);
      scales[i] = __ldg(args.scales + rows[i]);
      biases[i] = __ldg(args.biases + rows[i]);
    }
  }
  __device__ void AddResidual(const NormArgs& args, int64_t column) {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      added[i] += ToFloat(static_cast<const T*>(args.residual)[rows[i] * args.stride + column]);
    }
  }
};

template <typename T, int kGroups, typename N>
__global__ void __launch_bounds__(N::kThreads) MultiplyFewAndNormalise(const __grid_constant__ NormArgs args) {
  using S = typename N::S;
  extern __shared__ uint4 dynamic_shared[];
  auto& shared = *reinterpret_cast<typename N::Shared*>(dynamic_shared);
  LetNextStart();
  if (threadIdx.x == 0) shared.exchange.Init(args.blocks);
  __syncthreads();
  ArriveAtCluster();
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp, rank = blockIdx.x % args.blocks;
  const int row = warp * N::kRowsOfWarp + lane / S::kColumns * N::kRowsOfLane, column = lane % S::kColumns;
  const int64_t first = int64_t{blockIdx.x / args.blocks} * S::kColumns;
  // Past the row's end its last columns are read again; they are not stored.
  const int64_t own = min(first + column, args.stride - 1);
  const int64_t copied = min(first + lane / 4 * S::kOctets, args.stride - S::kOctets);
  LaneRows<T, N::kRowsOfLane> ends[kGroups];
  float held[kGroups][N::kRowsOfLane];
#pragma unroll
  for (int i = 0; i < kGroups; ++i) {
    const uint4 bits = __ldg(reinterpret_cast<const uint4*>(args.groups + rank + i * args.blocks));
    const RowGroup group = {bits.x, bits.y, bits.z, bits.w};
    ends[i].Load(args, static_cast<int>(group.place) + row);
    typename S::Sums sums = {};
    SumSteps<S, T>(args, group, 0, static_cast<const uint16_t*>(args.x) + copied, sums);
    ends[i].AddResidual(args, own);
    if (i > 0) __syncthreads();  // the group before has been read
    StoreSums<S>(sums, shared.parts[warp]);
    __syncthreads();
#pragma unroll
    for (int r = 0; r < N::kRowsOfLane; ++r) {
      held[i][r] = ends[i].added[r];
#pragma unroll
      for (const auto& part : shared.parts) held[i][r] += part[row + r][column];
    }
  }
  Moments moments = {0, 0};
  constexpr int kCount = kGroups * N::kRowsOfLane;
#pragma unroll
  for (const auto& group : held) {
#pragma unroll
    for (const float value : group) moments.mean += value / kCount;
  }
#pragma unroll
  for (const auto& group : held) {
#pragma unroll
    for (const float value : group) moments.squares += (value - moments.mean) * (value - moments.mean);
  }
#pragma unroll
  for (int step = S::kColumns; step < kWarp; step *= 2) {
    const Moments other = {__shfl_xor_sync(0xFFFFFFFFu, moments.mean, step),
                           __shfl_xor_sync(0xFFFFFFFFu, moments.squares, step)};
    moments = Join(moments, other, static_cast<float>(kCount * step / S::kColumns));
  }
  if (lane < S::kColumns) shared.moments.of_warps[warp][column] = {moments.mean, moments.squares};
  WaitForCluster();  // all have their barriers
  __syncthreads();
  if (threadIdx.x < S::kColumns) {
    shared.exchange.Tell(shared.moments, column, N::kRowsOfWarp * kGroups, args.blocks);
    shared.exchange.Find(shared.moments, column, S::kRows * kGroups, args.blocks, args.epsilon, args.centred);
  }
  __syncthreads();
  if (first + column >= args.stride) return;
  const float2 found = shared.moments.found[column];
#pragma unroll
  for (int i = 0; i < kGroups; ++i) {
#pragma unroll
    for (int r = 0; r < N::kRowsOfLane; ++r) {
      const float value = fmaf((held[i][r] - found.x) * found.y, ends[i].scales[r], ends[i].biases[r]);
      static_cast<T*>(args.y)[ends[i].rows[r] * args.stride + first + column] = FromFloat<T>(value);
    }
  }
}

template <typename T, int kOctets, int kGroups, int kMostBlocks = kPortableBlocks>
void QueueNorm(const NormOperands& operands, cudaStream_t queue) {
  using N = NormTile<kOctets, kMostBlocks>;
  const auto groups = static_cast<int>(operands.product.weight->count()), blocks = groups / kGroups;
  const NormArgs args = {
      ArgsOf(operands.product, 1), operands.scales, operands.biases, operands.epsilon, operands.centred, blocks};
  auto* const kernel = MultiplyFewAndNormalise<T, kGroups, N>;
  constexpr size_t kBytes = sizeof(typename N::Shared);
  AllowSharedMemory(kernel, kBytes);
  const LaunchGrid grid(CeilDiv(operands.product.columns, int64_t{N::kColumns}) * blocks);
  LaunchInClusters(kernel, grid, N::kThreads, blocks, kBytes, queue, args);
}

// Blocks of 16 warps, each with half as many steps, are slower (PERFORMANCE.md).
template <typename T, int kGroups, int kMostBlocks = kPortableBlocks>
void QueueTiles(const NormOperands& operands, cudaStream_t queue) {
  if (operands.product.columns <= 16) return QueueNorm<T, 2, kGroups, kMostBlocks>(operands, queue);
  QueueNorm<T, kFewColumnsOfTile / 8, kGroups, kMostBlocks>(operands, queue);
}

template <typename T>
void QueueGroups(const NormOperands& operands, cudaStream_t queue) {
  if (operands.spread) return QueueTiles<T, 1, kMostSpreadBlocks>(operands, queue);
  if (GroupsOfBlock(operands.product.weight->count()) == 1) return QueueTiles<T, 1>(operands, queue);
  QueueTiles<T, 2>(operands, queue);
}

}  // namespace
}  // namespace shfl_bw_few

int MostSpreadNormFewColumns(int64_t groups) {
  using N = shfl_bw_few::NormTile<4, kMostSpreadBlocks>;
  auto* const kernel = shfl_bw_few::MultiplyFewAndNormalise<__half, 1, N>;
  constexpr size_t kBytes = sizeof(N::Shared);
  if (groups > kMostSpreadBlocks || !HasClusters()) return 0;
  AllowSharedMemory(kernel, kBytes);
  return MostClusters(kernel, N::kThreads, static_cast<int>(groups), kBytes);
}

void QueueNormFewColumns(const NormOperands& operands, cudaStream_t queue) {
  if (operands.product.columns == 0) return;
  VisitHalf(operands.product.dtype, [&]<DType kHalf>() { shfl_bw_few::QueueGroups<Element<kHalf>>(operands, queue); });
}

}  // namespace swizzle::cuda

#include "kernels/base/check.h"
#include "kernels/cuda/conv/shfl_bw/conv_shfl_bw_gather.cuh"
#include "kernels/cuda/conv/shfl_bw/conv_shfl_bw_norm.h"
#include "kernels/cuda/conv/shfl_bw/norm_moments.cuh"

namespace swizzle::cuda {
namespace shfl_bw {
namespace {

constexpr int kConsumersMeet = 1;  // the barrier of the consumers alone

struct NormArgs : Args {
  const float* scales;
  const float* biases;
  float epsilon;
  bool centred;
};

// A cluster's tiles: its blocks have one tile of columns, and each every so many-th group of rows.
struct ClusterWalk : TileWalk {
  int end, step;

  __device__ ClusterWalk(const Args& all, int blocks, int groups) : TileWalk(all), step(blocks) {
    const int cluster = tile / blocks;
    tile = cluster * all.group_count + tile % blocks;
    end = tile + groups * blocks;
  }
  __device__ bool HasTile() const { return tile < end; }
  __device__ RowGroup NextGroup() const { return Load(tile + step < end ? tile + step : tile); }
  __device__ void Next() { tile += step; }
};

// When a block has its sums, what it finds of them lies where its first stage was: so two blocks of clusters of up to
// kMostSpreadOf fit a multiprocessor.
template <int kWidth, int kMostBlocks>
struct NormShared {
  using Exchange = MomentExchange<kWarps, kWidth, kMostBlocks>;
  using OfBlock = typename Exchange::OfBlock;
  typename Shape<kWidth>::Shared ring;
  Exchange exchange;
  static_assert(sizeof(OfBlock) <= sizeof(ring.stages[0]));
  __device__ OfBlock& moments() { return reinterpret_cast<OfBlock&>(ring.stages[0]); }
};

template <int kGroups>
struct WalkOf : ClusterWalk {
  __device__ explicit WalkOf(const Args& args) : ClusterWalk(args, args.group_count / kGroups, kGroups) {}
};

template <typename T, int kWidth, int kGroups, int kMostBlocks>
class Normaliser : Multiplier<T, kWidth, NoFunction> {
  using Base = Multiplier<T, kWidth, NoFunction>;
  using S = Shape<kWidth>;
  using Shared = NormShared<kWidth, kMostBlocks>;
  static_assert(S::kParts == 1);

 public:
  __device__ Normaliser(const NormArgs& args, const Ending<NoFunction>& ending, Shared& shared)
      : Base(args, ending, shared.ring), args_(args), exchange_(shared.exchange), moments_(shared.moments()) {}

  __device__ void Run() {
    WalkOf<kGroups> walk(args_);
    const int64_t first = walk.FirstColumn(kWidth);
    RowGroup group = walk.Group();
#pragma unroll
    for (int i = 0; i < kGroups; ++i, walk.Next()) {
      const RowGroup next_group = walk.NextGroup();
      const LaneRows ends = this->EndsOf(group);
      LoadScales(ends, i);
      this->Sum(static_cast<int>(group.steps));
      this->WaitForResidual();
#pragma unroll
      for (int j = 0; j < kWidth / 2; ++j) held_[i][j] = this->sums_[0][j] + ends.biases[j / 2 % 2];
      this->AddStagedResidual(held_[i], 0);
      this->ReleaseResidual();
      group = next_group;
    }
    FindMoments();
    JoinMoments();
    NormaliseAll(first);
  }

 private:
  using Sums = float[kWidth / 2];

  // Of the lane's rows of a group.
  __device__ void LoadScales(const LaneRows& ends, int i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      rows_[i][half] = ends.rows[half];
      scales_[i][half] = __ldg(args_.scales + ends.rows[half]);
      biases_[i][half] = __ldg(args_.biases + ends.rows[half]);
    }
  }

  // Of each column and the warp's rows, in shared memory. Lanes halve what they have of 32 columns until each has one.
  __device__ void FindMoments() {
    const int lane = threadIdx.x % kWarp;
    MeetConsumers();  // none reads stages any more
#pragma unroll
    for (int chunk = 0; chunk < kWidth / 32; ++chunk) {
      Moments of[8];  // column 2t + k % 2 of octet k / 2
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        const int at = (chunk * 4 + k / 2) * 4 + k % 2;
        of[k] = Pair(held_[0], at);
        if constexpr (kGroups == 2) of[k] = Join(of[k], Pair(held_[1], at), 2);
      }
      float count = 2 * kGroups;
#pragma unroll
      for (int halving = 0; halving < 3; ++halving, count *= 2) {
        const int left = 4 >> halving, step = 16 >> halving;
        const bool upper = (lane & step) != 0;
#pragma unroll
        for (int k = 0; k < left; ++k) {
          const Moments sent = upper ? of[k] : of[k + left], kept = upper ? of[k + left] : of[k];
          const Moments got = {__shfl_xor_sync(0xFFFFFFFFu, sent.mean, step),
                               __shfl_xor_sync(0xFFFFFFFFu, sent.squares, step)};
          of[k] = Join(kept, got, count);
        }
      }
      const int column = chunk * 32 + lane / 8 * 8 + lane % 4 * 2 + lane / 4 % 2;
      moments_.of_warps[threadIdx.x / kWarp][column] = {of[0].mean, of[0].squares};
    }
    MeetConsumers();
  }

  static __device__ Moments Pair(const Sums& sums, int at) { return Join({sums[at], 0}, {sums[at + 2], 0}, 1); }

  // A column each.
  __device__ void JoinMoments() {
    const int blocks = args_.group_count / kGroups, column = threadIdx.x;
    if (column < kWidth) {
      exchange_.Tell(moments_, column, 16 * kGroups, blocks);
      exchange_.Find(moments_, column, kTileRows * kGroups, blocks, args_.epsilon, args_.centred);
    }
    MeetConsumers();
  }

  __device__ void NormaliseAll(int64_t first) {
#pragma unroll
    for (int octet = 0; octet < kWidth / 8; ++octet) {
      const float4 found = *reinterpret_cast<const float4*>(&moments_.found[octet * 8 + threadIdx.x % 4 * 2]);
#pragma unroll
      for (int i = 0; i < kGroups; ++i) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          float* const pair = held_[i] + 4 * octet + 2 * half;
          pair[0] = fmaf((pair[0] - found.x) * found.y, scales_[i][half], biases_[i][half]);
          pair[1] = fmaf((pair[1] - found.z) * found.w, scales_[i][half], biases_[i][half]);
        }
      }
    }
    const RowPlaces places(args_, first);
#pragma unroll
    for (int i = 0; i < kGroups; ++i) this->StoreHalves(held_[i], rows_[i], places);
  }

  __device__ void MeetConsumers() const {
    asm volatile("bar.sync %0, %1;" ::"n"(kConsumersMeet), "n"(kRole) : "memory");
  }

  const NormArgs& args_;
  typename Shared::Exchange& exchange_;
  typename Shared::OfBlock& moments_;
  Sums held_[kGroups];
  int rows_[kGroups][2];
  float scales_[kGroups][2], biases_[kGroups][2];
};

template <typename T, int kWidth, int kGroups, int kMostBlocks>
__global__ __launch_bounds__(kThreads, 2) void MultiplyAndNormalise(const __grid_constant__ NormArgs args,
                                                                    const __grid_constant__ Ending<NoFunction> ending) {
  extern __shared__ uint4 dynamic_shared[];
  auto& shared = *reinterpret_cast<NormShared<kWidth, kMostBlocks>*>(dynamic_shared);
  LetNextStart();
  if (threadIdx.x == 0) {
    shared.exchange.Init(args.group_count / kGroups);
    shared.ring.barriers.Init(kRole + 1, kWarps);
  }
  __syncthreads();
  ArriveAtCluster();
  WaitForCluster();  // all have their barriers
  if (threadIdx.x >= kRole) {
    KeepRegisters<Shape<kWidth>::kProducerRegisters>();
    Gatherer<kWidth, Args, RowColumns<kWidth>, WalkOf<kGroups>>(args, shared.ring).Run();
  } else {
    TakeRegisters<Shape<kWidth>::kConsumerRegisters>();
    WaitForResults();
    Normaliser<T, kWidth, kGroups, kMostBlocks>(args, ending, shared).Run();
  }
}

template <typename T, int kWidth, int kGroups, int kMostBlocks = kPortableBlocks>
void QueueNorm(const NormOperands& operands, cudaStream_t queue) {
  using Shared = NormShared<kWidth, kMostBlocks>;
  static_assert(sizeof(Shared) <= 113 * 1024);
  NormArgs args = {ArgsOf(operands.product, kWidth), operands.scales, operands.biases, operands.epsilon,
                   operands.centred};
  const int blocks = args.group_count / kGroups;
  SWIZZLE_CHECK(blocks <= kMostBlocks);
  auto* const kernel = MultiplyAndNormalise<T, kWidth, kGroups, kMostBlocks>;
  AllowSharedMemory(kernel, sizeof(Shared));
  LaunchInClusters(kernel, LaunchGrid(args.tiles / kGroups), kThreads, blocks, sizeof(Shared), queue, args,
                   Ending<NoFunction>(Epilogue()));
}

}  // namespace
}  // namespace shfl_bw

template <int kWidth>
int MostSpreadNormGroups(int64_t groups) {
  auto* const kernel = shfl_bw::MultiplyAndNormalise<__half, kWidth, 1, kMostSpreadOf<kWidth>>;
  constexpr size_t kBytes = sizeof(shfl_bw::NormShared<kWidth, kMostSpreadOf<kWidth>>);
  if (groups > kMostSpreadOf<kWidth> || !HasClusters()) return 0;
  AllowSharedMemory(kernel, kBytes);
  return MostClusters(kernel, shfl_bw::kThreads, static_cast<int>(groups), kBytes);
}

template <int kWidth>
void QueueNormGroups(const NormOperands& operands, cudaStream_t queue) {
  if (operands.product.columns == 0) return;
  VisitHalf(operands.product.dtype, [&]<DType kHalf>() {
    using T = Element<kHalf>;
    if (operands.spread) return shfl_bw::QueueNorm<T, kWidth, 1, kMostSpreadOf<kWidth>>(operands, queue);
    if (GroupsOfBlock(operands.product.weight->count()) == 1) return shfl_bw::QueueNorm<T, kWidth, 1>(operands, queue);
    shfl_bw::QueueNorm<T, kWidth, 2>(operands, queue);
  });
}

template int MostSpreadNormGroups<64>(int64_t);
template int MostSpreadNormGroups<128>(int64_t);
template void QueueNormGroups<64>(const NormOperands&, cudaStream_t);
template void QueueNormGroups<128>(const NormOperands&, cudaStream_t);

}  // namespace swizzle::cuda

// The products of dense_conv_bytes.h by wgmma, with any ends. Device code, and what launches it.
#ifndef SWIZZLE_KERNELS_CUDA_INT8_DENSE_CONV_BYTES_WGMMA_CUH_
#define SWIZZLE_KERNELS_CUDA_INT8_DENSE_CONV_BYTES_WGMMA_CUH_

#include "kernels/cuda/int8/cluster_sums.cuh"
#include "kernels/cuda/int8/dense_conv_bytes.cuh"
#include "kernels/cuda/tensor_core/wgmma.cuh"

namespace swizzle::cuda::byte_wgmma {

inline constexpr int kWarp = 32, kGroupThreads = 128, kGroupPositions = 64;  // of a warpgroup
inline constexpr int kDepth = 128, kPieces = kDepth / kConvPiece;            // of a step
inline constexpr int kProductDepth = 32, kPiecesOfProduct = kProductDepth / kConvPiece;
inline constexpr int kGroupBytes = kConvGroup * kDepth;

// A block has a warpgroup for each 64 positions of a tile.
template <typename Shape>
struct WgmmaTile {
  static constexpr int kPositions = Shape::kPositions, kChannels = Shape::kChannels, kStages = Shape::kStages;
  static constexpr int kThreads = kPositions / kGroupPositions * kGroupThreads;
  static constexpr int kAcross = kChannels / kConvGroup;
  static constexpr int kInputBytes = kPositions * kDepth, kWeightBytes = kChannels * kDepth;
  static constexpr int kStageBytes = kInputBytes + kWeightBytes;
  static constexpr int kRingBytes = kStages * kStageBytes, kAlignment = 1024;
  static constexpr int kBytes = kRingBytes + kChannels * 2 * int{sizeof(int32_t)};  // with starts and scales
  static constexpr int kBlocks = (225 * 1024) / (kBytes + 2 * kAlignment);          // a multiprocessor
  static constexpr int kRowsAtOnce = kThreads / kPieces;
  static constexpr int kCopies = kPositions / kRowsAtOnce;  // of a thread
  static constexpr int kWeightCopies = kWeightBytes / kConvPiece / kThreads;
  static_assert(kRingBytes >= kPositions * kChannels * int{sizeof(int32_t)});
};

// A stage has the positions' columns and then the weights, each as SharedOperand wants it.
template <typename Tile>
class WgmmaCopies {
 public:
  __device__ WgmmaCopies(const DenseConvArgs& args, int first_position, int first_group, int first_step)
      : args_(args),
        row_(static_cast<int>(threadIdx.x) / kPieces),
        piece_(static_cast<int>(threadIdx.x) % kPieces),
        places_(args, first_position + row_),
        next_(args.taps[first_step * kPieces + piece_]) {
#pragma unroll
    for (int i = 0; i < Tile::kWeightCopies; ++i) {
      const int at = (i * Tile::kThreads + static_cast<int>(threadIdx.x)) * kConvPiece;
      const int group = min(first_group + at / kGroupBytes, args.groups - 1);
      weights_[i] = args.weights + int64_t{group} * args.steps * kGroupBytes + at % kGroupBytes;
    }
  }

  // Steps come in their order, from the first one on. What lies behind the last column is not copied, and not
  // multiplied but by zeros.
  __device__ void QueueInput(int step, uint32_t stage) {
    const PieceTap tap = next_;
    const int piece = step * kPieces + piece_;
    if (step + 1 < args_.steps) next_ = args_.taps[piece + kPieces];
    if (piece < args_.pieces) {
      const uint32_t to = stage + row_ * kDepth + (piece_ ^ row_ % 8) * kConvPiece;
#pragma unroll
      for (int i = 0; i < Tile::kCopies; ++i) places_.Copy(args_, i, tap, to + i * Tile::kRowsAtOnce * kDepth);
    }
  }

  __device__ void QueueWeights(int step, uint32_t stage) const {
    const uint32_t weights = stage + Tile::kInputBytes + threadIdx.x * kConvPiece;
#pragma unroll
    for (int i = 0; i < Tile::kWeightCopies; ++i) {
      CopyPiece(weights + i * Tile::kThreads * kConvPiece, weights_[i] + step * kGroupBytes);
    }
  }

 private:
  const DenseConvArgs& args_;
  const int row_, piece_;
  const ConvPlaces<Tile::kCopies, Tile::kRowsAtOnce> places_;
  PieceTap next_;
  const uint8_t* weights_[Tile::kWeightCopies];
};

// Starts of a tile's channels, and then scales.
template <int kChannels>
__device__ void QueueEnds(const DenseConvArgs& args, const StoreBytes& store, int first_channel, uint32_t to) {
  constexpr int kWords = kConvPiece / 4, kPiecesOfEach = kChannels / kWords;
  const int piece = static_cast<int>(threadIdx.x), of_each = piece % kPiecesOfEach;
  const int channel = first_channel + of_each * kWords;
  if (piece >= 2 * kPiecesOfEach || channel >= args.groups * kConvGroup) return;
  const void* const from =
      piece < kPiecesOfEach ? static_cast<const void*>(store.start + channel) : store.scale + channel;
  CopyPiece(to + piece * kConvPiece, from);
}

template <int kCount, int kSums>
__device__ void QueueProducts(int32_t (&sums)[kSums], uint32_t input, uint32_t weights) {
  FenceProducts();
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    QueueProduct<true, uint8_t, int8_t>(sums, SharedOperand(input + i * kProductDepth),
                                        SharedOperand(weights + i * kProductDepth));
  }
}

// A block, or a cluster of blocks that share the steps, makes a tile of positions and channels; tiles of the
// same positions are neighbours. Products of a step run while a later one is copied.
template <typename Shape, typename Store>
__global__ void __launch_bounds__(WgmmaTile<Shape>::kThreads, WgmmaTile<Shape>::kBlocks)
    MultiplyBytesWgmma(const __grid_constant__ DenseConvArgs args, const __grid_constant__ Store store) {
  using Tile = WgmmaTile<Shape>;
  constexpr int kPositions = Shape::kPositions, kChannels = Shape::kChannels, kSplit = Shape::kSplit;
  extern __shared__ uint4 dynamic_shared[];
  const uint32_t unaligned = SharedAddress(dynamic_shared);
  const uint32_t ring = (unaligned + Tile::kAlignment - 1) / Tile::kAlignment * Tile::kAlignment;
  LetNextStart();
  const int group = threadIdx.x / kGroupThreads, warp = threadIdx.x % kGroupThreads / kWarp, lane = threadIdx.x % kWarp;
  const int rank = static_cast<int>(blockIdx.x) % kSplit, tile = static_cast<int>(blockIdx.x) / kSplit;
  const int first_position = tile / args.channel_tiles * kPositions;
  const int first_channel = tile % args.channel_tiles * kChannels;
  const int first_step = args.steps * rank / kSplit, end_step = args.steps * (rank + 1) / kSplit;
  WgmmaCopies<Tile> copies(args, first_position, first_channel / kConvGroup, first_step);
  const auto stage_of = [&](int step) { return ring + step % Tile::kStages * Tile::kStageBytes; };
  if constexpr (Store::kBytes) QueueEnds<kChannels>(args, store, first_channel, ring + Tile::kRingBytes);
#pragma unroll
  for (int i = 0; i < Tile::kStages - 1; ++i) {
    if (first_step + i < end_step) copies.QueueWeights(first_step + i, stage_of(first_step + i));
  }
  const int of_tile = group * kGroupPositions + warp * 16 + lane / 4, channel = lane % 4 * kConvPiece;
  AddedFragments<1> added[Tile::kAcross];
  int32_t sums[kChannels / 2] = {};
  WaitForResults();
#pragma unroll
  for (int i = 0; i < Tile::kStages - 1; ++i) {
    if (first_step + i < end_step) copies.QueueInput(first_step + i, stage_of(first_step + i));
    CommitCopies();
  }
  if constexpr (Store::kBytes) {
#pragma unroll
    for (int i = 0; i < Tile::kAcross && rank == 0; ++i) {
      added[i].Load(args, store.residual, first_position + of_tile, first_channel + i * kConvGroup + channel);
    }
  }
  for (int step = first_step; step < end_step; ++step) {
    WaitForCopies<Tile::kStages - 2>();
    PublishToProducts();
    WaitForProducts(sums);
    __syncthreads();  // also: products of the stage that is filled next are done
    const uint32_t input = stage_of(step) + group * kGroupPositions * kDepth,
                   weights = stage_of(step) + Tile::kInputBytes;
    const int left = args.pieces - step * kPieces;
    if (left >= kPieces) {
      QueueProducts<kPieces / kPiecesOfProduct>(sums, input, weights);
    } else {
      for (int i = 0; i < left; i += kPiecesOfProduct) {
        QueueProducts<1>(sums, input + i * kConvPiece, weights + i * kConvPiece);
      }
    }
    CommitProducts();
    const int next = step + Tile::kStages - 1;
    if (next < end_step) {
      copies.QueueWeights(next, stage_of(next));
      copies.QueueInput(next, stage_of(next));
    }
    CommitCopies();
  }
  WaitForProducts(sums);
  WaitForCopies<0>();
  if constexpr (kSplit > 1) {
    AddUpCluster<kSplit, Tile::kThreads>(
        rank, reinterpret_cast<int4*>(dynamic_shared) + (ring - unaligned) / sizeof(int4), sums);
    if (rank > 0) return;
  }
  const auto for_groups = [&](const auto& visit) {
#pragma unroll
    for (int i = 0; i < Tile::kAcross; ++i) {
      int32_t of_group[1][kConvProducts][4];
#pragma unroll
      for (int j = 0; j < kConvProducts * 4; ++j) {
        // What is made of a sum may not take its register: ptxas would wait for each product.
        asm volatile("mov.b32 %0, %1;" : "=r"(of_group[0][j / 4][j % 4]) : "r"(sums[i * kConvProducts * 4 + j]));
      }
      visit(i, of_group, i * kConvGroup + channel);
    }
  };
  if constexpr (Store::kBytes) {
    for_groups([&](int i, const auto& of_group, int of_channel) {
      const auto* const starts = reinterpret_cast<const int32_t*>(reinterpret_cast<const uint8_t*>(dynamic_shared) +
                                                                  (ring - unaligned) + Tile::kRingBytes);
      const auto* const scales = reinterpret_cast<const float*>(starts + kChannels);
      StoreFragments(args, of_group, added[i], first_position + of_tile, first_channel + of_channel, store,
                     [&](int four) { return FourEnds(starts, scales, of_channel + 4 * four); });
    });
  } else if constexpr (Store::kDirect) {
    for_groups([&](int, const auto& of_group, int of_channel) {
      StoreRealFragments(args, of_group, first_position + of_tile, first_channel + of_channel, store);
    });
  } else {
    __syncthreads();
    auto* const parked = reinterpret_cast<int32_t*>(dynamic_shared);
    for_groups([&](int, const auto& of_group, int of_channel) {
      ParkFragments(of_group, of_tile, of_channel, kChannels, parked);
    });
    __syncthreads();
    StoreParked<kPositions, kChannels, Tile::kThreads>(args, parked, first_position, first_channel, store);
  }
}

// `conv` is whole but for channel_tiles.
template <typename Shape, typename Store>
void QueueTiles(DenseConvArgs conv, const Store& store, cudaStream_t queue) {
  using Tile = WgmmaTile<Shape>;
  constexpr int kBytes = Tile::kBytes + Tile::kAlignment;
  constexpr auto kKernel = MultiplyBytesWgmma<Shape, Store>;
  conv.channel_tiles = CeilDiv(conv.rows, Shape::kChannels);
  const LaunchGrid grid(int64_t{CeilDiv(conv.positions, Shape::kPositions)} * conv.channel_tiles * Shape::kSplit);
  AllowSharedMemory(kKernel, kBytes);
  LaunchInClusters(kKernel, grid, Tile::kThreads, Shape::kSplit, kBytes, queue, conv, store);
}

}  // namespace swizzle::cuda::byte_wgmma

#endif  // SWIZZLE_KERNELS_CUDA_INT8_DENSE_CONV_BYTES_WGMMA_CUH_

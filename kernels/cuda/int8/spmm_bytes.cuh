// The kernels of spmm_bytes.h: two ways to bring X. Device code, and what launches it.
#ifndef SWIZZLE_KERNELS_CUDA_INT8_SPMM_BYTES_CUH_
#define SWIZZLE_KERNELS_CUDA_INT8_SPMM_BYTES_CUH_

#include <algorithm>

#include "kernels/base/check.h"
#include "kernels/cuda/int8/byte_step.cuh"
#include "kernels/cuda/int8/spmm_bytes.h"
#include "kernels/cuda/runtime/dependent_launch.cuh"
#include "kernels/cuda/runtime/shared_memory.h"
#include "kernels/cuda/tensor_core/pipeline.cuh"

namespace swizzle::cuda {

inline constexpr int kGatherWarps = 4, kResidentWarps = 8;

// The ring of a warp that gathers rows: steps ahead of the one that is multiplied.
template <typename W, int kStages, bool kConflictFree, bool kNamesAtOnce>
struct GatherRing {
  static constexpr int kDigitBytes = kStepColumns * W::kChunks * kChunkBytes;
  static constexpr int kStageBytes = W::kColumnDigits * kDigitBytes;
  static constexpr int kBytes = kStages * kStageBytes;
  static constexpr int kRowsAtOnce = kByteWarp / W::kChunks;  // of the warp's copies
  static constexpr int kCopies = W::kChunks;                  // of a lane

  static __device__ uint32_t Row(int slot) {
    return kConflictFree ? RowInTile<W::kChunks>(slot) : slot * (W::kChunks * kChunkBytes);
  }

  // The rows that a lane copies in a step.
  struct Names {
    uint32_t pairs[kCopies / 2];
    __device__ uint32_t Of(int i) const { return pairs[i / 2] >> 16 * (i % 2) & 0xFFFFu; }
  };
  static __device__ Names Load(const uint16_t* columns) {
    const int group = threadIdx.x % kByteWarp / W::kChunks;
    if constexpr (!kNamesAtOnce || W::kColumnDigits == 2) {
      Names names = {};
#pragma unroll
      for (int i = 0; i < kCopies; ++i) {
        const int slot = i * kRowsAtOnce + group;
        names.pairs[i / 2] |= uint32_t{__ldg(columns + slot % 4 * 8 + slot / 4)} << 16 * (i % 2);
      }
      return names;
    }
    const uint4 eight = __ldg(reinterpret_cast<const uint4*>(columns) + group % 4);  // slots group % 4, + 4, + 8, ...
    if constexpr (W::kChunks == 8) {
      return {{eight.x, eight.y, eight.z, eight.w}};
    } else {  // slots group, group + 8, ...: every other one
      const uint32_t half = group < 4 ? 0x5410 : 0x7632;
      return {{__byte_perm(eight.x, eight.y, half), __byte_perm(eight.z, eight.w, half)}};
    }
  }

  // Copies of these rows, from chunk `first` on, of which `chunks` are there.
  static __device__ void Copy(const ByteArgs& args, const Names& names, int first, int chunks, uint32_t stage) {
    const int lane = threadIdx.x % kByteWarp, group = lane / W::kChunks, chunk = lane % W::kChunks;
    if (chunk >= chunks) return;
    const int64_t offset = int64_t{first + chunk} * kChunkBytes;
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      const uint32_t to = stage + (Row(i * kRowsAtOnce + group) ^ chunk * kChunkBytes);
      const int64_t from = names.Of(i) * args.pitch + offset;
      CopyPiece(to, args.x[0] + from);
      if constexpr (W::kColumnDigits == 2) CopyPiece(to + kDigitBytes, args.x[1] + from);
    }
  }
};

// Every kShare-th step of a panel with a tile of X, from step `first` on. What the copies and products of the next step
// need to know is asked for a step before.
template <typename W, typename Ring, int kStages, bool kTransposes>
__device__ void GatherSteps(const ByteArgs& args, const BytePanel& panel, int first, int share, int chunk, int chunks,
                            uint32_t ring, ByteSums<W>& sums) {
  constexpr int kAhead = kStages - 1;
  const int steps = static_cast<int>(panel.steps);
  const uint32_t row = Ring::Row(threadIdx.x % kByteWarp);
  typename Ring::Names names = {};
  StepWeights<W> next_weights = {};
  const auto ask = [&](int step) {
    if (step < steps) names = Ring::Load(args.columns + (size_t{panel.step} + step) * kStepColumns);
  };
  const auto copy = [&](int step, int stage) {
    if (step < steps) Ring::Copy(args, names, chunk, chunks, ring + stage * Ring::kStageBytes);
    CommitCopies();
  };
  ask(first);
  if (first < steps) next_weights.Load(args.weights, panel.step + first);
  WaitForResults();
#pragma unroll
  for (int i = 0; i < kAhead; ++i) {
    copy(first + i * share, i);
    ask(first + (i + 1) * share);
  }
  int stage = 0, next = kAhead % kStages;
  for (int step = first; step < steps; step += share) {
    const StepWeights<W> weights = next_weights;
    if constexpr (kAhead == 0) copy(step, 0);
    WaitForCopies<kAhead == 0 ? 0 : kAhead - 1>();
    __syncwarp();
    // The stage that was read last is free: all lanes have its words.
    if constexpr (kAhead > 0) copy(step + kAhead * share, next);
    ask(step + (kAhead + 1) * share);
    if (step + share < steps) next_weights.Load(args.weights, panel.step + step + share);
    AddStep<W, kTransposes>(ring + stage * Ring::kStageBytes + row, Ring::kDigitBytes, chunks, weights, sums);
    __syncwarp();
    stage = stage + 1 == kStages ? 0 : stage + 1;
    next = next + 1 == kStages ? 0 : next + 1;
  }
  WaitForCopies<0>();
}

// What a head has of operands.
template <typename W>
__device__ ByteArgs OfHead(ByteArgs args) {
  if constexpr (W::kHeads) {
    const int head = blockIdx.y;
    args.x[0] += args.x_strides.Of(head, args.heads);
    args.weights += args.weight_strides.Of(head, args.heads);
  }
  return args;
}
template <typename W, typename Output>
__device__ Output OutputOfHead(const ByteArgs& args, const Output& output) {
  if constexpr (W::kHeads) return output.OfHead(blockIdx.y, args.y_strides.Of(blockIdx.y, args.heads));
  return output;
}

// A panel with a tile of X each warp; kShared: each CTA.
template <typename W, typename Output, bool kShared, int kStages, bool kConflictFree, bool kTransposes,
          bool kNamesAtOnce>
__global__ void __launch_bounds__(kGatherWarps* kByteWarp)
    GatherBytes(const __grid_constant__ ByteArgs all_args, const __grid_constant__ Output all_output) {
  using Ring = GatherRing<W, kStages, kConflictFree, kNamesAtOnce>;
  extern __shared__ __align__(128) uint8_t shared[];
  LetNextStart();
  const ByteArgs args = OfHead<W>(all_args);
  const Output output = OutputOfHead<W>(all_args, all_output);
  if constexpr (W::kHeads) WaitForResults();  // weights are results, too
  const int warp = threadIdx.x / kByteWarp, lane = threadIdx.x % kByteWarp;
  const int64_t item = kShared ? blockIdx.x : int64_t{blockIdx.x} * kGatherWarps + warp;
  if (item >= int64_t{args.panel_count} * args.tiles) return;
  const BytePanel panel = args.panels[item / args.tiles];
  const int chunk = static_cast<int>(item % args.tiles) * W::kChunks, chunks = min(W::kChunks, args.chunks - chunk);
  ByteSums<W> sums = {};
  GatherSteps<W, Ring, kStages, kTransposes>(args, panel, kShared ? warp : 0, kShared ? kGatherWarps : 1, chunk, chunks,
                                             SharedAddress(shared) + warp * Ring::kBytes, sums);
  if constexpr (!kShared) {
#pragma unroll
    for (int i = 0; i < W::kChunks; ++i) {
      if (i < chunks) Finish<W>(sums[i], chunk + i, panel, args, output);
    }
  } else {
    // Each warp's sums of a chunk lie together; warps then add up every fourth chunk.
    constexpr int kPacks = W::kPowers * W::kSumsOfChunk / 4;
    __syncthreads();
    auto* const parts = reinterpret_cast<int4*>(shared) + lane;
#pragma unroll
    for (int i = 0; i < W::kChunks; ++i) {
      const auto* const of = reinterpret_cast<const int4*>(sums[i][0]);
#pragma unroll
      for (int pack = 0; pack < kPacks; ++pack) {
        parts[((warp * W::kChunks + i) * kPacks + pack) * kByteWarp] = of[pack];
      }
    }
    __syncthreads();
    for (int i = warp; i < chunks; i += kGatherWarps) {
      int32_t total[W::kPowers][W::kSumsOfChunk] = {};
#pragma unroll
      for (int part = 0; part < kGatherWarps; ++part) {
#pragma unroll
        for (int pack = 0; pack < kPacks; ++pack) {
          const int4 of = parts[((part * W::kChunks + i) * kPacks + pack) * kByteWarp];
          int32_t* const to = total[0] + 4 * pack;
          to[0] += of.x, to[1] += of.y, to[2] += of.z, to[3] += of.w;
        }
      }
      Finish<W>(total, chunk + i, panel, args, output);
    }
  }
}

// All panels of a CTA with the tile of X that it holds. blockIdx.y is the tile.
template <typename W, typename Output>
__global__ void __launch_bounds__(kResidentWarps* kByteWarp)
    ResidentBytes(const __grid_constant__ ByteArgs args, const __grid_constant__ Output output) {
  static_assert(W::kColumnDigits == 1);
  constexpr int kTile = W::kChunks;
  extern __shared__ __align__(128) uint8_t shared[];
  const uint32_t tile = SharedAddress(shared);
  LetNextStart();
  const int warp = threadIdx.x / kByteWarp, lane = threadIdx.x % kByteWarp;
  const int chunk = static_cast<int>(blockIdx.y) * kTile, chunks = min(kTile, args.chunks - chunk);
  WaitForResults();
  for (int i = threadIdx.x; i < args.cols * kTile; i += kResidentWarps * kByteWarp) {
    const int row = i / kTile, of_row = i % kTile;
    if (of_row >= chunks) continue;
    CopyPiece(tile + (RowInTile<kTile>(row) ^ of_row * kChunkBytes),
              args.x[0] + row * args.pitch + int64_t{chunk + of_row} * kChunkBytes);
  }
  CommitCopies();
  WaitForCopies<0>();
  __syncthreads();
  const int slot = lane % 4 * 8 + lane / 4;
  const int share = static_cast<int>(gridDim.x) * kResidentWarps;
  for (int at = static_cast<int>(blockIdx.x) + warp * static_cast<int>(gridDim.x); at < args.panel_count; at += share) {
    const BytePanel panel = args.panels[at];
    ByteSums<W> sums = {};
    const uint16_t* columns = args.columns + size_t{panel.step} * kStepColumns + slot;
    StepWeights<W> next_weights;
    uint32_t next_column = 0;
    if (panel.steps > 0) next_column = __ldg(columns), next_weights.Load(args.weights, panel.step);
    for (uint32_t step = 0; step < panel.steps; ++step) {
      const uint32_t column = next_column;
      const StepWeights<W> weights = next_weights;
      if (step + 1 < panel.steps) {
        columns += kStepColumns;
        next_column = __ldg(columns), next_weights.Load(args.weights, panel.step + step + 1);
      }
      AddStep<W>(tile + RowInTile<kTile>(column), 0, chunks, weights, sums);
    }
#pragma unroll
    for (int i = 0; i < kTile; ++i) {
      if (i < chunks) Finish<W>(sums[i], chunk + i, panel, args, output);
    }
  }
}

inline ByteArgs ArgsOf(const ByteOperands& operands) {
  const BytePanels& weight = *operands.weight;
  const int columns_of_chunk = kChunkBytes * 8 / std::max(4, std::min(8, operands.x.bits));
  return {.x = {static_cast<const uint8_t*>(operands.x.low), static_cast<const uint8_t*>(operands.x.high)},
          .pitch = operands.x.pitch,
          .panels = weight.panels(),
          .columns = weight.columns(),
          .weights = weight.weights(),
          .rows = static_cast<int32_t>(weight.rows()),
          .cols = static_cast<int32_t>(weight.cols()),
          .chunks = static_cast<int32_t>(CeilDiv<int64_t>(operands.columns, columns_of_chunk)),
          .panel_count = static_cast<int32_t>(weight.count()),
          .tiles = 0,
          .stride = operands.stride};
}

template <typename W, typename Output, GatherForm kForm = GatherForm{}>
void QueueGather(ByteArgs args, const Output& output, cudaStream_t queue) {
  constexpr int kRing = GatherRing<W, kForm.stages, kForm.conflict_free, kForm.names_at_once>::kBytes;
  constexpr int kSums = kForm.shared ? static_cast<int>(sizeof(ByteSums<W>)) * kByteWarp : 0;
  constexpr int kBytes = kGatherWarps * std::max(kRing, kSums);
  constexpr auto kKernel =
      GatherBytes<W, Output, kForm.shared, kForm.stages, kForm.conflict_free, kForm.transposes, kForm.names_at_once>;
  args.tiles = CeilDiv(args.chunks, W::kChunks);
  const int64_t items = int64_t{args.panel_count} * args.tiles;
  AllowSharedMemory(kKernel, kBytes);
  const LaunchGrid grid(kForm.shared ? items : CeilDiv<int64_t>(items, kGatherWarps), args.all_heads);
  LaunchDependent(kKernel, grid, kGatherWarps * kByteWarp, kBytes, queue, args, output);
}

template <typename W, typename Output>
void QueueResident(ByteArgs args, const Output& output, int multiprocessors, cudaStream_t queue) {
  constexpr auto kKernel = ResidentBytes<W, Output>;
  constexpr int kTile = W::kChunks;
  const size_t bytes = size_t{kTile} * kChunkBytes * args.cols, most = MostSharedMemory();
  args.tiles = CeilDiv(args.chunks, kTile);
  AllowSharedMemory(kKernel, most);
  const int64_t each = std::max<int64_t>(1, std::min<int64_t>(3, most / (bytes + 1024)));  // CTAs a multiprocessor
  const int64_t share = std::max<int64_t>(1, each * multiprocessors / args.tiles);
  const int64_t wanted = CeilDiv<int64_t>(args.panel_count, kResidentWarps);
  LaunchDependent(kKernel, LaunchGrid(std::min(share, wanted), args.tiles), kResidentWarps * kByteWarp, bytes, queue,
                  args, output);
}

template <typename W, int kTile, typename Output>
void QueueResidentTile(const ByteArgs& args, const Output& output, int multiprocessors, cudaStream_t queue) {
  if constexpr (W::kColumnDigits == 1) {
    QueueResident<typename W::template WithTile<kTile>>(args, output, multiprocessors, queue);
  } else {
    SWIZZLE_CHECK(W::kColumnDigits == 1);
  }
}

// kStages: of the rings that gather.
template <typename W, typename Output, int kStages = 3>
void QueueWay(const ByteArgs& args, const Output& output, ByteWay way, int multiprocessors, cudaStream_t queue) {
  switch (way) {
    case ByteWay::kGather:
      return QueueGather<W, Output, GatherForm{.stages = kStages}>(args, output, queue);
    case ByteWay::kGatherShared:
      return QueueGather<W, Output, GatherForm{.shared = true, .stages = kStages}>(args, output, queue);
    case ByteWay::kResident128:
      return QueueResidentTile<W, 8>(args, output, multiprocessors, queue);
    case ByteWay::kResident64:
      return QueueResidentTile<W, 4>(args, output, multiprocessors, queue);
  }
}

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_INT8_SPMM_BYTES_CUH_

// Kernels whose producers gather rows of X: those of conv_shfl_bw.h and conv_row_parts.h, and, with columns that are
// taps of windows (conv_shfl_bw_taps.cuh), those of conv_shfl_bw_window.h and conv_shfl_bw_batched.h. Device code.
#ifndef SWIZZLE_KERNELS_CUDA_CONV_SHFL_BW_CONV_SHFL_BW_GATHER_CUH_
#define SWIZZLE_KERNELS_CUDA_CONV_SHFL_BW_CONV_SHFL_BW_GATHER_CUH_

#include "kernels/cuda/conv/shfl_bw/conv_shfl_bw.cuh"
#include "kernels/cuda/runtime/dependent_launch.cuh"

namespace swizzle::cuda::shfl_bw {

// How a warp of producers copies a stage's rows of X: a lane a piece of 16 bytes, kRowsAtOnce rows at a time.
template <int kWidth>
struct GatherShape {
  static constexpr int kPieces = kWidth / kPieceElements;
  static constexpr int kRowsAtOnce = kWarp / kPieces;
  static constexpr int kTurns = kDepth / kWarps / kRowsAtOnce;
  static constexpr bool kUsesAllLanes = kRowsAtOnce * kPieces == kWarp;
};

// The role that gathers rows of X. Columns says where a lane's pieces are. It is made of the arguments, and has
//   Chunk: what a lane keeps of a chunk's columns, those of its warp;
//   Load(chunk): the same, of the chunk with this number;
//   SetFirst(column): where the lane's piece begins, the last piece where that is past the end;
//   Copy(to, chunk, stage, turn, row): asks for the piece of one column, of those that the warp copies in this turn for
//     the chunk's stage the one of this row. Every lane that has a piece calls it;
//   kAligned: as its places in Y have it.
// Walk says which tiles are the CTA's. Of a pair both groups' weights come, one behind the other as they are packed.
template <int kWidth, typename AllArgs, typename Columns, typename Walk = TileWalk, int kGroups = 1>
class Gatherer {
 public:
  using S = Shape<kWidth, kGroups>;
  __device__ Gatherer(const AllArgs& args, typename S::Shared& shared)
      : args_(args),
        columns_(args),
        shared_(shared),
        producer_(shared.barriers),
        warp_(threadIdx.x / kWarp % kWarps),
        row_(threadIdx.x % kWarp / G::kPieces),
        piece_(threadIdx.x % kWarp % G::kPieces),
        copies_(row_ < G::kRowsAtOnce) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int row = kWarps * (i * G::kRowsAtOnce + row_) + warp_;
      to_[i] = piece_ / 8 * kAtomBytes + row * 128 + ((piece_ ^ row) % 8) * kPieceBytes;
    }
  }

  __device__ void Run() {
    Walk walk(args_);
    RowGroup group = walk.Group();
    Chunk chunk = columns_.Load(group.columns);
    WaitForResults();
    for (; walk.HasTile(); walk.Next()) {
      const RowGroup next_group = walk.NextGroup();
      columns_.SetFirst(walk.FirstColumn(kWidth) + piece_ * kPieceElements);
      const int stages = (static_cast<int>(group.steps) + 1) / 2;
#pragma unroll 1
      for (int first = 0; first < stages; first += kStagesOfChunk) {
        const Chunk next = columns_.Load(first + kStagesOfChunk < stages ? group.columns + first / kStagesOfChunk + 1
                                                                         : next_group.columns);
#pragma unroll
        for (int i = 0; i < kStagesOfChunk; ++i) {
          if (first + i >= stages) break;
          Fill(group, first + i, i, chunk);
        }
        chunk = next;
      }
      if constexpr (Columns::kAligned) {
        FillResidual<kWidth, kGroups>(args_, group, walk.FirstColumn(kWidth), shared_, producer_);
      }
      group = next_group;
    }
    CommitCopies();
    WaitForCopies<0>();
  }

 private:
  using G = GatherShape<kWidth>;
  using Chunk = typename Columns::Chunk;

  // The stage `of_chunk` of its chunk: one warp each asks for its weights.
  __device__ void Fill(const RowGroup& group, int stage, int of_chunk, const Chunk& chunk) {
    auto& to = shared_.stages[producer_.stage()];
    const int steps = static_cast<int>(group.steps) - 2 * stage;
    producer_.WaitUntilEmpty();
    if (warp_ == of_chunk && threadIdx.x % kWarp == 0) {
      const uint32_t bytes = min(2, steps) * kStepBytes;
      producer_.full().ArriveExpecting(kGroups * bytes);
#pragma unroll
      for (int i = 0; i < kGroups; ++i) {
        const int64_t step = int64_t{group.weights} + i * int64_t{group.steps} + 2 * stage;
        producer_.full().CopyBulk(SharedAddress(to.weights[i]), args_.weights + step * (kStepBytes / 2), bytes);
      }
    }
    const uint32_t base = SharedAddress(to.x);
#pragma unroll
    for (int i = 0; i < G::kTurns; ++i) {
      if (i == G::kTurns / 2 && steps < 2) break;  // the second step's columns
      const uint32_t to_turn = base + to_[i % 2] + i / 2 * (2 * G::kRowsAtOnce * kWarps * 128);
      if (G::kUsesAllLanes || copies_) columns_.Copy(to_turn, chunk, of_chunk, i, row_);
    }
    producer_.full().ArriveAfterCopies();
    producer_.Next();
  }

  const AllArgs& args_;
  Columns columns_;
  typename S::Shared& shared_;
  Producer<S::kStages> producer_;
  const int warp_, row_, piece_;
  const bool copies_;  // where pieces are no power of two some lanes have none
  uint32_t to_[2];
};

// Columns that are rows of X.
template <int kWidth>
class RowColumns {
 public:
  static constexpr bool kAligned = RowPlaces::kAligned;
  struct Chunk {
    uint4 stages[kStagesOfChunk];  // eight columns each
  };
  __device__ explicit RowColumns(const Args& args) : args_(args), pitch_(static_cast<uint32_t>(args.stride * 2)) {}

  __device__ Chunk Load(uint32_t chunk) const {
    const uint4* const from = args_.columns + int64_t{chunk} * kStagesOfChunk * kWarps + threadIdx.x / kWarp % kWarps;
    Chunk loaded;
#pragma unroll
    for (int i = 0; i < kStagesOfChunk; ++i) loaded.stages[i] = __ldg(from + i * kWarps);
    return loaded;
  }

  __device__ void SetFirst(int64_t column) {
    x_ = static_cast<const uint8_t*>(args_.x) + min(column, args_.stride - kPieceElements) * 2;
  }

  __device__ void Copy(uint32_t to, const Chunk& chunk, int stage, int turn, int row) const {
    CopyPiece(to, x_ + static_cast<uint64_t>(ColumnOf(chunk.stages[stage], turn, row)) * pitch_);
  }

 private:
  static constexpr int kRowsAtOnce = GatherShape<kWidth>::kRowsAtOnce;

  // One of the eight that the lane's warp copies for a stage.
  __device__ static uint32_t ColumnOf(const uint4& columns, int turn, int row) {
    const uint32_t words[4] = {columns.x, columns.y, columns.z, columns.w};
    if constexpr (kRowsAtOnce == 1) return turn % 2 == 0 ? words[turn / 2] & 0xFFFF : words[turn / 2] >> 16;
    uint32_t word = words[turn % 4];
    if constexpr (kRowsAtOnce == 4) word = row >= 2 ? words[2 * turn + 1] : words[2 * turn];
    return row % 2 == 0 ? word & 0xFFFF : word >> 16;
  }

  const Args& args_;
  const uint8_t* x_;
  const uint32_t pitch_;  // bytes
};

// What such a kernel does, with the threads and the shared memory of its Shape.
template <typename T, int kWidth, typename Columns, int kGroups = 1, typename AllArgs, typename Function>
__device__ void RunRoles(const AllArgs& args, const Ending<Function>& ending) {
  using S = Shape<kWidth, kGroups>;
  extern __shared__ uint4 dynamic_shared[];
  auto& shared = *reinterpret_cast<typename S::Shared*>(dynamic_shared);
  LetNextStart();
  if (threadIdx.x == 0) shared.barriers.Init(kRole + 1, kGroups * kWarps);
  __syncthreads();
  if (threadIdx.x >= kGroups * kRole) {
    KeepRegisters<S::kProducerRegisters>();
    Gatherer<kWidth, AllArgs, Columns, TileWalk, kGroups>(args, shared).Run();
  } else {
    TakeRegisters<S::kConsumerRegisters>();
    WaitForResults();
    Multiplier<T, kWidth, Function, AllArgs, RowPlaces, kGroups>(args, ending, shared).Run();
  }
}

}  // namespace swizzle::cuda::shfl_bw

#endif  // SWIZZLE_KERNELS_CUDA_CONV_SHFL_BW_CONV_SHFL_BW_GATHER_CUH_

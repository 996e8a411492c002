// Kernels whose producers gather rows of X: those of conv_shfl_bw.h, and of conv_row_parts.h. Device code.
#ifndef SWIZZLE_KERNELS_CUDA_CONV_CONV_SHFL_BW_GATHER_CUH_
#define SWIZZLE_KERNELS_CUDA_CONV_CONV_SHFL_BW_GATHER_CUH_

#include "kernels/cuda/conv/conv_shfl_bw.cuh"
#include "kernels/cuda/runtime/dependent_launch.cuh"

namespace swizzle::cuda::shfl_bw {

// One of the eight columns of X that a lane's warp copies for a stage.
template <int kRowsAtOnce>
__device__ uint32_t ColumnOf(const uint4& columns, int turn, int row) {
  const uint32_t words[4] = {columns.x, columns.y, columns.z, columns.w};
  if constexpr (kRowsAtOnce == 1) return turn % 2 == 0 ? words[turn / 2] & 0xFFFF : words[turn / 2] >> 16;
  uint32_t word = words[turn % 4];
  if constexpr (kRowsAtOnce == 4) word = row >= 2 ? words[2 * turn + 1] : words[2 * turn];
  return row % 2 == 0 ? word & 0xFFFF : word >> 16;
}

template <int kWidth>
class Gatherer {
 public:
  using S = Shape<kWidth>;
  __device__ Gatherer(const Args& args, typename S::Shared& shared)
      : args_(args), shared_(shared), producer_(shared.barriers), warp_(threadIdx.x / kWarp % kWarps) {
    const int lane = threadIdx.x % kWarp, piece = lane % kPieces;
    row_ = lane / kPieces;
    piece_ = piece;
    copies_ = row_ < kRowsAtOnce;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int row = kWarps * (i * kRowsAtOnce + row_) + warp_;
      to_[i] = piece / 8 * kAtomBytes + row * 128 + ((piece ^ row) % 8) * kPieceBytes;
    }
  }

  __device__ void Run() {
    TileWalk walk(args_);
    RowGroup group = walk.Group();
    uint4 columns[kStagesOfChunk];
    LoadColumns(group.columns, columns);
    WaitForResults();
    for (; walk.HasTile(); walk.Next()) {
      const RowGroup next_group = walk.NextGroup();
      const uint8_t* const x = FirstPiece(walk.FirstColumn(kWidth));
      const int stages = (static_cast<int>(group.steps) + 1) / 2;
#pragma unroll 1
      for (int first = 0; first < stages; first += kStagesOfChunk) {
        uint4 next[kStagesOfChunk];
        LoadColumns(first + kStagesOfChunk < stages ? group.columns + first / kStagesOfChunk + 1 : next_group.columns,
                    next);
#pragma unroll
        for (int i = 0; i < kStagesOfChunk; ++i) {
          if (first + i >= stages) break;
          Fill(group, first + i, i, columns[i], x);
        }
#pragma unroll
        for (int i = 0; i < kStagesOfChunk; ++i) columns[i] = next[i];
      }
      FillResidual<kWidth>(args_, group, walk.FirstColumn(kWidth), shared_, producer_);
      group = next_group;
    }
    CommitCopies();
    WaitForCopies<0>();
  }

 private:
  static constexpr int kPieces = kWidth / kPieceElements;
  static constexpr int kRowsAtOnce = kWarp / kPieces;  // that a warp copies
  static constexpr int kTurns = kDepth / kWarps / kRowsAtOnce;

  __device__ void LoadColumns(uint32_t chunk, uint4 (&columns)[kStagesOfChunk]) const {
    const uint4* const from = args_.columns + int64_t{chunk} * kStagesOfChunk * kWarps + warp_;
#pragma unroll
    for (int i = 0; i < kStagesOfChunk; ++i) columns[i] = __ldg(from + i * kWarps);
  }

  // Of this lane, in row 0; the row's last piece where its own is past the end.
  __device__ const uint8_t* FirstPiece(int64_t first_column) const {
    const int64_t last = args_.stride - kPieceElements;
    const int64_t column = min(first_column + piece_ * kPieceElements, last);
    return static_cast<const uint8_t*>(args_.x) + column * 2;
  }

  // The stage `turn` of its chunk: one warp each asks for its weights.
  __device__ void Fill(const RowGroup& group, int stage, int turn, const uint4& columns, const uint8_t* x) {
    auto& to = shared_.stages[producer_.stage()];
    const int steps = static_cast<int>(group.steps) - 2 * stage;
    producer_.WaitUntilEmpty();
    if (warp_ == turn && threadIdx.x % kWarp == 0) {
      const uint32_t bytes = min(2, steps) * kStepBytes;
      producer_.full().ArriveExpecting(bytes);
      producer_.full().CopyBulk(SharedAddress(to.weights),
                                args_.weights + (int64_t{group.weights} + 2 * stage) * (kStepBytes / 2), bytes);
    }
    const uint32_t base = SharedAddress(to.x), pitch = static_cast<uint32_t>(args_.stride * 2);
#pragma unroll
    for (int i = 0; i < kTurns; ++i) {
      if (i == kTurns / 2 && steps < 2) break;  // the second step's columns
      const uint64_t row = static_cast<uint64_t>(ColumnOf<kRowsAtOnce>(columns, i, row_)) * pitch;
      if (kRowsAtOnce * kPieces == kWarp || copies_)
        CopyPiece(base + to_[i % 2] + i / 2 * (2 * kRowsAtOnce * kWarps * 128), x + row);
    }
    producer_.full().ArriveAfterCopies();
    producer_.Next();
  }

  const Args& args_;
  typename S::Shared& shared_;
  Producer<S::kStages> producer_;
  const int warp_;
  int row_, piece_;
  bool copies_;  // where pieces are no power of two some lanes have none
  uint32_t to_[2];
};

// What such a kernel does, kThreads a CTA, with shared memory of its Shape.
template <typename T, int kWidth, typename AllArgs, typename Function>
__device__ void RunRoles(const AllArgs& args, const Ending<Function>& ending) {
  extern __shared__ uint4 dynamic_shared[];
  auto& shared = *reinterpret_cast<typename Shape<kWidth>::Shared*>(dynamic_shared);
  LetNextStart();
  if (threadIdx.x == 0) shared.barriers.Init(kRole + 1, kWarps);
  __syncthreads();
  if (threadIdx.x >= kRole) {
    KeepRegisters<kProducerRegisters>();
    Gatherer<kWidth>(args, shared).Run();
  } else {
    TakeRegisters<kConsumerRegisters>();
    WaitForResults();
    Multiplier<T, kWidth, Function, AllArgs>(args, ending, shared).Run();
  }
}

}  // namespace swizzle::cuda::shfl_bw

#endif  // SWIZZLE_KERNELS_CUDA_CONV_CONV_SHFL_BW_GATHER_CUH_

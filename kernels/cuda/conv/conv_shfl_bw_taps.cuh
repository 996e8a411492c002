// The role that gathers rows of X where a column is a channel and a tap of a window: what conv_shfl_bw_window.cu and
// conv_shfl_bw_batched.cu have in common. As conv_shfl_bw.cu's, but that a lane finds one of its warp's 32 columns of a
// chunk and the others ask for it. Device code.
#ifndef SWIZZLE_KERNELS_CUDA_CONV_CONV_SHFL_BW_TAPS_CUH_
#define SWIZZLE_KERNELS_CUDA_CONV_CONV_SHFL_BW_TAPS_CUH_

#include "kernels/cuda/conv/conv_shfl_bw.cuh"
#include "kernels/cuda/runtime/dependent_launch.cuh"
#include "kernels/cuda/runtime/elements.cuh"

namespace swizzle::cuda::shfl_bw {

// A weight's column, as row_groups.h has it.
struct WindowColumns {
  FastDivider rows, columns;  // of the window

  WindowColumns() = default;
  explicit WindowColumns(const Window& window) : rows(window.kernel_h), columns(window.kernel_w) {}

  struct Place {
    uint32_t channel, row, column;
  };
  __device__ Place Of(uint32_t index) const {
    Place place;
    place.channel = index;
    place.column = columns.Split(place.channel);
    place.row = rows.Split(place.channel);
    return place;
  }
};

// Taps says where a lane's pieces are. It is made of the arguments, and has
//   Word(column): what one lane finds of a column for all, from the lane's own place how far its row is, and its tap;
//   SetPiece(piece): the lane's place, the last one where its own is past the end;
//   From(word), Inside(word): the piece, and whether it is one of the plane's;
//   kAligned: as its places in Y have it.
template <int kWidth, typename AllArgs, typename Taps>
class TapGatherer {
 public:
  using S = Shape<kWidth>;
  __device__ TapGatherer(const AllArgs& args, typename S::Shared& shared)
      : args_(args), taps_(args), shared_(shared), producer_(shared.barriers), warp_(threadIdx.x / kWarp % kWarps) {
    const int lane = threadIdx.x % kWarp;
    row_ = lane / kPieces;
    piece_ = lane % kPieces;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int row = kWarps * (i * kRowsAtOnce + row_) + warp_;
      to_[i] = piece_ / 8 * kAtomBytes + row * 128 + ((piece_ ^ row) % 8) * kPieceBytes;
    }
  }

  __device__ void Run() {
    TileWalk walk(args_);
    RowGroup group = walk.Group();
    uint32_t word = LoadColumn(group.columns);
    WaitForResults();
    for (; walk.HasTile(); walk.Next()) {
      const RowGroup next_group = walk.NextGroup();
      taps_.SetPiece(static_cast<uint32_t>(walk.FirstColumn(kWidth) / kPieceElements) + piece_);
      const int stages = (static_cast<int>(group.steps) + 1) / 2;
#pragma unroll 1
      for (int first = 0; first < stages; first += kStagesOfChunk) {
        const uint32_t next = LoadColumn(first + kStagesOfChunk < stages ? group.columns + first / kStagesOfChunk + 1
                                                                         : next_group.columns);
#pragma unroll
        for (int i = 0; i < kStagesOfChunk; ++i) {
          if (first + i >= stages) break;
          Fill(group, first + i, i, word);
        }
        word = next;
      }
      if constexpr (Taps::kAligned) FillResidual<kWidth>(args_, group, walk.FirstColumn(kWidth), shared_, producer_);
      group = next_group;
    }
    CommitCopies();
    WaitForCopies<0>();
  }

 private:
  static constexpr int kPieces = kWidth / kPieceElements;
  static constexpr int kRowsAtOnce = kWarp / kPieces;  // that a warp copies
  static constexpr int kTurns = kDepth / kWarps / kRowsAtOnce;
  static constexpr int kColumnsOfWarp = kDepth / kWarps;
  static_assert(kRowsAtOnce * kPieces == kWarp && kStagesOfChunk * kColumnsOfWarp == kWarp);

  // The word of the lane's own column.
  __device__ uint32_t LoadColumn(uint32_t chunk) const {
    const int lane = threadIdx.x % kWarp;
    const auto* const columns = reinterpret_cast<const uint16_t*>(args_.columns);
    return taps_.Word(__ldg(columns + int64_t{chunk} * RowGroups::kChunk + lane / kColumnsOfWarp * kDepth +
                            warp_ * kColumnsOfWarp + lane % kColumnsOfWarp));
  }

  // The stage `turn` of its chunk: one warp each asks for its weights.
  __device__ void Fill(const RowGroup& group, int stage, int turn, uint32_t word) {
    auto& to = shared_.stages[producer_.stage()];
    const int steps = static_cast<int>(group.steps) - 2 * stage;
    producer_.WaitUntilEmpty();
    if (warp_ == turn && threadIdx.x % kWarp == 0) {
      const uint32_t bytes = min(2, steps) * kStepBytes;
      producer_.full().ArriveExpecting(bytes);
      producer_.full().CopyBulk(SharedAddress(to.weights),
                                args_.weights + (int64_t{group.weights} + 2 * stage) * (kStepBytes / 2), bytes);
    }
    const uint32_t base = SharedAddress(to.x);
#pragma unroll
    for (int i = 0; i < kTurns; ++i) {
      if (i == kTurns / 2 && steps < 2) break;  // the second step's columns
      const uint32_t column = __shfl_sync(0xFFFFFFFFu, word, turn * kColumnsOfWarp + i * kRowsAtOnce + row_);
      CopyAsync(base + to_[i % 2] + i / 2 * (2 * kRowsAtOnce * kWarps * 128), taps_.From(column), taps_.Inside(column));
    }
    producer_.full().ArriveAfterCopies();
    producer_.Next();
  }

  const AllArgs& args_;
  Taps taps_;
  typename S::Shared& shared_;
  Producer<S::kStages> producer_;
  const int warp_;
  int row_, piece_;
  uint32_t to_[2];
};

}  // namespace swizzle::cuda::shfl_bw

#endif  // SWIZZLE_KERNELS_CUDA_CONV_CONV_SHFL_BW_TAPS_CUH_

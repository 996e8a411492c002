#include "kernels/cuda/conv/conv_shfl_bw.cuh"
#include "kernels/cuda/conv/conv_shfl_bw_batched.h"
#include "kernels/cuda/runtime/dependent_launch.cuh"
#include "kernels/cuda/runtime/elements.cuh"
#include "kernels/cuda/window/planes.cuh"

namespace swizzle::cuda {
namespace shfl_bw {
namespace {

struct BatchedArgs : Args {
  const int32_t* pair_of_slot;
  uint32_t pieces;          // of a row of Y
  uint32_t channel_pieces;  // of a row of X
  int32_t batch_pieces;     // of a position
  int32_t tap_bits;         // of a column's word; pieces above
  DeviceWindow window;
  int32_t height, width;                // of X
  FastDivider batches, columns_of_row;  // of Y
  FastDivider window_rows, window_columns;

  BatchedArgs(const Args& common, const Window& shape) : Args(common), window(shape) {}
};

// As conv_shfl_bw_window.cu's, but that a tap is a step of whole pieces in the plane of X itself.
template <int kWidth>
class BatchedGatherer {
 public:
  using S = Shape<kWidth>;
  __device__ BatchedGatherer(const BatchedArgs& args, typename S::Shared& shared)
      : args_(args), shared_(shared), producer_(shared.barriers), warp_(threadIdx.x / kWarp % kWarps) {
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
      SetPiece(walk.FirstColumn(kWidth));
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

  // Of the lane's own column: from a piece of the first channel and tap how many pieces further, and its tap.
  __device__ uint32_t LoadColumn(uint32_t chunk) const {
    const DeviceWindow& window = args_.window;
    const int lane = threadIdx.x % kWarp;
    const auto* const columns = reinterpret_cast<const uint16_t*>(args_.columns);
    uint32_t slot = __ldg(columns + int64_t{chunk} * RowGroups::kChunk + lane / kColumnsOfWarp * kDepth +
                          warp_ * kColumnsOfWarp + lane % kColumnsOfWarp);
    const uint32_t row = args_.window_rows.Split(slot);
    uint32_t channel = __ldg(args_.pair_of_slot + slot);
    const uint32_t column = args_.window_columns.Split(channel);
    const uint32_t place = row * window.dilation_h * args_.width + column * window.dilation_w;
    return (channel * args_.channel_pieces + place * args_.batch_pieces) << args_.tap_bits |
           (row * window.kernel_w + column);
  }

  // The lane's piece of the tile, the last one where its own is past the end.
  __device__ void SetPiece(int64_t first_column) {
    const DeviceWindow& window = args_.window;
    uint32_t piece = min(static_cast<uint32_t>(first_column / kPieceElements) + piece_, args_.pieces - 1);
    const auto images = static_cast<int>(args_.batches.Split(piece));
    const int x = static_cast<int>(args_.columns_of_row.Split(piece)) * window.stride_w - window.pad_left;
    const int y = static_cast<int>(piece) * window.stride_h - window.pad_top;
    from_ = static_cast<const uint4*>(args_.x) + (int64_t{y} * args_.width + x) * args_.batch_pieces + images;
    uint64_t columns = 0;
    for (int i = 0; i < window.kernel_w; ++i) {
      const int at = x + i * window.dilation_w;
      if (at >= 0 && at < args_.width) columns |= uint64_t{1} << i;
    }
    inside_ = 0;
    for (int i = 0; i < window.kernel_h; ++i) {
      const int at = y + i * window.dilation_h;
      if (at >= 0 && at < args_.height) inside_ |= columns << (i * window.kernel_w);
    }
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
    const uint32_t base = SharedAddress(to.x), taps = (1u << args_.tap_bits) - 1;
#pragma unroll
    for (int i = 0; i < kTurns; ++i) {
      if (i == kTurns / 2 && steps < 2) break;  // the second step's columns
      const uint32_t column = __shfl_sync(0xFFFFFFFFu, word, turn * kColumnsOfWarp + i * kRowsAtOnce + row_);
      CopyAsync(base + to_[i % 2] + i / 2 * (2 * kRowsAtOnce * kWarps * 128), from_ + (column >> args_.tap_bits),
                (inside_ >> (column & taps) & 1) != 0);
    }
    producer_.full().ArriveAfterCopies();
    producer_.Next();
  }

  const BatchedArgs& args_;
  typename S::Shared& shared_;
  Producer<S::kStages> producer_;
  const int warp_;
  int row_, piece_;
  const uint4* from_;
  uint64_t inside_;  // which taps lie inside the plane
  uint32_t to_[2];
};

template <typename T, int kWidth, typename Function>
__global__ __launch_bounds__(kThreads, 2) void MultiplyBatchedGroups(const __grid_constant__ BatchedArgs args,
                                                                     const __grid_constant__ Ending<Function> ending) {
  extern __shared__ uint4 dynamic_shared[];
  auto& shared = *reinterpret_cast<typename Shape<kWidth>::Shared*>(dynamic_shared);
  LetNextStart();
  if (threadIdx.x == 0) shared.barriers.Init(kRole + 1, kWarps);
  __syncthreads();
  if (threadIdx.x >= kRole) {
    KeepRegisters<kProducerRegisters>();
    BatchedGatherer<kWidth>(args, shared).Run();
  } else {
    TakeRegisters<kConsumerRegisters>();
    WaitForResults();
    Multiplier<T, kWidth, Function, BatchedArgs>(args, ending, shared).Run();
  }
}

BatchedArgs BatchedArgsOf(const BatchedOperands& operands, int width) {
  const Problem& problem = *operands.problem;
  const Window& window = problem.window();
  const int64_t batch_pieces = CeilDiv(problem.input.batch, kPieceElements);
  BatchedArgs args(ArgsOf(operands, width), window);
  args.pair_of_slot = operands.pair_of_slot;
  args.pieces = static_cast<uint32_t>(operands.columns / kPieceElements);
  args.channel_pieces = static_cast<uint32_t>(RowStride(BatchedPositions(problem.input)) / kPieceElements);
  args.batch_pieces = static_cast<int32_t>(batch_pieces);
  args.tap_bits = TapBits(window);
  args.height = static_cast<int32_t>(problem.input.height);
  args.width = static_cast<int32_t>(problem.input.width);
  args.batches = FastDivider(batch_pieces);
  args.columns_of_row = FastDivider(problem.output.width);
  args.window_rows = FastDivider(window.kernel_h);
  args.window_columns = FastDivider(window.kernel_w);
  return args;
}

template <typename T, int kWidth>
void QueueBatched(const BatchedOperands& operands, int multiprocessors, cudaStream_t queue) {
  using Shared = typename Shape<kWidth>::Shared;
  const BatchedArgs args = BatchedArgsOf(operands, kWidth);
  const LaunchGrid grid(std::min<int64_t>(args.tiles, 2 * multiprocessors));
  WithTileEnding(operands.epilogue, [&]<typename Function>(const Ending<Function>& ending) {
    auto* const kernel = MultiplyBatchedGroups<T, kWidth, Function>;
    AllowSharedMemory(kernel, sizeof(Shared));
    LaunchDependent(kernel, grid, kThreads, sizeof(Shared), queue, args, ending);
  });
}

}  // namespace
}  // namespace shfl_bw

template <int kWidth>
void QueueBatchedGroups(const BatchedOperands& operands, int multiprocessors, cudaStream_t queue) {
  if (operands.weight->count() == 0 || operands.columns == 0) return;
  if (operands.problem->to.dtype == DType::kFloat16)
    return shfl_bw::QueueBatched<__half, kWidth>(operands, multiprocessors, queue);
  shfl_bw::QueueBatched<__nv_bfloat16, kWidth>(operands, multiprocessors, queue);
}

template void QueueBatchedGroups<64>(const BatchedOperands&, int, cudaStream_t);
template void QueueBatchedGroups<128>(const BatchedOperands&, int, cudaStream_t);
template void QueueBatchedGroups<256>(const BatchedOperands&, int, cudaStream_t);

}  // namespace swizzle::cuda

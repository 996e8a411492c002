#include "kernels/cuda/conv/shfl_bw/conv_shfl_bw_batched.h"
#include "kernels/cuda/conv/shfl_bw/conv_shfl_bw_taps.cuh"
#include "kernels/cuda/window/planes.cuh"

namespace swizzle::cuda {
namespace shfl_bw {
namespace {

struct BatchedArgs : Args {
  uint32_t pieces;          // of a row of Y
  uint32_t channel_pieces;  // of a row of X
  int32_t batch_pieces;     // of a position
  int32_t tap_bits;         // of a column's word; pieces above
  DeviceWindow window;
  int32_t height, width;                // of X
  FastDivider batches, columns_of_row;  // of Y
  WindowColumns window_columns;

  BatchedArgs(const Args& common, const Window& shape) : Args(common), window(shape), window_columns(shape) {}
};

// A tap is a step of whole pieces in the plane of X itself.
class BatchedTaps {
 public:
  static constexpr bool kAligned = RowPlaces::kAligned;
  __device__ explicit BatchedTaps(const BatchedArgs& args) : args_(args) {}

  __device__ uint32_t Word(uint32_t index) const {
    const DeviceWindow& window = args_.window;
    const WindowColumns::Place at = args_.window_columns.Of(index);
    const uint32_t place = at.row * window.dilation_h * args_.width + at.column * window.dilation_w;
    return (at.channel * args_.channel_pieces + place * args_.batch_pieces) << args_.tap_bits |
           (at.row * window.kernel_w + at.column);
  }

  __device__ void SetPiece(uint32_t piece) {
    const DeviceWindow& window = args_.window;
    piece = min(piece, args_.pieces - 1);
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

  __device__ const uint4* From(uint32_t word) const { return from_ + (word >> args_.tap_bits); }
  __device__ bool Inside(uint32_t word) const { return (inside_ >> (word & ((1u << args_.tap_bits) - 1)) & 1) != 0; }

 private:
  const BatchedArgs& args_;
  const uint4* from_;
  uint64_t inside_;  // which taps lie inside the plane
};

template <typename T, int kWidth, typename Function>
__global__ __launch_bounds__(kThreads, 2) void MultiplyBatchedGroups(const __grid_constant__ BatchedArgs args,
                                                                     const __grid_constant__ Ending<Function> ending) {
  RunRoles<T, kWidth, TapColumns<kWidth, BatchedArgs, BatchedTaps>>(args, ending);
}

BatchedArgs BatchedArgsOf(const BatchedOperands& operands, int width) {
  const Problem& problem = *operands.problem;
  const Window& window = problem.window();
  const int64_t batch_pieces = CeilDiv(problem.input.batch, kPieceElements);
  BatchedArgs args(ArgsOf(operands, width), window);
  args.pieces = static_cast<uint32_t>(operands.columns / kPieceElements);
  args.channel_pieces = static_cast<uint32_t>(RowStride(BatchedPositions(problem.input)) / kPieceElements);
  args.batch_pieces = static_cast<int32_t>(batch_pieces);
  args.tap_bits = TapBits(window);
  args.height = static_cast<int32_t>(problem.input.height);
  args.width = static_cast<int32_t>(problem.input.width);
  args.batches = FastDivider(batch_pieces);
  args.columns_of_row = FastDivider(problem.output.width);
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
  VisitHalf(operands.problem->to.dtype,
            [&]<DType kHalf>() { shfl_bw::QueueBatched<Element<kHalf>, kWidth>(operands, multiprocessors, queue); });
}

template void QueueBatchedGroups<64>(const BatchedOperands&, int, cudaStream_t);
template void QueueBatchedGroups<128>(const BatchedOperands&, int, cudaStream_t);
template void QueueBatchedGroups<256>(const BatchedOperands&, int, cudaStream_t);

}  // namespace swizzle::cuda

// Columns that are a channel and a tap of a window: what conv_shfl_bw_window.cu and conv_shfl_bw_batched.cu have in
// common. A lane finds one of its warp's 32 columns of a chunk, and the others ask it. Device code.
#ifndef SWIZZLE_KERNELS_CUDA_CONV_SHFL_BW_CONV_SHFL_BW_TAPS_CUH_
#define SWIZZLE_KERNELS_CUDA_CONV_SHFL_BW_CONV_SHFL_BW_TAPS_CUH_

#include "kernels/cuda/conv/shfl_bw/conv_shfl_bw_gather.cuh"
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
class TapColumns {
 public:
  static constexpr bool kAligned = Taps::kAligned;
  using Chunk = uint32_t;  // the word of the lane's own column
  __device__ explicit TapColumns(const AllArgs& args) : args_(args), taps_(args) {}

  __device__ Chunk Load(uint32_t chunk) const {
    const int warp = threadIdx.x / kWarp % kWarps, lane = threadIdx.x % kWarp;
    const auto* const columns = reinterpret_cast<const uint16_t*>(args_.columns);
    return taps_.Word(__ldg(columns + int64_t{chunk} * RowGroups::kChunk + lane / kColumnsOfWarp * kDepth +
                            warp * kColumnsOfWarp + lane % kColumnsOfWarp));
  }

  __device__ void SetFirst(int64_t column) {
    taps_.SetPiece(static_cast<uint32_t>(static_cast<uint64_t>(column) / kPieceElements));
  }

  __device__ void Copy(uint32_t to, Chunk chunk, int stage, int turn, int row) const {
    const uint32_t word = __shfl_sync(0xFFFFFFFFu, chunk, stage * kColumnsOfWarp + turn * G::kRowsAtOnce + row);
    CopyAsync(to, taps_.From(word), taps_.Inside(word));
  }

 private:
  using G = GatherShape<kWidth>;
  static constexpr int kColumnsOfWarp = kDepth / kWarps;  // of a stage
  static_assert(G::kUsesAllLanes && kStagesOfChunk * kColumnsOfWarp == kWarp);

  const AllArgs& args_;
  Taps taps_;
};

}  // namespace swizzle::cuda::shfl_bw

#endif  // SWIZZLE_KERNELS_CUDA_CONV_SHFL_BW_CONV_SHFL_BW_TAPS_CUH_

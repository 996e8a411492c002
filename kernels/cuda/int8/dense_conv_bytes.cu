#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/cuda/int8/byte_layer.h"
#include "kernels/cuda/int8/dense_conv_bytes.cuh"
#include "kernels/cuda/int8/dense_conv_bytes.h"
#include "kernels/cuda/tensor_core/mma.cuh"

namespace swizzle::cuda {
namespace {

constexpr int kWarp = 32, kWarps = 4, kThreads = kWarps * kWarp;
constexpr int kDepth = 64, kPieces = kDepth / kConvPiece;  // of a step
constexpr int kGroupBytes = kConvGroup * kDepth;
static_assert(RowEnds::kRowUnit == kConvGroup);

template <int kPositions, int kChannels>
struct ConvTile {
  static constexpr int kAcross = kChannels / kConvGroup, kDown = kWarps / kAcross;  // warps
  static constexpr int kRows = kPositions / kDown, kFragments = kRows / 16;         // positions of a warp
  static constexpr int kInputBytes = kPositions * kDepth, kWeightBytes = kChannels * kDepth;
  static constexpr int kStageBytes = kInputBytes + kWeightBytes;
  static constexpr int kStages = 4;
  static constexpr int kBytes = kStages * kStageBytes;
  static constexpr int kRowsAtOnce = kThreads / kPieces;
  static constexpr int kCopies = kPositions / kRowsAtOnce;  // of a thread
  static constexpr int kWeightCopies = kWeightBytes / kConvPiece / kThreads;
  static_assert(kBytes >= kPositions * kChannels * int{sizeof(int32_t)} && kFragments >= 1);
};

// Where piece p of a position's 64 columns lies in a stage: any eight neighbouring positions have it in other banks.
__device__ uint32_t PlaceOf(int position, int piece) {
  return position * kDepth + (piece ^ (position >> 1 & 3)) * kConvPiece;
}

// Copies of a thread: of every kRowsAtOnce-th position the same piece.
template <typename Tile>
class ConvCopies {
 public:
  __device__ ConvCopies(const DenseConvArgs& args, int first_position, int first_group)
      : args_(args),
        places_(args, first_position + static_cast<int>(threadIdx.x) / kPieces),
        taps_(args.taps + threadIdx.x % kPieces),
        next_(*taps_) {
#pragma unroll
    for (int i = 0; i < Tile::kWeightCopies; ++i) {
      const int at = (i * kThreads + static_cast<int>(threadIdx.x)) * kConvPiece;
      const int group = min(first_group + at / kGroupBytes, args.groups - 1);
      weights_[i] = args.weights + int64_t{group} * args.steps * kGroupBytes + at % kGroupBytes;
    }
  }

  // Steps come in their order.
  __device__ void Queue(int step, uint32_t stage) {
    const PieceTap tap = next_;
    if (step + 1 < args_.steps) next_ = taps_[(step + 1) * kPieces];
#pragma unroll
    for (int i = 0; i < Tile::kCopies; ++i) {
      const int position = threadIdx.x / kPieces + i * Tile::kRowsAtOnce;
      places_.Copy(args_, i, tap, stage + PlaceOf(position, threadIdx.x % kPieces));
    }
#pragma unroll
    for (int i = 0; i < Tile::kWeightCopies; ++i) {
      CopyPiece(stage + Tile::kInputBytes + (i * kThreads + threadIdx.x) * kConvPiece,
                weights_[i] + step * kGroupBytes);
    }
  }

 private:
  const DenseConvArgs& args_;
  const ConvPlaces<Tile::kCopies, Tile::kRowsAtOnce> places_;
  const PieceTap* const taps_;
  PieceTap next_;
  const uint8_t* weights_[Tile::kWeightCopies];
};

template <typename Tile>
using ConvSums = int32_t[Tile::kFragments][kConvProducts][4];

template <typename Tile>
__device__ void AddStep(uint32_t stage, int down, int across, ConvSums<Tile>& sums) {
  const int lane = threadIdx.x % kWarp;
  uint32_t input[2][Tile::kFragments][4];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
#pragma unroll
    for (int i = 0; i < Tile::kFragments; ++i) {
      LoadMatrices(input[half][i], stage + PlaceOf(down * Tile::kRows + i * 16 + lane % 16, 2 * half + lane / 16));
    }
  }
  const uint32_t weights = stage + Tile::kInputBytes + across * kGroupBytes + lane * kConvPiece;
#pragma unroll
  for (int j = 0; j < kConvProducts; ++j) {
    uint4 words;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
                 : "r"(weights + j * kWarp * kConvPiece)
                 : "memory");
#pragma unroll
    for (int i = 0; i < Tile::kFragments; ++i) {
      Mma<uint8_t, int8_t>(sums[i][j], input[0][i], words.x, words.y);
      Mma<uint8_t, int8_t>(sums[i][j], input[1][i], words.z, words.w);
    }
  }
}

// A block makes a tile of positions and channels; tiles of the same positions are neighbours.
template <int kPositions, int kChannels, typename Store>
__global__ void __launch_bounds__(kThreads, 2)
    MultiplyBytes(const __grid_constant__ DenseConvArgs args, const __grid_constant__ Store store) {
  using Tile = ConvTile<kPositions, kChannels>;
  extern __shared__ __align__(128) uint8_t shared[];
  const uint32_t ring = SharedAddress(shared);
  LetNextStart();
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const int across = warp % Tile::kAcross, down = warp / Tile::kAcross;
  const int first_position = static_cast<int>(blockIdx.x) / args.channel_tiles * kPositions;
  const int first_channel = static_cast<int>(blockIdx.x) % args.channel_tiles * kChannels;
  ConvCopies<Tile> copies(args, first_position, first_channel / kConvGroup);
  const auto queue = [&](int step) {
    if (step < args.steps) copies.Queue(step, ring + step % Tile::kStages * Tile::kStageBytes);
    CommitCopies();
  };
  const int of_tile = down * Tile::kRows + lane / 4, channel = across * kConvGroup + lane % 4 * kConvPiece;
  ConvSums<Tile> sums = {};
  WaitForResults();
#pragma unroll
  for (int i = 0; i < Tile::kStages - 1; ++i) queue(i);
  for (int step = 0; step < args.steps; ++step) {
    WaitForCopies<Tile::kStages - 2>();
    __syncthreads();  // also: the stage that is filled next was read
    queue(step + Tile::kStages - 1);
    AddStep<Tile>(ring + step % Tile::kStages * Tile::kStageBytes, down, across, sums);
  }
  WaitForCopies<0>();
  if constexpr (Store::kBytes) {
    AddedFragments<Tile::kFragments> added;
    added.Load(args, store.residual, first_position + of_tile, first_channel + channel);
    StoreFragments(args, sums, added, first_position + of_tile, first_channel + channel, store,
                   [&](int four) { return FourEnds(store.start, store.scale, first_channel + channel + 4 * four); });
  } else {
    __syncthreads();
    auto* const parked = reinterpret_cast<int32_t*>(shared);
    ParkFragments(sums, of_tile, channel, kChannels, parked);
    __syncthreads();
    StoreParked<kPositions, kChannels, kThreads>(args, parked, first_position, first_channel, store);
  }
}

bool IsGathered(const Problem& problem) { return problem.input.channels % kConvPiece != 0; }
// Whether a position's columns lie together.
bool IsDirect(const Problem& problem) { return problem.window().IsPointwise() || IsGathered(problem); }

class DenseConvBytesWeight final : public PackedWeight {
 public:
  DenseConvBytesWeight(ByteTiles tiles, RowEnds ends) : tiles_(std::move(tiles)), ends_(std::move(ends)) {}
  size_t bytes() const override { return tiles_.bytes() + ends_.bytes(); }
  const ByteTiles& tiles() const { return tiles_; }
  const RowEnds& ends() const { return ends_; }

 private:
  const ByteTiles tiles_;
  const RowEnds ends_;
};

// Where the weight of a channel and a column lies among so many steps: see dense_conv_bytes.h.
struct PlaceInGroup {
  int64_t product, n;
  explicit PlaceInGroup(int64_t row) : product(row % kConvPiece / 2), n(row % kConvGroup / kConvPiece * 2 + row % 2) {}
};
int64_t PlaceForMma(int64_t row, int64_t column, int64_t steps) {
  const PlaceInGroup place(row);
  const int64_t in_step = column % kDepth, word = in_step % kConvPiece / 4;
  return (row / kConvGroup * steps + column / kDepth) * kGroupBytes +
         (place.product * kWarp + place.n * 4 + word) * kConvPiece + in_step / kConvPiece * 4 + in_step % 4;
}
int64_t PlaceForWgmma(int64_t row, int64_t column, int64_t steps) {
  constexpr int64_t kWgmmaDepth = 128;
  const PlaceInGroup place(row);
  const int64_t line = place.product * 8 + place.n, in_step = column % kWgmmaDepth;
  return ((row / kConvGroup * steps + column / kWgmmaDepth) * kConvGroup + line) * kWgmmaDepth +
         (in_step / kConvPiece ^ line % 8) * kConvPiece + in_step % kConvPiece;
}

constexpr int16_t kNoTap = 32767;      // of pieces that fill steps up
constexpr int64_t kMostExtent = 4096;  // of planes, pads and windows, for which that is outside

PieceTap LineTap(int64_t column) { return {static_cast<int32_t>(column), 0, 0}; }

PieceTap TapOf(const Problem& problem, int64_t column) {
  if (IsDirect(problem)) return LineTap(column);
  const int64_t channels = problem.input.channels;
  const Window& window = problem.window();
  const int64_t at = column / channels;
  const int64_t y = at / window.kernel_w * window.dilation_h, x = at % window.kernel_w * window.dilation_w;
  return {static_cast<int32_t>((y * problem.input.width + x) * channels + column % channels), static_cast<int16_t>(y),
          static_cast<int16_t>(x)};
}

using PlaceFunction = int64_t (*)(int64_t row, int64_t column, int64_t steps);

// With steps of `depth` columns; of lines of so many.
template <typename Tap>
StatusOr<ByteTiles> PackTiles(const ByteWeight& bytes, int64_t depth, PlaceFunction place_of, int64_t line,
                              const Tap& tap) {
  const int64_t steps = std::max<int64_t>(1, CeilDiv(bytes.cols, depth));
  std::vector<int8_t> packed(CeilDiv(bytes.rows, kConvGroup) * steps * kConvGroup * depth);
  for (int64_t row = 0; row < bytes.rows; ++row) {
    for (const ByteWeight::Entry& entry : bytes.entries[row]) packed[place_of(row, entry.column, steps)] = entry.value;
  }
  std::vector<PieceTap> taps(steps * depth / kConvPiece, {0, kNoTap, kNoTap});
  for (int64_t column = 0; column < line; column += kConvPiece) taps[column / kConvPiece] = tap(column);
  SWIZZLE_ASSIGN_OR_RETURN(auto weights, DeviceArray<int8_t>::Upload(packed));
  SWIZZLE_ASSIGN_OR_RETURN(auto of_pieces, DeviceArray<PieceTap>::Upload(taps));
  return ByteTiles(std::move(weights), steps, std::move(of_pieces));
}

StatusOr<std::unique_ptr<PackedWeight>> Prepare(const Weight& weight, const Problem& problem, int64_t depth,
                                                PlaceFunction place_of) {
  SWIZZLE_ASSIGN_OR_RETURN(const ByteWeight bytes, MakeByteWeight(weight, problem));
  SWIZZLE_ASSIGN_OR_RETURN(ByteTiles tiles, PackTiles(bytes, depth, place_of, ByteLineSize(problem),
                                                      [&](int64_t column) { return TapOf(problem, column); }));
  SWIZZLE_ASSIGN_OR_RETURN(RowEnds ends, RowEnds::Make(bytes, 0));
  return std::make_unique<DenseConvBytesWeight>(std::move(tiles), std::move(ends));
}

}  // namespace

StatusOr<ByteTiles> ByteTiles::OfLines(const ByteWeight& weight) {
  return PackTiles(weight, 2 * kDepth, PlaceForWgmma, RoundUp(weight.cols, kByteUnit), LineTap);
}

bool AcceptsDenseConvBytes(const Problem& problem) {
  if (!AcceptsByteLayer(problem, Layout::kNhwc) || !CountsFit(problem)) return false;
  constexpr int64_t kMost = (int64_t{1} << 31) - (int64_t{1} << 16);
  const Window& window = problem.window();
  const int64_t extents[] = {problem.input.height, problem.input.width,
                             window.pad_top + int64_t{window.kernel_h} * window.dilation_h,
                             window.pad_left + int64_t{window.kernel_w} * window.dilation_w};
  const bool small = std::ranges::all_of(extents, [](int64_t extent) { return extent <= kMostExtent; });
  return (small || IsDirect(problem)) && problem.output.positions() * ByteLineSize(problem) < kMost;
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareDenseConvBytes(const Weight& weight, const Problem& problem) {
  return Prepare(weight, problem, kDepth, PlaceForMma);
}
StatusOr<std::unique_ptr<PackedWeight>> PrepareDenseConvBytesWgmma(const Weight& weight, const Problem& problem) {
  return Prepare(weight, problem, 2 * kDepth, PlaceForWgmma);
}

size_t DenseConvBytesWorkspaceBytes(const Problem& problem) {
  return IsGathered(problem) ? static_cast<size_t>(problem.output.positions() * ByteLineSize(problem)) : 0;
}

DenseConvArgs DenseConvArgsOf(const KernelArgs& args, Stream& stream) {
  const Problem& problem = *args.problem;
  const Extent &in = problem.input, &out = problem.output;
  const Window& window = problem.window();
  const bool direct = IsDirect(problem);
  DenseConvArgs made = {};
  made.input = args.Input<uint8_t>(0);
  if (IsGathered(problem)) {
    auto* const columns = reinterpret_cast<uint8_t*>(args.workspace.data());
    QueueByteLines(problem, made.input, static_cast<uint8_t>(problem.inputs_as[0].zero_point), columns, stream);
    made.input = columns;
  }
  static_cast<const DenseConvBytesWeight&>(*args.weight).tiles().NameIn(made);
  made.outside = 0x01010101u * static_cast<uint8_t>(problem.inputs_as[0].zero_point);
  made.positions = static_cast<int32_t>(out.positions());
  made.rows = static_cast<int32_t>(out.channels);
  made.pieces = static_cast<int32_t>(ByteLineSize(problem) / kConvPiece);
  made.groups = static_cast<int32_t>(CeilDiv(out.channels, kConvGroup));
  made.direct = direct;
  made.line = static_cast<int32_t>(ByteLineSize(problem));
  made.channels = static_cast<int32_t>(in.channels);
  made.height = direct ? 1 : static_cast<int32_t>(in.height);
  made.width = direct ? 1 : static_cast<int32_t>(in.width);
  made.stride_h = window.stride_h, made.stride_w = window.stride_w;
  made.pad_top = window.pad_top, made.pad_left = window.pad_left;
  made.out_width = FastDivider(out.width), made.out_height = FastDivider(out.height);
  return made;
}

SumEnds DenseConvEndsOf(const KernelArgs& args) {
  return static_cast<const DenseConvBytesWeight&>(*args.weight).ends().Of(args);
}

template <int kPositions, int kChannels>
void RunDenseConvBytes(const KernelArgs& args, Stream& stream) {
  constexpr int kBytes = ConvTile<kPositions, kChannels>::kBytes;
  DenseConvArgs conv = DenseConvArgsOf(args, stream);
  conv.channel_tiles = CeilDiv(conv.rows, kChannels);
  const LaunchGrid grid(int64_t{CeilDiv(conv.positions, kPositions)} * conv.channel_tiles);
  WithStore(DenseConvEndsOf(args), args.output.data, [&]<typename Store>(const Store& store) {
    constexpr auto kKernel = MultiplyBytes<kPositions, kChannels, Store>;
    AllowSharedMemory(kKernel, kBytes);
    LaunchDependent(kKernel, grid, kThreads, kBytes, QueueOf(stream), conv, store);
  });
}

template void RunDenseConvBytes<128, 128>(const KernelArgs&, Stream&);
template void RunDenseConvBytes<64, 64>(const KernelArgs&, Stream&);

}  // namespace swizzle::cuda

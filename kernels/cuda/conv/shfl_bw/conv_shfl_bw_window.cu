#include "kernels/cuda/conv/shfl_bw/conv_shfl_bw_taps.cuh"
#include "kernels/cuda/conv/shfl_bw/conv_shfl_bw_window.h"

namespace swizzle::cuda {
namespace shfl_bw {
namespace {

constexpr int kUnfoldThreads = 128;
constexpr int kTapBits = 5;  // of a column's word; pieces above

struct Unfold {
  int64_t row_stride;  // of X
  int height, width, stride, pad, dilation, kernel_w;
  int first_row, row_step;
  uint32_t pieces;  // of a slot
  FastDivider pieces_of_line, lines_of_image;
};

// The pair of elements from `x` on, `line + x` being even; zeros where outside.
__device__ uint32_t PairAt(const uint16_t* line, int x, int width) {
  const bool low = x >= 0 && x < width, high = x + 1 >= 0 && x + 1 < width;
  // A word with an element inside lies within the row's buffer, which begins and ends on a word.
  const uint32_t word = low || high ? __ldg(reinterpret_cast<const uint32_t*>(line + x)) : 0;
  return (low ? word & 0xFFFFu : 0) | (high ? word & 0xFFFF0000u : 0);
}

// kTaps neighbouring taps of eight outputs that are kStride apart: each element is read once.
template <int kStride, int kTaps>
class NeighbourTaps {
 public:
  __device__ NeighbourTaps(const uint16_t* line, int first, int width)
      : odd_((reinterpret_cast<uintptr_t>(line + first) & 2) != 0) {
#pragma unroll
    for (int i = 0; i < kWords; ++i) words_[i] = PairAt(line, first - odd_ + 2 * i, width);
  }
  __device__ uint4 Piece(int tap) const {  // known when this is compiled
    uint32_t even[4], odd[4];              // by where the first element stands
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      even[i] = PairFrom(kStride * 2 * i + tap);
      odd[i] = PairFrom(kStride * 2 * i + tap + 1);
    }
    return odd_ ? make_uint4(odd[0], odd[1], odd[2], odd[3]) : make_uint4(even[0], even[1], even[2], even[3]);
  }

 private:
  static constexpr int kWords = (kStride * 7 + kTaps + 2) / 2;
  // Elements `at` and `at + kStride` of the words; `at` is known when this is compiled.
  __device__ uint32_t PairFrom(int at) const {
    const uint32_t first = words_[at / 2], second = words_[min((at + 2) / 2, kWords - 1)];
    if (kStride == 1) return at % 2 == 0 ? first : __byte_perm(first, second, 0x5432);
    return __byte_perm(first, second, at % 2 == 0 ? 0x5410 : 0x7632);
  }

  const int odd_;
  uint32_t words_[kWords];
};

// Where a thread's piece of eight output columns comes from and goes to.
struct UnfoldPiece {
  uint32_t at;     // in each slot
  int first, row;  // of the input
  const uint16_t* line;

  __device__ UnfoldPiece(const Unfold& unfold, const uint16_t* x, int channel, uint32_t piece) : at(piece) {
    const int column = static_cast<int>(unfold.pieces_of_line.Split(piece)) * kPieceElements;
    row = unfold.first_row + static_cast<int>(unfold.lines_of_image.Split(piece)) * unfold.row_step;
    first = column * unfold.stride - unfold.pad;
    line = x + channel * unfold.row_stride + (int64_t{piece} * unfold.height + row) * unfold.width;
  }
};

// Windows of kTaps columns next to each other: a thread makes its piece of all slots of a channel.
template <int kStride, int kTaps>
__global__ void UnfoldChannels(const __grid_constant__ Unfold unfold, const int32_t* slot_of_pair, const uint16_t* x,
                               uint4* unfolded) {
  LetNextStart();
  const uint32_t at = blockIdx.x * kUnfoldThreads + threadIdx.x;
  if (at >= unfold.pieces) return;
  const int channel = blockIdx.y;
  int slots[kTaps];
  bool used = false;
#pragma unroll
  for (int tap = 0; tap < kTaps; ++tap) {
    slots[tap] = __ldg(slot_of_pair + channel * kTaps + tap);
    used = used || slots[tap] >= 0;
  }
  if (!used) return;
  const UnfoldPiece piece(unfold, x, channel, at);
  const bool inside = piece.row >= 0 && piece.row < unfold.height;
  const NeighbourTaps<kStride, kTaps> taps(piece.line, piece.first, inside ? unfold.width : 0);
  uint4* const to = unfolded + piece.at;
#pragma unroll
  for (int tap = 0; tap < kTaps; ++tap) {
    if (slots[tap] >= 0) to[int64_t{slots[tap]} * unfold.pieces] = taps.Piece(tap);
  }
}

// Other windows: a thread makes a piece of a pair's slot.
__global__ void UnfoldPairs(const __grid_constant__ Unfold unfold, const int32_t* slot_of_pair, const uint16_t* x,
                            uint4* unfolded) {
  LetNextStart();
  const uint32_t at = blockIdx.x * kUnfoldThreads + threadIdx.x;
  const int pair = blockIdx.y, slot = __ldg(slot_of_pair + pair);
  if (at >= unfold.pieces || slot < 0) return;
  const UnfoldPiece piece(unfold, x, pair / unfold.kernel_w, at);
  const bool inside = piece.row >= 0 && piece.row < unfold.height;
  uint32_t elements[kPieceElements];
#pragma unroll
  for (int i = 0; i < kPieceElements; ++i) {
    const int from = piece.first + pair % unfold.kernel_w * unfold.dilation + i * unfold.stride;
    elements[i] = inside && from >= 0 && from < unfold.width ? __ldg(piece.line + from) : 0;
  }
  unfolded[int64_t{slot} * unfold.pieces + piece.at] =
      make_uint4(elements[0] | elements[1] << 16, elements[2] | elements[3] << 16, elements[4] | elements[5] << 16,
                 elements[6] | elements[7] << 16);
}

struct WindowArgs : Args {
  const int32_t* slot_of_pair;
  int32_t pieces;  // of all padded columns
  uint32_t slot_pieces;
  int32_t line_pieces, lines, tap_lines, kernel_h, kernel_w;  // tap_lines: from a row of the window to the next
  int32_t out_first, out_step, height, width;                 // of the output; lines as in WindowLines
  FastDivider pieces_of_line, rows_of_image;
  WindowColumns window_columns;
};

// What a piece of eight padded output columns is.
struct PiecePlace {
  int image, row, column;  // column in pieces

  __device__ PiecePlace(const WindowArgs& args, uint32_t piece) {
    column = static_cast<int>(args.pieces_of_line.Split(piece));
    row = static_cast<int>(args.rows_of_image.Split(piece));
    image = static_cast<int>(piece);
  }
};

// Where a lane's pieces lie in a row of Y, which has no padding: not on multiples of 16 bytes.
class WindowPlaces {
 public:
  static constexpr bool kAligned = false;
  __device__ WindowPlaces(const WindowArgs& args, int64_t first)
      : args_(args), first_(static_cast<uint32_t>(first / kPieceElements) + threadIdx.x % 4) {}
  template <typename T>
  __device__ uint4 Load(const T* row, int i) const {
    uint32_t words[4] = {};
    ForEach(row, i, [&](const T* from, int count) {
      const auto* const elements = reinterpret_cast<const uint16_t*>(from);
      if (args_.width % 2 == 0) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          if (2 * j < count) words[j] = reinterpret_cast<const uint32_t*>(elements)[j];
        }
        return;
      }
#pragma unroll
      for (int j = 0; j < kPieceElements; ++j) {
        if (j < count) words[j / 2] |= uint32_t{elements[j]} << (j % 2 * 16);
      }
    });
    return make_uint4(words[0], words[1], words[2], words[3]);
  }
  template <typename T>
  __device__ void Store(T* row, int i, const uint4& bits) const {
    const uint32_t words[4] = {bits.x, bits.y, bits.z, bits.w};
    ForEach(row, i, [&](T* to, int count) {
      if (args_.width % kPieceElements == 0) {
        *reinterpret_cast<uint4*>(to) = bits;
      } else if (args_.width % 4 == 0) {
        *reinterpret_cast<uint2*>(to) = make_uint2(words[0], words[1]);
        if (count > 4) reinterpret_cast<uint2*>(to)[1] = make_uint2(words[2], words[3]);
      } else if (args_.width % 2 == 0) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          if (2 * j < count) reinterpret_cast<uint32_t*>(to)[j] = words[j];
        }
      } else {
#pragma unroll
        for (int j = 0; j < kPieceElements; ++j) {
          if (j < count) reinterpret_cast<uint16_t*>(to)[j] = static_cast<uint16_t>(words[j / 2] >> (j % 2 * 16));
        }
      }
    });
  }

 private:
  // visit(where the piece begins, how many of its columns there are), if it is one.
  template <typename T, typename Visit>
  __device__ void ForEach(T* row, int i, const Visit& visit) const {
    const uint32_t piece = first_ + i * 4;
    if (piece >= static_cast<uint32_t>(args_.pieces)) return;
    const PiecePlace place(args_, piece);
    const int column = place.column * kPieceElements;
    visit(row + (int64_t{place.image} * args_.height + place.row) * args_.width + column,
          min(kPieceElements, args_.width - column));
  }

  const WindowArgs& args_;
  const uint32_t first_;
};

// A tap is a step of lines in a slot.
class WindowTaps {
 public:
  static constexpr bool kAligned = WindowPlaces::kAligned;
  __device__ explicit WindowTaps(const WindowArgs& args) : args_(args) {}

  __device__ uint32_t Word(uint32_t index) const {
    const WindowColumns::Place at = args_.window_columns.Of(index);
    const int slot = __ldg(args_.slot_of_pair + at.channel * args_.kernel_w + at.column);
    // A group without weights has a column that perhaps no slot is for.
    return (max(slot, 0) * args_.slot_pieces + at.row * args_.tap_lines * args_.line_pieces) << kTapBits | at.row;
  }

  __device__ void SetPiece(uint32_t piece) {
    const PiecePlace place(args_, min(piece, static_cast<uint32_t>(args_.pieces - 1)));
    const int line = args_.out_first + place.row * args_.out_step;
    from_ = static_cast<const uint4*>(args_.x) + (int64_t{place.image} * args_.lines + line) * args_.line_pieces +
            place.column;
    inside_ = 0;
    for (int tap = 0; tap < args_.kernel_h; ++tap) {
      const int at = line + tap * args_.tap_lines;
      if (at >= 0 && at < args_.lines) inside_ |= 1u << tap;
    }
  }

  __device__ const uint4* From(uint32_t word) const { return from_ + (word >> kTapBits); }
  __device__ bool Inside(uint32_t word) const { return (inside_ >> (word % (1 << kTapBits)) & 1) != 0; }

 private:
  const WindowArgs& args_;
  const uint4* from_;
  uint32_t inside_;  // which rows of the window lie inside the plane
};

template <typename T, int kWidth, typename Function>
__global__ __launch_bounds__(kThreads, 2) void MultiplyWindowGroups(const __grid_constant__ WindowArgs args,
                                                                    const __grid_constant__ Ending<Function> ending) {
  extern __shared__ uint4 dynamic_shared[];
  auto& shared = *reinterpret_cast<typename Shape<kWidth>::Shared*>(dynamic_shared);
  if (threadIdx.x == 0) shared.barriers.Init(kRole + 1, kWarps);
  __syncthreads();
  if (threadIdx.x >= kRole) {
    KeepRegisters<Shape<kWidth>::kProducerRegisters>();
    Gatherer<kWidth, WindowArgs, TapColumns<kWidth, WindowArgs, WindowTaps>>(args, shared).Run();
  } else {
    TakeRegisters<Shape<kWidth>::kConsumerRegisters>();
    Multiplier<T, kWidth, Function, WindowArgs, WindowPlaces>(args, ending, shared).Run();
  }
}

WindowArgs WindowArgsOf(const WindowOperands& operands, int width) {
  const Problem& problem = *operands.problem;
  const Window& window = problem.window();
  const WindowLines lines = WindowLines::Of(problem);
  const int64_t line_pieces = CeilDiv(problem.output.width, kPieceElements);
  WindowArgs args = {};
  static_cast<Args&>(args) = ArgsOf(operands, width);
  args.slot_of_pair = operands.slot_of_pair;
  args.pieces = static_cast<int32_t>(operands.columns / kPieceElements);
  args.slot_pieces = static_cast<uint32_t>(problem.input.batch * lines.count * line_pieces);
  args.line_pieces = static_cast<int32_t>(line_pieces);
  args.lines = static_cast<int32_t>(lines.count);
  args.tap_lines = window.dilation_h;
  args.kernel_h = window.kernel_h;
  args.kernel_w = window.kernel_w;
  args.out_first = static_cast<int32_t>(lines.out_first);
  args.out_step = static_cast<int32_t>(lines.out_step);
  args.height = static_cast<int32_t>(problem.output.height);
  args.width = static_cast<int32_t>(problem.output.width);
  args.pieces_of_line = FastDivider(line_pieces);
  args.rows_of_image = FastDivider(problem.output.height);
  args.window_columns = WindowColumns(window);
  return args;
}

template <typename T, int kWidth>
void QueueWindows(const WindowOperands& operands, int multiprocessors, cudaStream_t queue) {
  using Shared = typename Shape<kWidth>::Shared;
  const WindowArgs args = WindowArgsOf(operands, kWidth);
  const LaunchGrid grid(std::min<int64_t>(args.tiles, 2 * multiprocessors));
  WithTileEnding(operands.epilogue, [&]<typename Function>(const Ending<Function>& ending) {
    auto* const kernel = MultiplyWindowGroups<T, kWidth, Function>;
    AllowSharedMemory(kernel, sizeof(Shared));
    LaunchDependent(kernel, grid, kThreads, sizeof(Shared), queue, args, ending);
  });
}

}  // namespace
}  // namespace shfl_bw

void UnfoldWidth(const Problem& problem, const int32_t* slot_of_pair, const void* x, void* unfolded,
                 cudaStream_t queue) {
  constexpr int64_t kPieceElements = shfl_bw::kPieceElements, kThreads = shfl_bw::kUnfoldThreads;
  const Window& window = problem.window();
  const WindowLines lines = WindowLines::Of(problem);
  const int64_t line_pieces = CeilDiv(problem.output.width, kPieceElements);
  const int64_t pieces = problem.input.batch * lines.count * line_pieces;
  if (pieces == 0) return;
  const shfl_bw::Unfold unfold = {.row_stride = RowStride(problem.input.positions()),
                                  .height = static_cast<int>(problem.input.height),
                                  .width = static_cast<int>(problem.input.width),
                                  .stride = window.stride_w,
                                  .pad = window.pad_left,
                                  .dilation = window.dilation_w,
                                  .kernel_w = window.kernel_w,
                                  .first_row = static_cast<int>(lines.first),
                                  .row_step = static_cast<int>(lines.step),
                                  .pieces = static_cast<uint32_t>(pieces),
                                  .pieces_of_line = FastDivider(line_pieces),
                                  .lines_of_image = FastDivider(lines.count)};
  const auto launch = [&](auto* kernel, int64_t rows) {
    const LaunchGrid grid(CeilDiv(pieces, kThreads), rows);
    kernel<<<grid, kThreads, 0, queue>>>(unfold, slot_of_pair, static_cast<const uint16_t*>(x),
                                         static_cast<uint4*>(unfolded));
  };
  const auto is = [&](int stride, int taps) {
    return window.stride_w == stride && window.kernel_w == taps && window.dilation_w == 1;
  };
  const int64_t channels = problem.input.channels;
  if (is(1, 3)) return launch(shfl_bw::UnfoldChannels<1, 3>, channels);
  if (is(2, 3)) return launch(shfl_bw::UnfoldChannels<2, 3>, channels);
  if (is(2, 1)) return launch(shfl_bw::UnfoldChannels<2, 1>, channels);
  launch(shfl_bw::UnfoldPairs, channels * window.kernel_w);
}

template <int kWidth>
void QueueWindowGroups(const WindowOperands& operands, int multiprocessors, cudaStream_t queue) {
  if (operands.weight->count() == 0 || operands.columns == 0) return;
  VisitHalf(operands.problem->to.dtype,
            [&]<DType kHalf>() { shfl_bw::QueueWindows<Element<kHalf>, kWidth>(operands, multiprocessors, queue); });
}

template void QueueWindowGroups<64>(const WindowOperands&, int, cudaStream_t);
template void QueueWindowGroups<128>(const WindowOperands&, int, cudaStream_t);
template void QueueWindowGroups<256>(const WindowOperands&, int, cudaStream_t);

}  // namespace swizzle::cuda

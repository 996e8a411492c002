#include "kernels/cuda/int8/byte_columns.h"
#include "kernels/cuda/runtime/dependent_launch.cuh"
#include "kernels/cuda/runtime/elements.cuh"

namespace swizzle::cuda {
namespace {

constexpr int kThreads = 128, kStripThreads = 256;
constexpr int64_t kMostStrip = 40 << 10;  // bytes
constexpr int kPiece = 16;                // bytes that a thread makes at once
constexpr int kPieceWords = kPiece / 4;
constexpr int kChannelBlocks = 16;  // of a tap at most: what a thread works out of its positions serves many channels

struct ByteGather {
  const uint8_t* input;
  uint8_t* columns;
  int32_t channels, height, width;
  int64_t positions, in_stride, out_stride;  // of rows
  FastDivider out_width, out_height, kernel_w, of_channels;
  Window window;
  uint8_t outside;
};

// Where the window's tap lies for an output position; false outside the plane, or where there is no such position.
struct TapPlace {
  int32_t image, y, x;
};
__device__ bool PlaceOf(const ByteGather& gather, int64_t position, int32_t tap_y, int32_t tap_x, TapPlace& place) {
  if (position >= gather.positions) return false;
  auto rest = static_cast<uint32_t>(position);
  const auto out_x = static_cast<int32_t>(gather.out_width.Split(rest));
  const auto out_y = static_cast<int32_t>(gather.out_height.Split(rest));
  place.image = static_cast<int32_t>(rest);
  place.y = out_y * gather.window.stride_h - gather.window.pad_top + tap_y * gather.window.dilation_h;
  place.x = out_x * gather.window.stride_w - gather.window.pad_left + tap_x * gather.window.dilation_w;
  return place.y >= 0 && place.y < gather.height && place.x >= 0 && place.x < gather.width;
}

// kPiece positions of a tap, for every gridDim.z-th channel. blockIdx.y is the tap.
//
// kShifts: output and input have the same positions, so that a tap is a shift along the row: two aligned pieces, of
// which the bytes inside the plane are kept.
template <bool kShifts>
__global__ void __launch_bounds__(kThreads) GatherByteRows(const __grid_constant__ ByteGather gather) {
  LetNextStart();
  const int64_t first = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * kPiece;
  if (first >= gather.out_stride) return;
  uint32_t tap_y = blockIdx.y;
  const auto tap_x = static_cast<int32_t>(gather.kernel_w.Split(tap_y));
  const int32_t plane = gather.height * gather.width;
  const uint32_t fill = gather.outside * 0x01010101u;
  uint32_t inside[kPieceWords] = {};
  int64_t from[kShifts ? 1 : kPiece] = {};
#pragma unroll
  for (int i = 0; i < kPiece; ++i) {
    TapPlace place;
    if (!PlaceOf(gather, first + i, static_cast<int32_t>(tap_y), tap_x, place)) continue;
    inside[i / 4] |= 0xFFu << 8 * (i % 4);
    if constexpr (!kShifts) from[i] = int64_t{place.image} * plane + place.y * gather.width + place.x;
  }
  const Window& window = gather.window;
  const int64_t shift = int64_t{static_cast<int32_t>(tap_y) * window.dilation_h - window.pad_top} * gather.width +
                        tap_x * window.dilation_w - window.pad_left;
  // Pieces that lie outside of the row have no byte that counts.
  const int64_t last = gather.in_stride / kPiece - 1, at = first + shift;
  const int64_t piece = at >= 0 ? at / kPiece : -((kPiece - 1 - at) / kPiece);
  const auto bits = static_cast<uint32_t>(at - piece * kPiece) * 8;
  const int64_t low = min(max(piece, int64_t{0}), last), high = min(max(piece + 1, int64_t{0}), last);
  WaitForResults();
  for (int channel = blockIdx.z; channel < gather.channels; channel += gridDim.z) {
    const uint8_t* const row = gather.input + channel * gather.in_stride;
    uint32_t words[kPieceWords];
    if constexpr (kShifts) {
      const uint4 a = reinterpret_cast<const uint4*>(row)[low], b = reinterpret_cast<const uint4*>(row)[high];
      uint32_t all[2 * kPieceWords] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
      // By whole words first, in steps whose length is known.
#pragma unroll
      for (int step = 2; step >= 1; step /= 2) {
        const bool moves = (bits / 32 & step) != 0;
#pragma unroll
        for (int word = 0; word + step < 2 * kPieceWords; ++word) all[word] = moves ? all[word + step] : all[word];
      }
#pragma unroll
      for (int word = 0; word < kPieceWords; ++word) {
        words[word] = __funnelshift_r(all[word], all[word + 1], bits % 32);
      }
    } else {
#pragma unroll
      for (int word = 0; word < kPieceWords; ++word) {
        words[word] = 0;
#pragma unroll
        for (int i = 0; i < 4; ++i) words[word] |= uint32_t{row[from[4 * word + i]]} << 8 * i;
      }
    }
#pragma unroll
    for (int word = 0; word < kPieceWords; ++word) words[word] = (words[word] & inside[word]) | (fill & ~inside[word]);
    const int64_t column = int64_t{blockIdx.y} * gather.channels + channel;
    *reinterpret_cast<uint4*>(gather.columns + column * gather.out_stride + first) =
        make_uint4(words[0], words[1], words[2], words[3]);
  }
}

// kPiece columns of a position.
__global__ void __launch_bounds__(kThreads) GatherByteLines(const __grid_constant__ ByteGather gather,
                                                            FastDivider pieces, uint32_t count, int32_t column_count) {
  LetNextStart();
  uint32_t item = blockIdx.x * kThreads + threadIdx.x;
  if (item >= count) return;
  const uint32_t first = pieces.Split(item) * kPiece, position = item;
  uint32_t words[kPieceWords] = {};
  WaitForResults();
#pragma unroll
  for (int i = 0; i < kPiece; ++i) {
    uint32_t byte = gather.outside;
    uint32_t tap = first + i;
    if (tap < static_cast<uint32_t>(column_count)) {
      const uint32_t channel = gather.of_channels.Split(tap);
      const auto tap_x = static_cast<int32_t>(gather.kernel_w.Split(tap));
      TapPlace place;
      if (PlaceOf(gather, position, static_cast<int32_t>(tap), tap_x, place)) {
        const int64_t at = (int64_t{place.image} * gather.height + place.y) * gather.width + place.x;
        byte = gather.input[at * gather.channels + channel];
      }
    }
    words[i / 4] |= byte << 8 * (i % 4);
  }
  reinterpret_cast<uint4*>(gather.columns)[blockIdx.x * kThreads + threadIdx.x] =
      make_uint4(words[0], words[1], words[2], words[3]);
}

// The same for a line of an image's output a block, whose windows' rows lie in shared memory with what pads them: what
// a byte is then is known before, but for its position.
__global__ void __launch_bounds__(kStripThreads)
    GatherByteStrips(const __grid_constant__ ByteGather gather, int32_t out_width, int32_t pieces, int32_t column_count,
                     int32_t row_bytes, FastDivider of_row_bytes) {
  extern __shared__ uint8_t strip[];
  LetNextStart();
  const Window& window = gather.window;
  uint32_t image = blockIdx.x;
  const auto out_y = static_cast<int32_t>(gather.out_height.Split(image));
  const int32_t line_bytes = gather.width * gather.channels, pad_bytes = window.pad_left * gather.channels;
  WaitForResults();
#pragma unroll 8
  for (int32_t at = threadIdx.x; at < window.kernel_h * row_bytes; at += kStripThreads) {
    auto row = static_cast<uint32_t>(at);
    const int32_t in_line = static_cast<int32_t>(of_row_bytes.Split(row)) - pad_bytes;
    const int32_t y = out_y * window.stride_h - window.pad_top + static_cast<int32_t>(row) * window.dilation_h;
    const bool inside = y >= 0 && y < gather.height && in_line >= 0 && in_line < line_bytes;
    strip[at] = inside ? gather.input[(int64_t{image} * gather.height + y) * line_bytes + in_line] : gather.outside;
  }
  __syncthreads();
  const int32_t piece = static_cast<int32_t>(threadIdx.x) % pieces, groups = kStripThreads / pieces;
  int32_t from[kPiece];
#pragma unroll
  for (int i = 0; i < kPiece; ++i) {
    const int32_t column = piece * kPiece + i;
    auto tap = static_cast<uint32_t>(min(column, column_count - 1));
    const auto channel = static_cast<int32_t>(gather.of_channels.Split(tap));
    const auto x = static_cast<int32_t>(gather.kernel_w.Split(tap));
    from[i] = static_cast<int32_t>(tap) * row_bytes + x * window.dilation_w * gather.channels + channel;
  }
  uint4* const to = reinterpret_cast<uint4*>(gather.columns) + int64_t{blockIdx.x} * out_width * pieces + piece;
  const int32_t apart = window.stride_w * gather.channels;
  // What fills a line up is multiplied by zeros.
  const int32_t group = static_cast<int32_t>(threadIdx.x) / pieces;
  for (int32_t x = group; group < groups && x < out_width; x += groups) {
    uint32_t words[kPieceWords] = {};
#pragma unroll
    for (int i = 0; i < kPiece; ++i) words[i / 4] |= uint32_t{strip[from[i] + x * apart]} << 8 * (i % 4);
    to[int64_t{x} * pieces] = make_uint4(words[0], words[1], words[2], words[3]);
  }
}

ByteGather GatherOf(const Problem& problem, const uint8_t* input, uint8_t outside, uint8_t* columns) {
  const Extent &in = problem.input, &out = problem.output;
  return {.input = input,
          .columns = columns,
          .channels = static_cast<int32_t>(in.channels),
          .height = static_cast<int32_t>(in.height),
          .width = static_cast<int32_t>(in.width),
          .positions = out.positions(),
          .in_stride = RowStride(in.positions()),
          .out_stride = RowStride(out.positions()),
          .out_width = FastDivider(out.width),
          .out_height = FastDivider(out.height),
          .kernel_w = FastDivider(problem.window().kernel_w),
          .of_channels = FastDivider(in.channels),
          .window = problem.window(),
          .outside = outside};
}

}  // namespace

int64_t ByteColumnCount(const Problem& problem) { return problem.input.channels * problem.window().taps(); }

int64_t ByteRowsSize(const Problem& problem) {
  return ByteColumnCount(problem) * RowStride(problem.output.positions());
}

void QueueByteRows(const Problem& problem, const uint8_t* input, uint8_t outside, uint8_t* columns, Stream& stream) {
  const ByteGather gather = GatherOf(problem, input, outside, columns);
  const Extent &in = problem.input, &out = problem.output;
  const Window& window = problem.window();
  const bool shifts = window.stride_h == 1 && window.stride_w == 1 && in.height == out.height && in.width == out.width;
  const LaunchGrid grid(CeilDiv(gather.out_stride, kThreads * kPiece), window.taps(),
                        std::min<int64_t>(in.channels, kChannelBlocks));
  LaunchDependent(shifts ? GatherByteRows<true> : GatherByteRows<false>, grid, kThreads, 0, QueueOf(stream), gather);
}

int64_t ByteLineSize(const Problem& problem) { return RoundUp(ByteColumnCount(problem), kByteUnit); }

void QueueByteLines(const Problem& problem, const uint8_t* input, uint8_t outside, uint8_t* columns, Stream& stream) {
  const int64_t pieces = ByteLineSize(problem) / kPiece, count = problem.output.positions() * pieces;
  const Window& window = problem.window();
  const int64_t across = (problem.output.width - 1) * window.stride_w + (window.kernel_w - 1) * window.dilation_w + 1;
  const int64_t row_bytes = across * problem.input.channels, strip = row_bytes * window.kernel_h;
  if (strip <= kMostStrip && pieces <= kStripThreads) {
    LaunchDependent(GatherByteStrips, LaunchGrid(problem.output.batch * problem.output.height), kStripThreads, strip,
                    QueueOf(stream), GatherOf(problem, input, outside, columns),
                    static_cast<int32_t>(problem.output.width), static_cast<int32_t>(pieces),
                    static_cast<int32_t>(ByteColumnCount(problem)), static_cast<int32_t>(row_bytes),
                    FastDivider(row_bytes));
    return;
  }
  LaunchDependent(GatherByteLines, LaunchGrid::OfThreads(count, kThreads), kThreads, 0, QueueOf(stream),
                  GatherOf(problem, input, outside, columns), FastDivider(pieces), static_cast<uint32_t>(count),
                  static_cast<int32_t>(ByteColumnCount(problem)));
}

}  // namespace swizzle::cuda

#include <algorithm>
#include <limits>

#include "kernels/cuda/conv/stem/conv_stem.h"
#include "kernels/cuda/runtime/byte_element.cuh"
#include "kernels/cuda/runtime/dependent_launch.cuh"
#include "kernels/cuda/runtime/epilogue.cuh"
#include "kernels/cuda/runtime/shared_memory.h"
#include "kernels/cuda/tensor_core/mma.cuh"

namespace swizzle::cuda {
namespace {

using W = StemWeight;

constexpr int kThreads = 128, kWarp = 32;
constexpr int kTiles = 14, kColumns = 8 * kTiles;  // of the convolution, of a warp
constexpr int kPooled = kColumns / 2;
constexpr int kLineWords = 116;                     // of staged columns: kColumns - 1 + 4 words and one more
constexpr int kGroups = 59;                         // of four elements of an image that reach into a staged line
constexpr int kRowPitch = 60, kPositionPitch = 40;  // halves of a result's row of a channel, or position of 32 channels
constexpr int kResultHalves = std::max(W::kChannels / 2 * kRowPitch, kPooled* kPositionPitch);

constexpr float kLow = -std::numeric_limits<float>::infinity();

// A block has two warps for each of two runs of kRows rows of the result, one under the other.
template <int kRows>
constexpr int kStagedLines = 2 * (4 * kRows) + 7;  // of the image, under the first line of the first window
template <int kRows>
constexpr int kSharedBytes =
    (W::kWords + W::kInputs * kStagedLines<kRows> * kLineWords) * 4 + kThreads / kWarp* kResultHalves * 2;

template <typename From>
struct Args {
  const From* images;
  void* result;
  StemWeight weight;
  int in_height, in_width, height, width;  // of an image, and of the convolution
  int pooled_height, pooled_width;
  FastDivider tiles, strips;  // of a line of the result, and of its rows
  int64_t row_stride;         // of kRows
  bool in_fours;              // lines of an image start on four elements
  float scale, zero_point;    // of bytes
  Clamp clamp;
};

template <typename T>
struct Pair;
template <>
struct Pair<__half> {
  using Type = __half2;
  __device__ static Type Of(float low, float high) { return __floats2half2_rn(low, high); }
};
template <>
struct Pair<__nv_bfloat16> {
  using Type = __nv_bfloat162;
  __device__ static Type Of(float low, float high) { return __floats2bfloat162_rn(low, high); }
};

template <typename From>
__device__ float ValueOf(const Args<From>& args, From element) {
  if constexpr (sizeof(From) == 1) {
    return (static_cast<float>(element) - args.zero_point) * args.scale;
  } else {
    return element;
  }
}

// Stages lines of an image from `first_line` on, columns from `first_column` on, zeros outside of it. kFours: lines of
// the image start on four elements.
template <int kRows, bool kFours, typename T, typename From>
__device__ void StageLines(const Args<From>& args, int image, int first_line, int first_column, T* lines) {
  constexpr int kLines = kStagedLines<kRows>;
  const From* const planes = args.images + int64_t{image} * W::kInputs * args.in_height * args.in_width;
#pragma unroll 8
  for (int i = threadIdx.x; i < W::kInputs * kLines * kGroups; i += kThreads) {
    const int line = i / kGroups, group = i - line * kGroups, channel = line / kLines;
    const int y = first_line + line - channel * kLines, x = first_column - 1 + 4 * group;
    const From* const from = planes + (int64_t{channel} * args.in_height + y) * args.in_width + x;
    const bool inside = y >= 0 && y < args.in_height;
    T four[4];
    if constexpr (kFours) {
      const bool there = inside && x >= 0 && x < args.in_width;
      Pack<From, 4> pack = {};
      if (there) pack = *reinterpret_cast<const Pack<From, 4>*>(from);
#pragma unroll
      for (int j = 0; j < 4; ++j) four[j] = FromFloat<T>(there ? ValueOf(args, pack.values[j]) : 0.0f);
    } else {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const bool there = inside && x + j >= 0 && x + j < args.in_width;
        four[j] = FromFloat<T>(there ? ValueOf(args, from[j]) : 0.0f);
      }
    }
    T* const to = lines + line * 2 * kLineWords + 4 * group;  // the first element stands before it
    if (group > 0) to[-1] = four[0];
    if (4 * group + 1 < 2 * kLineWords) {
      *reinterpret_cast<Pack<T, 2>*>(to) = {four[1], four[2]};
      to[2] = four[3];
    }
  }
}

// Of one line of the convolution and 32 channels, pooled along it: of channels g and g + 8 of a tile of 16.
template <typename T>
struct PooledLine {
  using Two = typename Pair<T>::Type;
  Two values[2][kTiles];

  __device__ void Fill(float value) {
#pragma unroll
    for (int i = 0; i < 2 * kTiles; ++i) values[i / kTiles][i % kTiles] = Pair<T>::Of(value, value);
  }
  __device__ void Join(const PooledLine& other) {
#pragma unroll
    for (int i = 0; i < 2 * kTiles; ++i) {
      Two& value = values[i / kTiles][i % kTiles];
      value = __hmax2(value, other.values[i / kTiles][i % kTiles]);
    }
  }
};

// `lines`: the first of the window's, in words; `columns`: of the convolution, from the first of these on.
template <int kRows, typename T>
__device__ void MakeLine(const uint4* weights, const float (&bias)[4], const uint32_t* lines, int columns,
                         PooledLine<T>& line) {
  const int lane = threadIdx.x % kWarp, g = lane / 4, t = lane % 4;
  float sums[2][kTiles][4];
#pragma unroll
  for (int i = 0; i < 2 * kTiles * 4; ++i)
    sums[i / 4 / kTiles][i / 4 % kTiles][i % 4] = bias[i / 4 / kTiles * 2 + i % 4 / 2];
  lines += g + t;
#pragma unroll
  for (int product = 0; product < W::kProducts; ++product) {
    const auto line_at = [&](int at) {  // the last has no weights
      const int real = at < W::kLines ? at : W::kLines - 1;
      return lines + (real / W::kKernel * kStagedLines<kRows> + real % W::kKernel) * kLineWords;
    };
    const uint32_t *const upper = line_at(2 * product), *const lower = line_at(2 * product + 1);
    uint32_t a[2][4];
#pragma unroll
    for (int m = 0; m < 2; ++m) {
      const uint4 four = weights[(product * (W::kChannels / 16) + m) * kWarp + lane];
      a[m][0] = four.x, a[m][1] = four.y, a[m][2] = four.z, a[m][3] = four.w;
    }
#pragma unroll
    for (int j = 0; j < kTiles; ++j) {
      const uint32_t b0 = upper[8 * j], b1 = lower[8 * j];
#pragma unroll
      for (int m = 0; m < 2; ++m) Mma<T>(sums[m][j], a[m], b0, b1);
    }
  }
#pragma unroll
  for (int m = 0; m < 2; ++m) {
    typename Pair<T>::Type before = Pair<T>::Of(kLow, kLow);
#pragma unroll
    for (int j = 0; j < kTiles; ++j) {
      const float(&c)[4] = sums[m][j];
      const bool first = 8 * j + 2 * t < columns, second = 8 * j + 2 * t + 1 < columns;
      const auto even = Pair<T>::Of(first ? c[0] : kLow, first ? c[2] : kLow);
      const auto odd = Pair<T>::Of(second ? c[1] : kLow, second ? c[3] : kLow);
      const auto left = __shfl_sync(~0u, t == 3 ? before : odd, (lane & ~3) | ((t + 3) & 3));
      line.values[m][j] = __hmax2(__hmax2(even, odd), left);
      before = odd;
    }
  }
}

// A warp's part of a row of the result.
struct RowPart {
  int64_t row;                 // of all images'
  int column, count, skipped;  // of the columns in registers the first ones are another block's
  int channel;
};

template <Layout kLayout, typename T, typename From>
__device__ void StoreRow(const Args<From>& args, const PooledLine<T>& line, const RowPart& part, T* staged) {
  const int lane = threadIdx.x % kWarp, g = lane / 4, t = lane % 4;
  constexpr bool kOfRows = kLayout == Layout::kRows;
  const auto place = [&](int channel, int column) {
    return staged + (kOfRows ? channel * kRowPitch + column : column * kPositionPitch + channel);
  };
  __syncwarp();
#pragma unroll
  for (int m = 0; m < 2; ++m) {
#pragma unroll
    for (int j = 0; j < kTiles; ++j) {
      const auto two = line.values[m][j];
      *place(m * 16 + g, 4 * j + t) = FromFloat<T>(args.clamp(ToFloat(two.x)));
      *place(m * 16 + g + 8, 4 * j + t) = FromFloat<T>(args.clamp(ToFloat(two.y)));
    }
  }
  __syncwarp();
  T* const result = static_cast<T*>(args.result);
  const int64_t position = part.row * args.pooled_width + part.column;
  if constexpr (kOfRows) {
    constexpr int kFour = 4;
    const bool in_fours = position % kFour == 0 && part.count % kFour == 0 && part.skipped == 0;
    const int step = in_fours ? kFour : 1, steps = part.count / step;
    for (int i = lane; i < W::kChannels / 2 * steps; i += kWarp) {
      const int channel = i / steps, column = (i - channel * steps) * step;
      T* const to = result + (part.channel + channel) * args.row_stride + position + column;
      if (in_fours) {
        *reinterpret_cast<uint2*>(to) = *reinterpret_cast<const uint2*>(place(channel, column));
      } else {
        *to = *place(channel, column + part.skipped);
      }
    }
  } else {
    constexpr int kPieces = W::kChannels / 2 / 8;
    for (int i = lane; i < part.count * kPieces; i += kWarp) {
      const int column = i / kPieces, channel = i % kPieces * 8;
      *reinterpret_cast<uint4*>(result + (position + column) * W::kChannels + part.channel + channel) =
          *reinterpret_cast<const uint4*>(place(channel, column + part.skipped));
    }
  }
}

template <int kRows, Layout kLayout, typename T, typename From>
__global__ void __launch_bounds__(kThreads, 2) ConvolveAndPool(const __grid_constant__ Args<From> args) {
  extern __shared__ uint4 shared[];
  uint4* const weights = shared;
  auto* const lines = reinterpret_cast<uint32_t*>(weights + W::kWords / 4);
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp, half = warp % 2, run = warp / 2;
  auto* const staged =
      reinterpret_cast<T*>(lines + W::kInputs * kStagedLines<kRows> * kLineWords) + warp * kResultHalves;
  LetNextStart();
  for (int i = threadIdx.x; i < W::kWords / 4; i += kThreads) {
    weights[i] = reinterpret_cast<const uint4*>(args.weight.words)[i];
  }
  float bias[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) bias[i] = args.weight.bias[half * 32 + i * 8 + lane / 4];
  WaitForResults();

  uint32_t image = blockIdx.x;
  const auto tile = static_cast<int>(args.tiles.Split(image));
  const int first_row = static_cast<int>(args.strips.Split(image)) * 2 * kRows;
  // The first of a tile's columns in registers but the first tile's is for its neighbour alone.
  const int skipped = tile > 0, column = tile * (kPooled - 1) + skipped;
  const int first_column = 2 * (column - skipped), first_line = 2 * first_row - 1;  // of the convolution
  const auto stage = [&]<bool kFours>() {
    StageLines<kRows, kFours>(args, static_cast<int>(image), 2 * first_line - 3, 2 * first_column - 3,
                              reinterpret_cast<T*>(lines));
  };
  args.in_fours ? stage.template operator()<true>() : stage.template operator()<false>();
  __syncthreads();

  RowPart part = {int64_t{image} * args.pooled_height + first_row + run * kRows, column,
                  min(kPooled - skipped, args.pooled_width - column), skipped, half * 32};
  PooledLine<T> kept, made;
  for (int i = 0; i <= 2 * kRows; ++i) {
    const int below = 2 * kRows * run + i, y = first_line + below;
    if (y >= 0 && y < args.height) {
      MakeLine<kRows>(weights + half * 2 * kWarp, bias, lines + 2 * below * kLineWords, args.width - first_column,
                      made);
    } else {
      made.Fill(kLow);
    }
    if (i > 0) kept.Join(made);
    if (i > 0 && i % 2 == 0) {
      if (first_row + run * kRows + i / 2 > args.pooled_height) return;
      StoreRow<kLayout>(args, kept, part, staged);
      ++part.row;
    }
    if (i % 2 == 0) kept = made;
  }
}

template <int kRows, Layout kLayout, typename T, typename From>
void Launch(const KernelArgs& args, const Args<From>& common, int blocks_across, cudaStream_t queue) {
  Args<From> of_rows = common;
  const int strips = CeilDiv(common.pooled_height, 2 * kRows);
  of_rows.strips = FastDivider(strips);
  auto* const kernel = ConvolveAndPool<kRows, kLayout, T, From>;
  AllowSharedMemory(kernel, kSharedBytes<kRows>);
  LaunchDependent(kernel, LaunchGrid(args.problem->output.batch * strips * blocks_across), kThreads,
                  kSharedBytes<kRows>, queue, of_rows);
}

template <typename T, typename From>
void QueueAs(const KernelArgs& args, const StemWeight& weight, int multiprocessors, cudaStream_t queue) {
  const Problem& problem = *args.problem;
  const Extent &in = problem.input, &out = problem.output, pooled = PooledExtent(out);
  const int tiles = pooled.width <= kPooled ? 1 : static_cast<int>(CeilDiv(pooled.width - 1, kPooled - 1));
  const Args<From> of_all = {.images = args.Input<From>(0),
                             .result = args.output.data,
                             .weight = weight,
                             .in_height = static_cast<int>(in.height),
                             .in_width = static_cast<int>(in.width),
                             .height = static_cast<int>(out.height),
                             .width = static_cast<int>(out.width),
                             .pooled_height = static_cast<int>(pooled.height),
                             .pooled_width = static_cast<int>(pooled.width),
                             .tiles = FastDivider(tiles),
                             .strips = {},
                             .row_stride = RowStride(pooled.positions()),
                             .in_fours = in.width % 4 == 0,
                             .scale = args.inputs[0].scale,
                             .zero_point = static_cast<float>(args.inputs[0].zero_point),
                             .clamp = Clamp(problem.epilogue)};
  constexpr int kMany = 4, kFew = 1;  // rows
  const bool few = out.batch * CeilDiv<int64_t>(pooled.height, 2 * kMany) * tiles < multiprocessors;
  const auto launch = [&]<Layout kLayout>() {
    few ? Launch<kFew, kLayout, T>(args, of_all, tiles, queue) : Launch<kMany, kLayout, T>(args, of_all, tiles, queue);
  };
  problem.to.layout == Layout::kRows ? launch.template operator()<Layout::kRows>()
                                     : launch.template operator()<Layout::kNhwc>();
}

}  // namespace

void QueueConvStem(const KernelArgs& args, const StemWeight& weight, int multiprocessors, cudaStream_t queue) {
  VisitHalf(args.problem->to.dtype, [&]<DType kHalf>() {
    args.problem->from.dtype == DType::kUint8 ? QueueAs<Element<kHalf>, uint8_t>(args, weight, multiprocessors, queue)
                                              : QueueAs<Element<kHalf>, float>(args, weight, multiprocessors, queue);
  });
}

}  // namespace swizzle::cuda

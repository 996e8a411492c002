#include <algorithm>

#include "kernels/cuda/conv/dense/conv_dense_simt.h"
#include "kernels/cuda/runtime/device_array.h"
#include "kernels/cuda/runtime/device_facts.h"
#include "kernels/cuda/runtime/epilogue.cuh"

namespace swizzle::cuda {
namespace {

constexpr int kDepth = 8;  // columns a step
constexpr int kPart = 8;   // positions, and output channels, of one thread
// What fills a multiprocessor: of whole tiles two blocks, of split ones 12 warps.
constexpr int64_t kFillingBlocks = 2;
constexpr int64_t kFillingThreads = 12 * 32;
constexpr int64_t kFewestSteps = 16;  // that a block of several for one tile takes

struct Shape {
  int channels, height, width, out_height, out_width, out_channels, padded_out_channels;
  int depth;                      // columns
  int positions;                  // of the output
  int64_t in_stride, out_stride;  // kRows
  int steps_per_split;
  Window window;
};

struct Operands {
  const float* input;
  const float* weight;  // [depth][padded_out_channels]
  const float* bias;    // or null
  const float* residual;
  float* output;
  int64_t split_stride;  // of partial sums, in elements; 0: there is one split, and the output is finished here
};

// Where an output position's window starts.
struct Corner {
  int64_t image;  // offset of the image's first position
  int top, left;
};

__device__ Corner CornerOf(const Shape& shape, int position) {
  position = min(position, shape.positions - 1);
  const int plane = shape.out_height * shape.out_width;
  const int image = position / plane, in_plane = position - image * plane;
  const int y = in_plane / shape.out_width, x = in_plane - y * shape.out_width;
  return {int64_t{image} * shape.height * shape.width, y * shape.window.stride_h - shape.window.pad_top,
          x * shape.window.stride_w - shape.window.pad_left};
}

// The input's position that a tap reads, or -1 in the padding.
__device__ int64_t PositionAt(const Shape& shape, const Corner& corner, int tap) {
  const int i = tap / shape.window.kernel_w, j = tap - i * shape.window.kernel_w;
  const int y = corner.top + i * shape.window.dilation_h, x = corner.left + j * shape.window.dilation_w;
  const bool inside = y >= 0 && y < shape.height && x >= 0 && x < shape.width;
  return inside ? corner.image + int64_t{y} * shape.width + x : -1;
}

// A thread's share of kDepth columns of kPositions positions: kVector channels at once, which neighbours in kNhwc are.
template <int kPositions, int kThreads, int kVector>
struct NhwcTile {
  static constexpr int kAcross = kDepth / kVector;
  static constexpr int kItems = kPositions * kAcross / kThreads;
  static constexpr int kStep = kThreads / kAcross;

  Corner corners[kItems];
  float values[kItems][kVector];

  __device__ NhwcTile(const Shape& shape, int begin) {
#pragma unroll
    for (int i = 0; i < kItems; ++i) corners[i] = CornerOf(shape, begin + threadIdx.x / kAcross + i * kStep);
  }
  __device__ void Load(const Shape& shape, const float* input, int column) {
    const int k = column + threadIdx.x % kAcross * kVector;
    const int tap = k / shape.channels, channel = k - tap * shape.channels;
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      const int64_t at = k < shape.depth ? PositionAt(shape, corners[i], tap) : -1;
      const float* const from = input + at * shape.channels + channel;
      if constexpr (kVector == 4) {
        const float4 loaded = at < 0 ? float4{0, 0, 0, 0} : __ldg(reinterpret_cast<const float4*>(from));
        values[i][0] = loaded.x, values[i][1] = loaded.y, values[i][2] = loaded.z, values[i][3] = loaded.w;
      } else {
        values[i][0] = at < 0 ? 0.0f : __ldg(from);
      }
    }
  }
  template <int kStride>
  __device__ void Store(float (*tile)[kStride]) const {
    const int k = threadIdx.x % kAcross * kVector;
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
#pragma unroll
      for (int v = 0; v < kVector; ++v) tile[k + v][threadIdx.x / kAcross + i * kStep] = values[i][v];
    }
  }
};

// The same from kRows, where neighbours are positions: a thread has one. With kVector 4 channels come in whole steps,
// and all columns of one share a tap.
template <int kPositions, int kThreads, int kVector>
struct RowsTile {
  static constexpr int kStep = kThreads / kPositions;
  static constexpr int kItems = kDepth / kStep;

  Corner corner;
  float values[kItems];

  __device__ RowsTile(const Shape& shape, int begin) : corner(CornerOf(shape, begin + threadIdx.x % kPositions)) {}

  __device__ void Load(const Shape& shape, const float* input, int column) {
    const int first = column + threadIdx.x / kPositions;
    int tap = column / shape.channels;
    int64_t at = PositionAt(shape, corner, tap);
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      const int k = first + i * kStep;
      if constexpr (kVector == 1) {
        tap = k / shape.channels;
        at = PositionAt(shape, corner, tap);
      }
      const float* const from = input + (k - tap * shape.channels) * shape.in_stride + at;
      values[i] = at < 0 || k >= shape.depth ? 0.0f : __ldg(from);
    }
  }
  template <int kStride>
  __device__ void Store(float (*tile)[kStride]) const {
#pragma unroll
    for (int i = 0; i < kItems; ++i) tile[threadIdx.x / kPositions + i * kStep][threadIdx.x % kPositions] = values[i];
  }
};

// A thread's share of the weights that kDepth columns meet. Channels past the last repeat, and are not stored.
template <int kChannels, int kThreads>
struct WeightTile {
  static constexpr int kAcross = kChannels / 4;
  static constexpr int kStep = kThreads / kAcross;
  static constexpr int kItems = kDepth / kStep;

  int channel;
  float4 values[kItems];

  __device__ WeightTile(const Shape& shape, int begin)
      : channel(min(begin + static_cast<int>(threadIdx.x) % kAcross * 4, shape.padded_out_channels - 4)) {}

  __device__ void Load(const Shape& shape, const float* weight, int column) {
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      const int k = column + threadIdx.x / kAcross + i * kStep;
      const auto* const from =
          reinterpret_cast<const float4*>(weight + int64_t{k} * shape.padded_out_channels + channel);
      values[i] = k < shape.depth ? __ldg(from) : float4{0, 0, 0, 0};
    }
  }
  template <int kStride>
  __device__ void Store(float (*tile)[kStride]) const {
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      *reinterpret_cast<float4*>(&tile[threadIdx.x / kAcross + i * kStep][threadIdx.x % kAcross * 4]) = values[i];
    }
  }
};

// The i-th of a thread's kPart positions or channels: two runs of four, half a tile apart, so that a warp's reads of
// shared memory meet in no bank.
template <int kSize>
__device__ int PartAt(int thread, int i) {
  return thread * 4 + i / 4 * (kSize / 2) + i % 4;
}

template <int kSize>
__device__ void ReadPart(const float* row, int thread, float (&part)[kPart]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float4 four = *reinterpret_cast<const float4*>(row + thread * 4 + half * (kSize / 2));
    part[half * 4] = four.x, part[half * 4 + 1] = four.y, part[half * 4 + 2] = four.z, part[half * 4 + 3] = four.w;
  }
}

// What is added to a sum.
__device__ float WithBiasAndResidual(const Operands& operands, float sum, int channel, int64_t at) {
  if (operands.bias != nullptr) sum += operands.bias[channel];
  if (operands.residual != nullptr) sum += operands.residual[at];
  return sum;
}

// A position's sums, of a thread's channels from `channel0`'s tile on, to this split's place. Spare positions of kRows
// are written too, in whole vectors.
template <Layout kLayout, int kChannels, typename Function>
__device__ void StorePosition(const Shape& shape, const Operands& operands, const Ending<Function>& ending,
                              int64_t position, int channel0, int across, float (&sums)[kPart]) {
  if (position >= (kLayout == Layout::kRows ? shape.out_stride : shape.positions)) return;
  const auto channel = [&](int c) { return channel0 + PartAt<kChannels>(across, c); };
  const auto place = [&](int c) {
    return kLayout == Layout::kRows ? channel(c) * shape.out_stride + position
                                    : position * shape.out_channels + channel(c);
  };
  if (operands.split_stride == 0) {
#pragma unroll
    for (int c = 0; c < kPart; ++c) {
      if (channel(c) < shape.out_channels) sums[c] = WithBiasAndResidual(operands, sums[c], channel(c), place(c));
    }
    ending.template Apply<float>(sums);
  }
  float* const output = operands.output + blockIdx.z * operands.split_stride;
#pragma unroll
  for (int c = 0; c < kPart; ++c) {
    if (channel(c) < shape.out_channels) output[place(c)] = sums[c];
  }
}

// sums[position][channel]. A function's code is there once: what it is applied to goes through local memory.
template <Layout kLayout, int kPositions, int kChannels, typename Function>
__device__ void StoreSums(const Shape& shape, const Operands& operands, const Ending<Function>& ending,
                          float (&sums)[kPart][kPart], int position0, int channel0, int across, int down) {
  const auto store = [&](int p, float(&of_position)[kPart]) {
    const int64_t position = position0 + PartAt<kPositions>(down, p);
    StorePosition<kLayout, kChannels>(shape, operands, ending, position, channel0, across, of_position);
  };
  if constexpr (std::is_same_v<Function, NoFunction>) {
#pragma unroll
    for (int p = 0; p < kPart; ++p) store(p, sums[p]);
  } else {
    float local[kPart][kPart];
#pragma unroll
    for (int i = 0; i < kPart * kPart; ++i) local[i / kPart][i % kPart] = sums[i / kPart][i % kPart];
#pragma unroll 1
    for (int p = 0; p < kPart; ++p) store(p, local[p]);
  }
}

// Blocks: x over positions, y over output channels, z over splits of the columns.
template <Layout kLayout, int kVector, int kPositions, int kChannels, typename Function>
__global__ __launch_bounds__(kPositions* kChannels / (kPart * kPart)) void ConvTiles(Shape shape, Operands operands,
                                                                                     Ending<Function> ending) {
  constexpr int kThreads = kPositions * kChannels / (kPart * kPart);
  using InputTile = std::conditional_t<kLayout == Layout::kRows, RowsTile<kPositions, kThreads, kVector>,
                                       NhwcTile<kPositions, kThreads, kVector>>;
  __shared__ __align__(16) float inputs[2][kDepth][kPositions + 4];
  __shared__ __align__(16) float weights[2][kDepth][kChannels];
  const int position0 = blockIdx.x * kPositions, channel0 = blockIdx.y * kChannels;
  const int across = threadIdx.x % (kChannels / kPart), down = threadIdx.x / (kChannels / kPart);
  InputTile input(shape, position0);
  WeightTile<kChannels, kThreads> weight(shape, channel0);
  const int first = blockIdx.z * shape.steps_per_split * kDepth;
  const int last = min(first + shape.steps_per_split * kDepth, shape.depth);
  float sums[kPart][kPart] = {};
  input.Load(shape, operands.input, first);
  weight.Load(shape, operands.weight, first);
  input.Store(inputs[0]);
  weight.Store(weights[0]);
  __syncthreads();
  int turn = 0;
  for (int column = first; column < last; column += kDepth, turn ^= 1) {
    const bool more = column + kDepth < last;
    if (more) {
      input.Load(shape, operands.input, column + kDepth);
      weight.Load(shape, operands.weight, column + kDepth);
    }
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
      float x[kPart], w[kPart];
      ReadPart<kPositions>(inputs[turn][k], down, x);
      ReadPart<kChannels>(weights[turn][k], across, w);
#pragma unroll
      for (int p = 0; p < kPart; ++p) {
#pragma unroll
        for (int c = 0; c < kPart; ++c) sums[p][c] = fmaf(x[p], w[c], sums[p][c]);
      }
    }
    if (more) {
      input.Store(inputs[turn ^ 1]);
      weight.Store(weights[turn ^ 1]);
    }
    __syncthreads();
  }
  StoreSums<kLayout, kPositions, kChannels>(shape, operands, ending, sums, position0, channel0, across, down);
}

// output = what is left to do of the sum of all splits, for `count` elements in a layout whose channel is
// at / channel_stride % out_channels.
template <typename Function>
__global__ void AddSplits(const float* partial, Operands operands, int splits, int64_t split_stride, int64_t count,
                          int64_t channel_stride, int out_channels, Ending<Function> ending) {
  const int64_t at = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (at >= count) return;
  float sum[1] = {};
  for (int split = 0; split < splits; ++split) sum[0] += partial[split * split_stride + at];
  sum[0] = WithBiasAndResidual(operands, sum[0], static_cast<int>(at / channel_stride % out_channels), at);
  ending.template Apply<float>(sum);
  operands.output[at] = sum[0];
}

class SimtWeight final : public PackedWeight {
 public:
  SimtWeight(DeviceArray<float> matrix, DeviceArray<float> bias) : matrix_(std::move(matrix)), bias_(std::move(bias)) {}
  const float* matrix() const { return matrix_.data(); }
  const float* bias() const { return bias_.data(); }
  size_t bytes() const override { return matrix_.bytes() + bias_.bytes(); }

 private:
  const DeviceArray<float> matrix_;  // [taps * channels][output channels, to a multiple of 4]
  const DeviceArray<float> bias_;
};

int64_t PaddedChannels(int64_t channels) { return RoundUp(channels, 4); }

SimtCut CutInto(int positions, int channels, const Problem& problem, const SimtRoom& room) {
  SimtCut cut = {
      positions, channels, CeilDiv(problem.output.positions(), positions), CeilDiv(problem.output.channels, channels),
      1,         0};
  const int64_t depth = problem.input.channels * problem.window().taps();
  const int64_t steps = CeilDiv(depth, kDepth), tiles = cut.tiles_across * cut.tiles_down;
  const int64_t threads = tiles * positions * channels / (kPart * kPart);
  const int64_t fitting = std::min(kFillingThreads * room.multiprocessors / threads, room.most_splits);
  const int64_t wanted = std::max<int64_t>(std::min(fitting, steps / kFewestSteps), 1);
  cut.steps_per_split = CeilDiv(steps, wanted);
  cut.splits = CeilDiv(steps, cut.steps_per_split);
  return cut;
}

template <Layout kLayout, int kVector, typename Function>
void Launch(const SimtCut& cut, const Shape& shape, const Operands& operands, const Ending<Function>& ending,
            cudaStream_t queue) {
  auto* const kernel = cut.channels == 128    ? ConvTiles<kLayout, kVector, 128, 128, Function>
                       : cut.positions == 128 ? ConvTiles<kLayout, kVector, 128, 64, Function>
                                              : ConvTiles<kLayout, kVector, 64, 64, Function>;
  const LaunchGrid grid(cut.tiles_across, cut.tiles_down, cut.splits);
  kernel<<<grid, cut.positions * cut.channels / (kPart * kPart), 0, queue>>>(shape, operands, ending);
}

Shape ShapeOf(const Problem& problem, const SimtCut& cut) {
  const Extent &in = problem.input, &out = problem.output;
  const auto channels = static_cast<int>(in.channels);
  return {channels,
          static_cast<int>(in.height),
          static_cast<int>(in.width),
          static_cast<int>(out.height),
          static_cast<int>(out.width),
          static_cast<int>(out.channels),
          static_cast<int>(PaddedChannels(out.channels)),
          channels * static_cast<int>(problem.window().taps()),
          static_cast<int>(out.positions()),
          RowStride(in.positions()),
          RowStride(out.positions()),
          static_cast<int>(cut.steps_per_split),
          problem.window()};
}

// Of the sums of one split.
template <Layout kLayout>
size_t SplitBytes(const Problem& problem) {
  return static_cast<size_t>(LayoutElements(problem.output, kLayout)) * sizeof(float);
}

}  // namespace

// Large tiles read less; small ones leave fewer multiprocessors idle.
SimtCut CutForSimt(const Problem& problem, const SimtRoom& room) {
  const int64_t filling = kFillingBlocks * room.multiprocessors;
  const SimtCut large = CutInto(128, 128, problem, room), middle = CutInto(128, 64, problem, room);
  if (problem.output.channels > 64 && large.tiles_across * large.tiles_down >= filling) return large;
  if (middle.tiles_across * middle.tiles_down >= filling) return middle;
  return CutInto(64, 64, problem, room);
}

// Kernels do not go on from one tile of channels to the next.
bool AcceptsConvSimt(const Problem& problem) { return problem.output.channels <= LaunchGrid::kMostDown * 64; }

StatusOr<std::unique_ptr<PackedWeight>> PrepareConvSimt(const Weight& weight, const Problem& problem) {
  const DenseMatrix matrix = weight.ToDense();
  const int64_t taps = problem.window().taps();
  const int64_t channels = problem.input.channels, padded = PaddedChannels(matrix.rows);
  std::vector<float> columns(matrix.cols * padded);
  for (int64_t row = 0; row < matrix.rows; ++row) {
    for (int64_t channel = 0; channel < channels; ++channel) {
      for (int64_t tap = 0; tap < taps; ++tap) {
        columns[(tap * channels + channel) * padded + row] = matrix.values[row * matrix.cols + channel * taps + tap];
      }
    }
  }
  SWIZZLE_ASSIGN_OR_RETURN(DeviceArray<float> packed, DeviceArray<float>::Upload(columns));
  SWIZZLE_ASSIGN_OR_RETURN(DeviceArray<float> bias, DeviceArray<float>::Upload(weight.bias));
  return std::make_unique<SimtWeight>(std::move(packed), std::move(bias));
}

template <Layout kLayout>
size_t ConvSimtWorkspaceBytes(const Problem& problem) {
  const int64_t splits = CutForSimt(problem, {.multiprocessors = CurrentDeviceFacts().speed.multiprocessors}).splits;
  return splits == 1 ? 0 : static_cast<size_t>(splits) * SplitBytes<kLayout>(problem);
}

template <Layout kLayout>
void ConvSimt(const KernelArgs& args, Stream& stream) {
  const Problem& problem = *args.problem;
  const auto& weight = static_cast<const SimtWeight&>(*args.weight);
  const cudaStream_t queue = QueueOf(stream);
  // Whoever planned may have asked another device, and made room for fewer splits.
  const auto most_splits = static_cast<int64_t>(args.workspace.size() / SplitBytes<kLayout>(problem));
  const SimtCut cut = CutForSimt(problem, {MultiprocessorsOf(stream), most_splits});
  const Shape shape = ShapeOf(problem, cut);
  const Operands finished = {args.Input<float>(0),   weight.matrix(),      weight.bias(),
                             args.Residual<float>(), args.Output<float>(), 0};
  constexpr int kWhole = kLayout == Layout::kRows ? kDepth : 4;
  const auto launch = [&](const Operands& operands, const auto& ending) {
    if (problem.input.channels % kWhole == 0) return Launch<kLayout, 4>(cut, shape, operands, ending, queue);
    Launch<kLayout, 1>(cut, shape, operands, ending, queue);
  };
  if (cut.splits == 1) {
    return WithEnding(problem.epilogue, [&](const auto& ending) { launch(finished, ending); });
  }
  auto* const partial = reinterpret_cast<float*>(args.workspace.data());
  const int64_t count = LayoutElements(problem.output, kLayout);
  Operands split = finished;
  split.output = partial;
  split.split_stride = count;
  launch(split, Ending<NoFunction>(problem.epilogue));
  constexpr int kThreads = 256;
  const int64_t channel_stride = kLayout == Layout::kRows ? RowStride(problem.output.positions()) : 1;
  WithEnding(problem.epilogue, [&](const auto& ending) {
    AddSplits<<<LaunchGrid::OfThreads(count, kThreads), kThreads, 0, queue>>>(
        partial, finished, static_cast<int>(cut.splits), count, count, channel_stride,
        static_cast<int>(problem.output.channels), ending);
  });
}

template size_t ConvSimtWorkspaceBytes<Layout::kNhwc>(const Problem&);
template size_t ConvSimtWorkspaceBytes<Layout::kRows>(const Problem&);
template void ConvSimt<Layout::kNhwc>(const KernelArgs&, Stream&);
template void ConvSimt<Layout::kRows>(const KernelArgs&, Stream&);

}  // namespace swizzle::cuda

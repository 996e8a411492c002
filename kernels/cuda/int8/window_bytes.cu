#include <utility>
#include <vector>

#include "kernels/cuda/int8/byte_layer.h"
#include "kernels/cuda/int8/sum_ends.cuh"
#include "kernels/cuda/int8/window_bytes.h"
#include "kernels/cuda/runtime/dependent_launch.cuh"
#include "kernels/cuda/window/planes.cuh"

namespace swizzle::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kWarp = 32;
constexpr int kFour = 4;

struct WindowOperands {
  const uint8_t* input;
  const int8_t* taps;  // of depthwise convolutions: [tap][channels, filled up to four]
  int32_t tap_stride;
  PlaneStrides in, out;
  PlaneParts parts;
  DeviceWindow window;
  int32_t fill;   // what lies outside
  int32_t start;  // of averages; of depthwise convolutions `ends` has them
  float scale;
  StoreBytes ends;
};

// What is done with the elements of a window.
struct Weighted {
  static constexpr bool kHasTaps = true;
  __device__ static int32_t Join(int32_t sum, int32_t value, int32_t weight) { return sum + value * weight; }
};
struct Summed {
  static constexpr bool kHasTaps = false;
  __device__ static int32_t Join(int32_t sum, int32_t value, int32_t) { return sum + value; }
};
struct Largest {
  static constexpr bool kHasTaps = false;
  __device__ static int32_t Join(int32_t most, int32_t value, int32_t) { return max(most, value); }
};

// A thread has kLanes neighbouring elements of the output: channels in kNhwc, positions of a line in kRows.
template <Layout kLayout>
constexpr bool kOfChannels = kLayout == Layout::kNhwc;

// As kLanes bytes, of which the first `count` are there.
template <int kLanes>
__device__ uint32_t LoadLanes(const uint8_t* from, int count, bool whole) {
  if constexpr (kLanes == 1) return *from;
  if (whole) return *reinterpret_cast<const uint32_t*>(from);
  uint32_t word = 0;
  for (int i = 0; i < count; ++i) word |= uint32_t{from[i]} << 8 * i;
  return word;
}
template <int kLanes>
__device__ void StoreLanes(uint8_t* to, uint32_t word, int count, bool whole) {
  if constexpr (kLanes == 1) {
    *to = static_cast<uint8_t>(word);
  } else if (whole) {
    *reinterpret_cast<uint32_t*>(to) = word;
  } else {
    for (int i = 0; i < count; ++i) to[i] = static_cast<uint8_t>(word >> 8 * i);
  }
}

// The weights of a tap, a byte for each channel that a thread has.
template <int kLanes, bool kChannels>
__device__ uint32_t TapOf(const WindowOperands& op, uint32_t channel, int tap) {
  const int8_t* const from = op.taps + int64_t{tap} * op.tap_stride + channel;
  if constexpr (kChannels && kLanes == kFour) return __ldg(reinterpret_cast<const uint32_t*>(from));
  return static_cast<uint8_t>(__ldg(from));
}
template <int kLanes, bool kChannels>
__device__ int32_t WeightOf(uint32_t tap, int lane) {
  return static_cast<int8_t>(kChannels && kLanes == kFour ? tap >> 8 * lane : tap);
}

// Of any window.
template <bool kChannels, int kLanes, typename Reduce>
__device__ void JoinAny(const WindowOperands& op, const PlanePart& part, int32_t x, int32_t (&sums)[1][kLanes]) {
  const uint8_t* const plane = op.input + op.in.At(part.channel, part.image);
  const DeviceWindow& window = op.window;
  for (int i = 0, tap = 0; i < window.kernel_h; ++i) {
    const int32_t row = part.y * window.stride_h - window.pad_top + i * window.dilation_h;
    const bool row_inside = row >= 0 && row < op.in.height;
    for (int j = 0; j < window.kernel_w; ++j, ++tap) {
      const uint32_t weights = Reduce::kHasTaps ? TapOf<kLanes, kChannels>(op, part.channel, tap) : 0;
      uint32_t word = 0;
#pragma unroll
      for (int lane = 0; lane < kLanes; ++lane) {
        const int32_t column = (x + (kChannels ? 0 : lane)) * window.stride_w - window.pad_left + j * window.dilation_w;
        const bool inside = row_inside && column >= 0 && column < op.in.width;
        const int64_t at = (int64_t{row} * op.in.width + column) * op.in.position;
        int32_t value = op.fill;
        if constexpr (kChannels && kLanes == kFour) {
          if (lane == 0 && inside) word = *reinterpret_cast<const uint32_t*>(plane + at);
          if (inside) value = static_cast<int32_t>(word >> 8 * lane & 0xFF);
        } else {
          if (inside) value = plane[at];
        }
        sums[0][lane] = Reduce::Join(sums[0][lane], value, WeightOf<kLanes, kChannels>(weights, lane));
      }
    }
  }
}

// Of 3x3, for kRows rows of the output at once, which read each row of the input once.
template <bool kChannels, int kLanes, int kStride, int kRows, typename Reduce>
__device__ void Join3x3(const WindowOperands& op, const PlanePart& part, int32_t x, int32_t (&sums)[kRows][kLanes]) {
  constexpr int kSide = 3, kTaps = kSide * kSide, kInputRows = (kRows - 1) * kStride + kSide;
  constexpr int kLine = kChannels ? kSide : (kLanes - 1) * kStride + kSide;  // elements across, of an input row
  const uint8_t* const plane = op.input + op.in.At(part.channel, part.image);
  uint32_t taps[kTaps] = {};
  if constexpr (Reduce::kHasTaps) {
#pragma unroll
    for (int i = 0; i < kTaps; ++i) taps[i] = TapOf<kLanes, kChannels>(op, part.channel, i);
  }
  const int32_t first_row = part.y * kStride - op.window.pad_top, first_column = x * kStride - op.window.pad_left;
  const uint32_t fill = static_cast<uint32_t>(op.fill) * (kChannels && kLanes == kFour ? 0x01010101u : 1u);
#pragma unroll
  for (int i = 0; i < kInputRows; ++i) {
    const int32_t row = first_row + i;
    uint32_t line[kLine];
#pragma unroll
    for (int j = 0; j < kLine; ++j) {
      const int32_t column = first_column + j;
      line[j] = fill;
      if (row < 0 || row >= op.in.height || column < 0 || column >= op.in.width) continue;
      const uint8_t* const from = plane + (int64_t{row} * op.in.width + column) * op.in.position;
      if constexpr (kChannels && kLanes == kFour) {
        line[j] = *reinterpret_cast<const uint32_t*>(from);
      } else {
        line[j] = *from;
      }
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int tap_row = i - r * kStride;
      if (tap_row < 0 || tap_row >= kSide) continue;
#pragma unroll
      for (int j = 0; j < kSide; ++j) {
        const uint32_t weights = taps[tap_row * kSide + j];
#pragma unroll
        for (int lane = 0; lane < kLanes; ++lane) {
          const uint32_t value = kChannels ? line[j] >> 8 * lane & 0xFF : line[lane * kStride + j];
          sums[r][lane] =
              Reduce::Join(sums[r][lane], static_cast<int32_t>(value), WeightOf<kLanes, kChannels>(weights, lane));
        }
      }
    }
  }
}

// kStride: of windows of 3x3; 0: of any window, and one row.
template <Layout kLayout, int kLanes, int kStride, int kRows, typename Reduce>
__global__ void __launch_bounds__(kThreads) SlideBytes(const __grid_constant__ WindowOperands op) {
  constexpr bool kChannels = kOfChannels<kLayout>;
  LetNextStart();
  PlanePart part;
  if (!op.parts.Take(blockIdx.x * kThreads + threadIdx.x, part)) return;
  const int32_t x = kChannels ? part.x : part.x * kLanes;
  WaitForResults();
  int32_t sums[kRows][kLanes] = {};
  if constexpr (kStride == 0) {
    JoinAny<kChannels, kLanes, Reduce>(op, part, x, sums);
  } else {
    Join3x3<kChannels, kLanes, kStride, kRows, Reduce>(op, part, x, sums);
  }
  const int count = kChannels ? kLanes : min(kLanes, op.out.width - x);
  const bool whole = kChannels || op.out.width % kLanes == 0;
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    if (part.y + r >= op.out.height) return;
    const int64_t at = op.out.At(part.channel, part.image) + (int64_t{part.y + r} * op.out.width + x) * op.out.position;
    const uint32_t added = op.ends.residual == nullptr ? 0 : LoadLanes<kLanes>(op.ends.residual + at, count, whole);
    uint32_t word = 0;
#pragma unroll
    for (int lane = 0; lane < kLanes; ++lane) {
      const uint32_t channel = part.channel + (kChannels ? lane : 0);
      uint32_t byte;
      if constexpr (std::is_same_v<Reduce, Largest>) {
        byte = static_cast<uint32_t>(min(max(sums[r][lane], op.ends.steps.low), op.ends.steps.high));
      } else {
        const int32_t start = Reduce::kHasTaps ? __ldg(op.ends.start + channel) : op.start;
        const float scale = Reduce::kHasTaps ? __ldg(op.ends.scale + channel) : op.scale;
        byte = op.ends.ByteOf(sums[r][lane] + start, scale, added >> 8 * lane & 0xFF);
      }
      word |= byte << 8 * lane;
    }
    StoreLanes<kLanes>(op.ends.y + at, word, count, whole);
  }
}

// The average of a plane: a warp for each of kRows; in kNhwc its lanes have a channel each, and warps share positions.
__global__ void __launch_bounds__(kThreads) AverageRowPlanes(const __grid_constant__ WindowOperands op) {
  LetNextStart();
  PlanePart part;
  if (!op.parts.Take(blockIdx.x * (kThreads / kWarp) + threadIdx.x / kWarp, part)) return;
  WaitForResults();
  const uint8_t* const plane = op.input + op.in.At(part.channel, part.image);
  const int32_t positions = op.in.height * op.in.width;
  int32_t sum = 0;
  for (int32_t i = threadIdx.x % kWarp; i < positions; i += kWarp) sum += plane[i];
#pragma unroll
  for (int step = kWarp / 2; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  if (threadIdx.x % kWarp != 0) return;
  op.ends.y[op.out.At(part.channel, part.image)] = static_cast<uint8_t>(op.ends.ByteOf(sum + op.start, op.scale, 0));
}

__global__ void __launch_bounds__(kThreads)
    AverageNhwcPlanes(const __grid_constant__ WindowOperands op, int32_t channels, uint32_t images) {
  constexpr int kWarps = kThreads / kWarp;
  __shared__ int32_t parts[kWarps][kWarp];
  LetNextStart();
  WaitForResults();
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const auto channel = static_cast<int32_t>(blockIdx.x) * kWarp + lane;
  const bool inside = channel < channels;
  const int32_t positions = op.in.height * op.in.width;
  for (uint32_t image = blockIdx.y; image < images; image += gridDim.y) {
    int32_t sum = 0;
    if (inside) {
      const uint8_t* const plane = op.input + op.in.At(channel, image);
#pragma unroll 8
      for (int32_t i = warp; i < positions; i += kWarps) sum += plane[int64_t{i} * op.in.position];
    }
    parts[warp][lane] = sum;
    __syncthreads();
    if (warp == 0 && inside) {
      for (int i = 1; i < kWarps; ++i) sum += parts[i][lane];
      op.ends.y[op.out.At(channel, image)] = static_cast<uint8_t>(op.ends.ByteOf(sum + op.start, op.scale, 0));
    }
    __syncthreads();
  }
}

class TapWeight final : public PackedWeight {
 public:
  TapWeight(DeviceArray<int8_t> taps, int32_t stride, RowEnds ends)
      : taps_(std::move(taps)), stride_(stride), ends_(std::move(ends)) {}
  size_t bytes() const override { return taps_.bytes() + ends_.bytes(); }
  const int8_t* taps() const { return taps_.data(); }
  int32_t stride() const { return stride_; }
  const RowEnds& ends() const { return ends_; }

 private:
  const DeviceArray<int8_t> taps_;
  const int32_t stride_;
  const RowEnds ends_;
};

WindowOperands OperandsOf(const KernelArgs& args, Layout layout, int lanes, int rows) {
  const Problem& problem = *args.problem;
  Extent parts = problem.output;
  if (layout == Layout::kRows) parts.width = CeilDiv(parts.width, lanes);
  const OutputSteps steps = StepsOf(problem);
  return {.input = args.Input<uint8_t>(0),
          .taps = nullptr,
          .tap_stride = 0,
          .in = PlaneStrides::Of(problem.input, layout),
          .out = PlaneStrides::Of(problem.output, layout),
          .parts = PlaneParts(parts, layout, rows, layout == Layout::kRows ? 1 : lanes),
          .window = DeviceWindow(problem.window()),
          .fill = 0,
          .start = 0,
          .scale = 0,
          .ends = {args.Output<uint8_t>(), args.Residual<uint8_t>(), nullptr, nullptr, steps}};
}

int StrideOf3x3(const Window& window) {
  const bool square = window.kernel_h == 3 && window.kernel_w == 3 && window.dilation_h == 1 && window.dilation_w == 1;
  return square && window.stride_h == window.stride_w && window.stride_h <= 2 ? window.stride_h : 0;
}

// change(operands) adds what the operator has beside.
template <Layout kLayout, int kLanes, typename Reduce, typename Change>
void Slide(const KernelArgs& args, Stream& stream, const Change& change) {
  constexpr int kRowsOfOne = 4, kRowsOfTwo = 2;
  const auto run = [&](auto* kernel, int rows) {
    WindowOperands operands = OperandsOf(args, kLayout, kLanes, rows);
    change(operands);
    LaunchDependent(kernel, LaunchGrid::OfThreads(operands.parts.count(), kThreads), kThreads, 0, QueueOf(stream),
                    operands);
  };
  switch (StrideOf3x3(args.problem->window())) {
    case 1:
      return run(SlideBytes<kLayout, kLanes, 1, kRowsOfOne, Reduce>, kRowsOfOne);
    case 2:
      return run(SlideBytes<kLayout, kLanes, 2, kRowsOfTwo, Reduce>, kRowsOfTwo);
    default:
      return run(SlideBytes<kLayout, kLanes, 0, 1, Reduce>, 1);
  }
}
template <Layout kLayout, typename Reduce, typename Change>
void Slide(const KernelArgs& args, Stream& stream, const Change& change) {
  if constexpr (kOfChannels<kLayout>) {
    if (args.problem->output.channels % kFour != 0) return Slide<kLayout, 1, Reduce>(args, stream, change);
  }
  Slide<kLayout, kFour, Reduce>(args, stream, change);
}

bool CoversPlane(const Problem& problem) {
  const Window& window = problem.window();
  return window.kernel_h == problem.input.height && window.kernel_w == problem.input.width &&
         problem.output.plane() == 1 && window.pad_top + window.pad_left + window.pad_bottom + window.pad_right == 0;
}

template <Layout kLayout>
bool Keeps(const Problem& problem) {
  return ReadsBytes(problem, kLayout) && WritesBytes(problem, kLayout) && !problem.epilogue.function &&
         CountsFit(problem);
}

}  // namespace

template <Layout kLayout>
bool AcceptsDepthwiseBytes(const Problem& problem) {
  return Keeps<kLayout>(problem) && !problem.epilogue.function &&
         (!problem.epilogue.residual || problem.inputs_as[1].dtype == DType::kUint8);
}

template <Layout kLayout>
bool AcceptsMaxPoolBytes(const Problem& problem) {
  return Keeps<kLayout>(problem) && !problem.epilogue.residual && problem.inputs_as[0] == *problem.epilogue.requantise;
}

template <Layout kLayout>
bool AcceptsAveragePoolBytes(const Problem& problem) {
  constexpr int64_t kMostTaps = 1 << 23;  // whose sum fits 32 bits
  const Window& window = problem.window();
  const bool padded = window.pad_top + window.pad_left + window.pad_bottom + window.pad_right > 0;
  return Keeps<kLayout>(problem) && !problem.epilogue.residual && (window.count_include_pad || !padded) &&
         window.taps() < kMostTaps;
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareDepthwiseBytes(const Weight& weight, const Problem& problem) {
  SWIZZLE_ASSIGN_OR_RETURN(const ByteWeight bytes, MakeByteWeight(weight, problem));
  const int64_t stride = RoundUp(bytes.rows, int64_t{kFour});
  std::vector<int8_t> taps(stride * bytes.cols);
  for (int64_t row = 0; row < bytes.rows; ++row) {
    for (const ByteWeight::Entry& entry : bytes.entries[row]) taps[entry.column * stride + row] = entry.value;
  }
  SWIZZLE_ASSIGN_OR_RETURN(auto uploaded, DeviceArray<int8_t>::Upload(taps));
  SWIZZLE_ASSIGN_OR_RETURN(RowEnds ends, RowEnds::Make(bytes, 0));
  return std::make_unique<TapWeight>(std::move(uploaded), static_cast<int32_t>(stride), std::move(ends));
}

template <Layout kLayout>
void DepthwiseBytes(const KernelArgs& args, Stream& stream) {
  const auto& weight = static_cast<const TapWeight&>(*args.weight);
  const SumEnds ends = weight.ends().Of(args);
  Slide<kLayout, Weighted>(args, stream, [&](WindowOperands& operands) {
    operands.taps = weight.taps();
    operands.tap_stride = weight.stride();
    operands.fill = args.problem->inputs_as[0].zero_point;
    operands.ends.start = ends.start;
    operands.ends.scale = ends.scale;
  });
}

template <Layout kLayout>
void MaxPoolBytes(const KernelArgs& args, Stream& stream) {
  Slide<kLayout, Largest>(args, stream, [](WindowOperands&) {});
}

template <Layout kLayout>
void AveragePoolBytes(const KernelArgs& args, Stream& stream) {
  const Problem& problem = *args.problem;
  const auto count = static_cast<int32_t>(problem.window().taps());
  const Quantised &input = problem.inputs_as[0], &output = *problem.epilogue.requantise;
  const auto of_average = [&](WindowOperands& operands) {
    operands.fill = input.zero_point;
    operands.start = -count * input.zero_point;
    operands.scale = input.scale / (output.scale * static_cast<float>(count));
  };
  if (!CoversPlane(problem)) return Slide<kLayout, Summed>(args, stream, of_average);
  WindowOperands operands = OperandsOf(args, kLayout, 1, 1);
  of_average(operands);
  if (kLayout == Layout::kRows) {
    LaunchDependent(AverageRowPlanes, LaunchGrid::OfThreads(operands.parts.count(), kThreads / kWarp), kThreads, 0,
                    QueueOf(stream), operands);
  } else {
    const LaunchGrid grid(CeilDiv(problem.output.channels, kWarp), problem.output.batch);
    LaunchDependent(AverageNhwcPlanes, grid, kThreads, 0, QueueOf(stream), operands,
                    static_cast<int32_t>(problem.output.channels), static_cast<uint32_t>(problem.output.batch));
  }
}

#define SWIZZLE_INSTANTIATE(layout)                                 \
  template bool AcceptsDepthwiseBytes<layout>(const Problem&);      \
  template bool AcceptsMaxPoolBytes<layout>(const Problem&);        \
  template bool AcceptsAveragePoolBytes<layout>(const Problem&);    \
  template void DepthwiseBytes<layout>(const KernelArgs&, Stream&); \
  template void MaxPoolBytes<layout>(const KernelArgs&, Stream&);   \
  template void AveragePoolBytes<layout>(const KernelArgs&, Stream&)
SWIZZLE_INSTANTIATE(Layout::kRows);
SWIZZLE_INSTANTIATE(Layout::kNhwc);
#undef SWIZZLE_INSTANTIATE

}  // namespace swizzle::cuda

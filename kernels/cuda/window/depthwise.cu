#include <vector>

#include "kernels/cuda/runtime/dependent_launch.cuh"
#include "kernels/cuda/runtime/device_array.h"
#include "kernels/cuda/runtime/epilogue.cuh"
#include "kernels/cuda/runtime/instantiate.h"
#include "kernels/cuda/window/depthwise.h"
#include "kernels/cuda/window/planes.cuh"

namespace swizzle::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kTapUnit = 4;  // taps of a channel are read in such packs

// Taps and, after the last, the bias, of each channel: [channels][taps], in kNhwc [taps][channels].
class DepthwiseWeight final : public PackedWeight {
 public:
  explicit DepthwiseWeight(DeviceArray<float> values) : values_(std::move(values)) {}
  size_t bytes() const override { return values_.bytes(); }
  const float* data() const { return values_.data(); }

 private:
  const DeviceArray<float> values_;
};

// Where (channel, tap) lies in that.
struct TapStrides {
  int32_t channel;
  int32_t tap;

  static TapStrides Of(Layout layout, int64_t channels, int64_t taps) {
    if (layout == Layout::kNhwc) return {1, static_cast<int32_t>(channels)};
    return {static_cast<int32_t>(CeilDiv(taps + 1, kTapUnit) * kTapUnit), 1};
  }
};

template <typename T>
struct Operands {
  const T* input;
  const float* taps;
  const T* residual;  // or null
  T* output;
  PlaneStrides in, out;
  TapStrides tap_strides;
  PlaneParts parts;
  DeviceWindow window;
  Clamp clamp;
};

// output[offset] = clamp(sums + residual) for one pack.
template <int kPack, typename T>
__device__ void StoreSums(const Operands<T>& op, float (&sums)[kPack], int64_t offset) {
  if (op.residual != nullptr) {
    float more[kPack];
    LoadPack<kPack>(op.residual + offset, more);
#pragma unroll
    for (int c = 0; c < kPack; ++c) sums[c] += more[c];
  }
#pragma unroll
  for (int c = 0; c < kPack; ++c) sums[c] = op.clamp(sums[c]);
  StorePack<kPack>(sums, op.output + offset);
}

// The nine taps and the bias of a pack of channels, or of one whose images are a pack.
template <int kChannels>
struct Taps3x3 {
  float values[12][kChannels];

  __device__ Taps3x3(const float* from, int32_t tap_stride) {
    if constexpr (kChannels == 1) {
      if (tap_stride == 1) {
#pragma unroll
        for (int i = 0; i < 12; i += kTapUnit) {
          float four[kTapUnit];
          LoadPack<kTapUnit>(from + i, four);
#pragma unroll
          for (int j = 0; j < kTapUnit; ++j) values[i + j][0] = four[j];
        }
        return;
      }
    }
#pragma unroll
    for (int i = 0; i < 10; ++i) LoadPack<kChannels>(from + int64_t{i} * tap_stride, values[i]);
  }
  // Of number c of the pack.
  __device__ float Of(int i, int c) const { return values[i][kChannels == 1 ? 0 : c]; }
};

// kRows output rows a thread, of one pack and one column. A pack is of kChannels channels, or of one channel's images.
template <int kPack, int kChannels, int kStride, int kRows, typename T>
__global__ void __launch_bounds__(kThreads) Depthwise3x3(const __grid_constant__ Operands<T> op) {
  LetNextStart();
  PlanePart part;
  if (!op.parts.Take(blockIdx.x * kThreads + threadIdx.x, part)) return;
  const Taps3x3<kChannels> taps(op.taps + int64_t{part.channel} * op.tap_strides.channel, op.tap_strides.tap);
  WaitForResults();
  float sums[kRows][kPack];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
#pragma unroll
    for (int c = 0; c < kPack; ++c) sums[r][c] = taps.Of(9, c);
  }
  const T* plane = op.input + op.in.At(part.channel, part.image);
  const int32_t first_row = part.y * kStride - op.window.pad_top, first_column = part.x * kStride - op.window.pad_left;
#pragma unroll
  for (int i = 0; i < (kRows - 1) * kStride + 3; ++i) {
    const int32_t row = first_row + i;
    float values[3][kPack] = {};
#pragma unroll
    for (int j = 0; j < 3; ++j) {
      const int32_t column = first_column + j;
      if (row < 0 || row >= op.in.height || column < 0 || column >= op.in.width) continue;
      LoadPack<kPack>(plane + int64_t{row * op.in.width + column} * op.in.position, values[j]);
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int tap_row = i - r * kStride;
      if (tap_row < 0 || tap_row > 2) continue;
#pragma unroll
      for (int j = 0; j < 3; ++j) {
#pragma unroll
        for (int c = 0; c < kPack; ++c) sums[r][c] = fmaf(values[j][c], taps.Of(3 * tap_row + j, c), sums[r][c]);
      }
    }
  }
  const int64_t to = op.out.At(part.channel, part.image);
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    if (part.y + r >= op.out.height) return;
    StoreSums(op, sums[r], to + int64_t{(part.y + r) * op.out.width + part.x} * op.out.position);
  }
}

// The same in kRows, for kRows rows of kColumns output columns a thread: each line of the input is read in packs, with
// one neighbour left or right of them, so that an element is loaded about once and not once for each column of the
// window. Lines start on packs, and the input is kStride times as wide as the output.
template <int kColumns, int kStride, int kPadLeft, int kRows, typename T>
__global__ void __launch_bounds__(kThreads) DepthwiseLines3x3(const __grid_constant__ Operands<T> op) {
  static_assert(kStride == 2 || kPadLeft == 1);
  constexpr int kWidth = kStride * kColumns;  // of the input
  LetNextStart();
  PlanePart part;
  if (!op.parts.Take(blockIdx.x * kThreads + threadIdx.x, part)) return;
  const Taps3x3<1> taps(op.taps + int64_t{part.channel} * op.tap_strides.channel, op.tap_strides.tap);
  WaitForResults();
  float sums[kRows][kColumns];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
#pragma unroll
    for (int c = 0; c < kColumns; ++c) sums[r][c] = taps.values[9][0];
  }
  const int32_t column = part.x * kWidth, first_row = part.y * kStride - op.window.pad_top;
  const T* plane = op.input + op.in.At(part.channel, part.image) + column;
  const bool left = kPadLeft == 1 && column > 0;
  const bool right = (kStride == 1 || kPadLeft == 0) && column + kWidth < op.in.width;
#pragma unroll
  for (int i = 0; i < (kRows - 1) * kStride + 3; ++i) {
    const int32_t row = first_row + i;
    float values[kWidth + 2] = {};  // from one column before
    if (row >= 0 && row < op.in.height) {
      const T* line = plane + row * op.in.width;
#pragma unroll
      for (int s = 0; s < kWidth; s += kColumns) {
        float pack[kColumns];
        LoadPack<kColumns>(line + s, pack);
#pragma unroll
        for (int c = 0; c < kColumns; ++c) values[1 + s + c] = pack[c];
      }
      if (left) values[0] = ToFloat(line[-1]);
      if (right) values[kWidth + 1] = ToFloat(line[kWidth]);
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int tap_row = i - r * kStride;
      if (tap_row < 0 || tap_row > 2) continue;
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
#pragma unroll
        for (int j = 0; j < 3; ++j) {
          sums[r][c] = fmaf(values[kStride * c + 1 - kPadLeft + j], taps.values[3 * tap_row + j][0], sums[r][c]);
        }
      }
    }
  }
  const int64_t to = op.out.At(part.channel, part.image) + part.x * kColumns;
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    if (part.y + r >= op.out.height) return;
    StoreSums(op, sums[r], to + (part.y + r) * op.out.width);
  }
}

template <int kPack, int kChannels, typename T>
__global__ void __launch_bounds__(kThreads) DepthwiseAny(const __grid_constant__ Operands<T> op) {
  LetNextStart();
  PlanePart part;
  if (!op.parts.Take(blockIdx.x * kThreads + threadIdx.x, part)) return;
  const float* taps = op.taps + int64_t{part.channel} * op.tap_strides.channel;
  float bias[kChannels], sums[kPack];
  LoadPack<kChannels>(taps + int64_t{op.window.kernel_h * op.window.kernel_w} * op.tap_strides.tap, bias);
#pragma unroll
  for (int c = 0; c < kPack; ++c) sums[c] = bias[kChannels == 1 ? 0 : c];
  WaitForResults();
  const T* plane = op.input + op.in.At(part.channel, part.image);
  op.window.ForEachTap(op.in, part.y, part.x, [&](int32_t tap, int32_t position) {
    float values[kPack], factors[kChannels];
    LoadPack<kPack>(plane + int64_t{position} * op.in.position, values);
    LoadPack<kChannels>(taps + int64_t{tap} * op.tap_strides.tap, factors);
#pragma unroll
    for (int c = 0; c < kPack; ++c) sums[c] = fmaf(values[c], factors[kChannels == 1 ? 0 : c], sums[c]);
  });
  const int64_t to = op.out.At(part.channel, part.image);
  StoreSums(op, sums, to + int64_t{part.y * op.out.width + part.x} * op.out.position);
}

// Channels of a thread in kNhwc: what fits 16 bytes of taps.
constexpr int kChannelPack = 4;

// A kSize x kSize window of stride 1 in kNhwc, kColumns neighbouring outputs a thread: what it loads of a line serves
// all of them, and a line's taps are loaded once for them. ConvNeXt's 7x7 windows at 16 planes of 56x56 and 96 channels
// take 103 us on an H200 one by one, where loads of taps alone are as many as those of elements.
template <int kSize, int kColumns, typename T>
__global__ void __launch_bounds__(kThreads) DepthwiseSpans(const __grid_constant__ Operands<T> op) {
  LetNextStart();
  PlanePart part;
  if (!op.parts.Take(blockIdx.x * kThreads + threadIdx.x, part)) return;
  const float* const taps = op.taps + int64_t{part.channel} * op.tap_strides.channel;
  float bias[kChannelPack], sums[kColumns][kChannelPack];
  LoadPack<kChannelPack>(taps + int64_t{kSize * kSize} * op.tap_strides.tap, bias);
#pragma unroll
  for (int k = 0; k < kColumns; ++k) {
#pragma unroll
    for (int c = 0; c < kChannelPack; ++c) sums[k][c] = bias[c];
  }
  WaitForResults();
  const T* const plane = op.input + op.in.At(part.channel, part.image);
  const int32_t first_row = part.y - op.window.pad_top, first_column = part.x * kColumns - op.window.pad_left;
#pragma unroll 1
  for (int i = 0; i < kSize; ++i) {
    const int32_t row = first_row + i;
    if (row < 0 || row >= op.in.height) continue;
    float factors[kSize][kChannelPack];
#pragma unroll
    for (int j = 0; j < kSize; ++j) {
      LoadPack<kChannelPack>(taps + int64_t{i * kSize + j} * op.tap_strides.tap, factors[j]);
    }
    const T* const line = plane + int64_t{row} * op.in.width * op.in.position;
#pragma unroll
    for (int s = 0; s < kColumns + kSize - 1; ++s) {
      const int32_t column = first_column + s;
      if (column < 0 || column >= op.in.width) continue;
      float values[kChannelPack];
      LoadPack<kChannelPack>(line + int64_t{column} * op.in.position, values);
#pragma unroll
      for (int j = 0; j < kSize; ++j) {
        const int k = s - j;  // the output that tap j takes it to
        if (k < 0 || k >= kColumns) continue;
#pragma unroll
        for (int c = 0; c < kChannelPack; ++c) sums[k][c] = fmaf(values[c], factors[j][c], sums[k][c]);
      }
    }
  }
  const int64_t to = op.out.At(part.channel, part.image);
#pragma unroll
  for (int k = 0; k < kColumns; ++k) {
    StoreSums(op, sums[k], to + int64_t{part.y * op.out.width + part.x * kColumns + k} * op.out.position);
  }
}

template <typename T>
Operands<T> MakeOperands(const KernelArgs& args, Layout layout, int rows, int columns, int pack) {
  const Problem& problem = *args.problem;
  Extent parts = problem.output;
  parts.width /= columns;
  const int64_t taps = problem.window().taps();
  return {args.Input<T>(0),
          static_cast<const DepthwiseWeight&>(*args.weight).data(),
          args.Residual<T>(),
          args.Output<T>(),
          PlaneStrides::Of(problem.input, layout, args.inputs[0]),
          PlaneStrides::Of(problem.output, layout, args.output),
          TapStrides::Of(layout, problem.output.channels, taps),
          PlaneParts(parts, layout, rows, pack),
          DeviceWindow(problem.window()),
          Clamp(problem.epilogue)};
}

// Output columns and rows of a thread.
constexpr int kLineColumns = 4;
constexpr int kStride1Rows = 4;
constexpr int kStride2Rows = 2;

bool Is3x3(const Window& window, int stride) {
  return window.kernel_h == 3 && window.kernel_w == 3 && window.dilation_h == 1 && window.dilation_w == 1 &&
         window.stride_h == stride && window.stride_w == stride;
}

// Queues DepthwiseLines3x3 if it solves the problem with that many columns a thread.
template <int kColumns, typename T>
bool LaunchLines(const KernelArgs& args, Stream& stream) {
  const Problem& problem = *args.problem;
  const Window& window = problem.window();
  const auto fits = [&](int stride, int pad_left) {
    return Is3x3(window, stride) && window.pad_left == pad_left && problem.output.width % kColumns == 0 &&
           problem.input.width == stride * problem.output.width;
  };
  const auto run = [&](auto* kernel, int rows) {
    const Operands<T> operands = MakeOperands<T>(args, Layout::kRows, rows, kColumns, 1);
    LaunchDependent(kernel, LaunchGrid::OfThreads(operands.parts.count(), kThreads), kThreads, 0, QueueOf(stream),
                    operands);
    return true;
  };
  if (fits(1, 1)) return run(DepthwiseLines3x3<kColumns, 1, 1, kStride1Rows, T>, kStride1Rows);
  if (fits(2, 0)) return run(DepthwiseLines3x3<kColumns, 2, 0, kStride2Rows, T>, kStride2Rows);
  if (fits(2, 1)) return run(DepthwiseLines3x3<kColumns, 2, 1, kStride2Rows, T>, kStride2Rows);
  return false;
}

// Queues DepthwiseSpans where windows are of this size, and outputs are so many columns a thread.
template <int kSize, int kColumns, typename T>
bool LaunchSpans(const KernelArgs& args, Stream& stream) {
  const Window& window = args.problem->window();
  const bool fits = window.kernel_h == kSize && window.kernel_w == kSize && window.dilation_h == 1 &&
                    window.dilation_w == 1 && window.stride_h == 1 && window.stride_w == 1 &&
                    args.problem->output.width % kColumns == 0;
  if (!fits) return false;
  const Operands<T> operands = MakeOperands<T>(args, Layout::kNhwc, 1, kColumns, kChannelPack);
  LaunchDependent(DepthwiseSpans<kSize, kColumns, T>, LaunchGrid::OfThreads(operands.parts.count(), kThreads), kThreads,
                  0, QueueOf(stream), operands);
  return true;
}

// Windows of the sizes that networks have, and planes as wide as theirs are.
template <typename T>
bool LaunchSpans(const KernelArgs& args, Stream& stream) {
  return LaunchSpans<5, 8, T>(args, stream) || LaunchSpans<5, 7, T>(args, stream) ||
         LaunchSpans<7, 8, T>(args, stream) || LaunchSpans<7, 7, T>(args, stream);
}

template <int kPack, int kChannels, typename T>
void Launch(const KernelArgs& args, Stream& stream, Layout layout) {
  const Window& window = args.problem->window();
  const auto run = [&](auto* kernel, int rows) {
    const Operands<T> operands = MakeOperands<T>(args, layout, rows, 1, kPack);
    LaunchDependent(kernel, LaunchGrid::OfThreads(operands.parts.count(), kThreads), kThreads, 0, QueueOf(stream),
                    operands);
  };
  if (Is3x3(window, 1)) {
    run(Depthwise3x3<kPack, kChannels, 1, kStride1Rows, T>, kStride1Rows);
  } else if (Is3x3(window, 2)) {
    run(Depthwise3x3<kPack, kChannels, 2, kStride2Rows, T>, kStride2Rows);
  } else {
    run(DepthwiseAny<kPack, kChannels, T>, 1);
  }
}

}  // namespace

bool AcceptsDepthwise(const Problem& problem) { return CountsFit(problem) && !problem.epilogue.function; }

bool TakesPitchedDepthwise(const Problem& problem) { return !problem.epilogue.residual; }

template <Layout kLayout>
StatusOr<std::unique_ptr<PackedWeight>> PrepareDepthwise(const Weight& weight, const Problem&) {
  const DenseMatrix matrix = weight.ToDense();
  const TapStrides strides = TapStrides::Of(kLayout, matrix.rows, matrix.cols);
  const int64_t count = kLayout == Layout::kNhwc ? matrix.rows * (matrix.cols + 1) : matrix.rows * strides.channel;
  std::vector<float> values(CeilDiv(count, kTapUnit) * kTapUnit);
  for (int64_t channel = 0; channel < matrix.rows; ++channel) {
    float* to = values.data() + channel * strides.channel;
    for (int64_t tap = 0; tap < matrix.cols; ++tap) to[tap * strides.tap] = matrix.values[channel * matrix.cols + tap];
    if (!weight.bias.empty()) to[matrix.cols * strides.tap] = weight.bias[channel];
  }
  SWIZZLE_ASSIGN_OR_RETURN(auto uploaded, DeviceArray<float>::Upload(values));
  return std::make_unique<DepthwiseWeight>(std::move(uploaded));
}

template StatusOr<std::unique_ptr<PackedWeight>> PrepareDepthwise<Layout::kRows>(const Weight&, const Problem&);
template StatusOr<std::unique_ptr<PackedWeight>> PrepareDepthwise<Layout::kNhwc>(const Weight&, const Problem&);

template <Layout kLayout, DType kDType>
void Depthwise(const KernelArgs& args, Stream& stream) {
  using T = Element<kDType>;
  if constexpr (kLayout == Layout::kRows) {
    if (LaunchLines<kLineColumns, T>(args, stream) || LaunchLines<kLineColumns / 2, T>(args, stream)) return;
    Launch<1, 1, T>(args, stream, kLayout);
  } else if constexpr (kLayout == Layout::kBatched) {
    Launch<kBatchUnit, 1, T>(args, stream, kLayout);
  } else if (args.problem->output.channels % kChannelPack == 0) {
    if (LaunchSpans<T>(args, stream)) return;
    Launch<kChannelPack, kChannelPack, T>(args, stream, kLayout);
  } else {
    Launch<1, 1, T>(args, stream, kLayout);
  }
}

SWIZZLE_INSTANTIATE(Depthwise);
SWIZZLE_INSTANTIATE_HALF_TYPES(Depthwise, Layout::kBatched);

}  // namespace swizzle::cuda

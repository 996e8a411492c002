#include <limits>

#include "kernels/cuda/runtime/dependent_launch.cuh"
#include "kernels/cuda/runtime/epilogue.cuh"
#include "kernels/cuda/runtime/instantiate.h"
#include "kernels/cuda/window/planes.cuh"
#include "kernels/cuda/window/pool.h"

namespace swizzle::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kWarp = 32;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Max {
  static constexpr float kStart = -kInfinity;
  __device__ static float Join(float a, float b) { return fmaxf(a, b); }
  __device__ static float OfLanes(float value) { return MaxOfLanes(value); }
  __device__ static float Finish(float value, int) { return value; }
};
struct Mean {
  static constexpr float kStart = 0;
  __device__ static float Join(float a, float b) { return a + b; }
  __device__ static float OfLanes(float value) { return SumOfLanes(value); }
  __device__ static float Finish(float value, int count) {
    return count == 0 ? 0.0f : value / static_cast<float>(count);
  }
};

template <typename T>
struct Operands {
  const T* input;
  T* output;
  PlaneStrides in, out;
  PlaneParts parts;
  DeviceWindow window;
  int32_t divisor;  // 0: the taps inside the plane
  Clamp clamp;
};

template <typename Reduce, int kPack, typename T>
__global__ void __launch_bounds__(kThreads) PoolAny(const __grid_constant__ Operands<T> op) {
  LetNextStart();
  PlanePart part;
  if (!op.parts.Take(blockIdx.x * kThreads + threadIdx.x, part)) return;
  WaitForResults();
  const T* plane = op.input + op.in.At(part.channel, part.image);
  float results[kPack];
#pragma unroll
  for (int c = 0; c < kPack; ++c) results[c] = Reduce::kStart;
  int32_t taps = 0;
  op.window.ForEachTap(op.in, part.y, part.x, [&](int32_t, int32_t position) {
    float values[kPack];
    LoadPack<kPack>(plane + int64_t{position} * op.in.position, values);
#pragma unroll
    for (int c = 0; c < kPack; ++c) results[c] = Reduce::Join(results[c], values[c]);
    ++taps;
  });
  const int32_t divisor = op.divisor == 0 ? taps : op.divisor;
#pragma unroll
  for (int c = 0; c < kPack; ++c) results[c] = op.clamp(Reduce::Finish(results[c], divisor));
  const int64_t to = op.out.At(part.channel, part.image);
  StorePack<kPack>(results, op.output + to + int64_t{part.y * op.out.width + part.x} * op.out.position);
}

// The largest of 3x3 with a stride of 2 in kRows, for kRows rows of kColumns output columns a thread: each line of the
// input is read in packs, with one neighbour left of them, so that an element is loaded about once and not once for
// each window. Lines start on packs, and the input is twice as wide as the output.
template <int kColumns, int kRows, typename T>
__global__ void __launch_bounds__(kThreads) MaxPoolLines(const __grid_constant__ Operands<T> op) {
  constexpr int kWidth = 2 * kColumns;  // of the input
  LetNextStart();
  PlanePart part;
  if (!op.parts.Take(blockIdx.x * kThreads + threadIdx.x, part)) return;
  WaitForResults();
  const int32_t column = part.x * kWidth, first_row = part.y * 2 - op.window.pad_top;
  const T* plane = op.input + op.in.At(part.channel, part.image) + column;
  float results[kRows][kColumns];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
#pragma unroll
    for (int c = 0; c < kColumns; ++c) results[r][c] = Max::kStart;
  }
#pragma unroll
  for (int i = 0; i < 2 * kRows + 1; ++i) {
    const int32_t row = first_row + i;
    if (row < 0 || row >= op.in.height) continue;
    const T* line = plane + row * op.in.width;
    float values[kWidth], before = column > 0 ? ToFloat(line[-1]) : Max::kStart;
    LoadPack<kWidth>(line, values);
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      const float largest = Max::Join(Max::Join(before, values[2 * c]), values[2 * c + 1]);
      before = values[2 * c + 1];
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        if (i >= 2 * r && i <= 2 * r + 2) results[r][c] = Max::Join(results[r][c], largest);
      }
    }
  }
  const int64_t to = op.out.At(part.channel, part.image) + part.x * kColumns;
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    if (part.y + r >= op.out.height) return;
#pragma unroll
    for (float& result : results[r]) result = op.clamp(result);
    StorePack<kColumns>(results[r], op.output + to + (part.y + r) * op.out.width);
  }
}

// A warp for each plane of kRows.
template <typename Reduce, typename T>
__global__ void __launch_bounds__(kThreads) PoolRowPlanes(const __grid_constant__ Operands<T> op) {
  LetNextStart();
  PlanePart part;
  if (!op.parts.Take(blockIdx.x * (kThreads / kWarp) + threadIdx.x / kWarp, part)) return;
  WaitForResults();
  const T* plane = op.input + op.in.At(part.channel, part.image);
  const int32_t positions = op.in.height * op.in.width;
  float result = Reduce::kStart;
  for (int32_t i = threadIdx.x % kWarp; i < positions; i += kWarp) result = Reduce::Join(result, ToFloat(plane[i]));
  result = Reduce::OfLanes(result);
  if (threadIdx.x % kWarp != 0) return;
  op.output[op.out.At(part.channel, part.image)] = FromFloat<T>(op.clamp(Reduce::Finish(result, positions)));
}

// A warp for each plane of kBatched, of a pack of images, which may be stored in kRows.
template <typename Reduce, typename T>
__global__ void __launch_bounds__(kThreads) PoolBatchedPlanes(const __grid_constant__ Operands<T> op) {
  LetNextStart();
  PlanePart part;
  if (!op.parts.Take(blockIdx.x * (kThreads / kWarp) + threadIdx.x / kWarp, part)) return;
  WaitForResults();
  const T* plane = op.input + op.in.At(part.channel, part.image);
  const int32_t positions = op.in.height * op.in.width;
  float results[kBatchUnit];
#pragma unroll
  for (float& result : results) result = Reduce::kStart;
  for (int32_t i = threadIdx.x % kWarp; i < positions; i += kWarp) {
    float values[kBatchUnit];
    LoadPack<kBatchUnit>(plane + int64_t{i} * op.in.position, values);
#pragma unroll
    for (int b = 0; b < kBatchUnit; ++b) results[b] = Reduce::Join(results[b], values[b]);
  }
#pragma unroll
  for (float& result : results) result = op.clamp(Reduce::Finish(Reduce::OfLanes(result), positions));
  if (threadIdx.x % kWarp == 0) StorePack<kBatchUnit>(results, op.output + op.out.At(part.channel, part.image));
}

// A block for 32 channels of an image of kNhwc, of one after another of them: its warps share the positions.
template <typename Reduce, typename T>
__global__ void __launch_bounds__(kThreads)
    PoolNhwcPlanes(const __grid_constant__ Operands<T> op, int32_t channels, uint32_t images) {
  constexpr int kWarps = kThreads / kWarp;
  __shared__ float parts[kWarps][kWarp];
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const auto channel = static_cast<int32_t>(blockIdx.x) * kWarp + lane;
  const bool inside = channel < channels;
  const int32_t positions = op.in.height * op.in.width;
  for (uint32_t image = blockIdx.y; image < images; image += gridDim.y) {
    float result = Reduce::kStart;
    if (inside) {
      const T* plane = op.input + op.in.At(channel, image);
#pragma unroll 4
      for (int32_t i = warp; i < positions; i += kWarps) {
        result = Reduce::Join(result, ToFloat(plane[int64_t{i} * op.in.position]));
      }
    }
    parts[warp][lane] = result;
    __syncthreads();
    if (warp == 0 && inside) {
      for (int i = 1; i < kWarps; ++i) result = Reduce::Join(result, parts[i][lane]);
      op.output[op.out.At(channel, image)] = FromFloat<T>(op.clamp(Reduce::Finish(result, positions)));
    }
    __syncthreads();
  }
}

bool CoversPlane(const Problem& problem) {
  const Window& window = problem.window();
  const bool padded = window.pad_top != 0 || window.pad_left != 0 || window.pad_bottom != 0 || window.pad_right != 0;
  return !padded && window.dilation_h == 1 && window.dilation_w == 1 && window.kernel_h == problem.input.height &&
         window.kernel_w == problem.input.width;
}

// Output columns and rows of a thread.
constexpr int kLineColumns = 4, kLineRows = 2;

bool HasLines(const Problem& problem) {
  const Window& window = problem.window();
  return window.kernel_h == 3 && window.kernel_w == 3 && window.stride_h == 2 && window.stride_w == 2 &&
         window.dilation_h == 1 && window.dilation_w == 1 && window.pad_left == 1 &&
         problem.output.width % kLineColumns == 0 && problem.input.width == 2 * problem.output.width;
}

// Each thread has `rows` rows of `columns` columns of a pack of channels.
template <typename T>
Operands<T> OperandsOf(const KernelArgs& args, Layout layout, int rows, int columns, int pack) {
  const Problem& problem = *args.problem;
  const Window& window = problem.window();
  Extent parts = problem.output;
  parts.width /= columns;
  return {args.Input<T>(0),
          args.Output<T>(),
          PlaneStrides::Of(problem.input, layout, args.inputs[0]),
          PlaneStrides::Of(problem.output, layout, args.output),
          PlaneParts(parts, layout, rows, pack),
          DeviceWindow(window),
          window.count_include_pad ? window.kernel_h * window.kernel_w : 0,
          Clamp(problem.epilogue)};
}

template <typename Reduce, typename T>
void Pool(const KernelArgs& args, Stream& stream, Layout layout) {
  constexpr int kPack = 16 / sizeof(T);
  const Problem& problem = *args.problem;
  const int64_t channels = problem.output.channels;
  const bool batched = layout == Layout::kBatched;
  const int pack = batched || (layout == Layout::kNhwc && channels % kPack == 0) ? kPack : 1;
  const Operands<T> op = OperandsOf<T>(args, layout, 1, 1, pack);
  const cudaStream_t queue = QueueOf(stream);
  if (CoversPlane(problem) && layout == Layout::kRows) {
    const auto grid = LaunchGrid::OfThreads(op.parts.count(), kThreads / kWarp);
    LaunchDependent(PoolRowPlanes<Reduce, T>, grid, kThreads, 0, queue, op);
  } else if (CoversPlane(problem) && batched) {
    const auto grid = LaunchGrid::OfThreads(op.parts.count(), kThreads / kWarp);
    if constexpr (kPack == kBatchUnit) LaunchDependent(PoolBatchedPlanes<Reduce, T>, grid, kThreads, 0, queue, op);
  } else if (CoversPlane(problem)) {
    const LaunchGrid grid(CeilDiv(channels, kWarp), problem.output.batch);
    PoolNhwcPlanes<Reduce, T>
        <<<grid, kThreads, 0, queue>>>(op, static_cast<int32_t>(channels), static_cast<uint32_t>(problem.output.batch));
  } else if (pack == 1) {
    LaunchDependent(PoolAny<Reduce, 1, T>, LaunchGrid::OfThreads(op.parts.count(), kThreads), kThreads, 0, queue, op);
  } else {
    LaunchDependent(PoolAny<Reduce, kPack, T>, LaunchGrid::OfThreads(op.parts.count(), kThreads), kThreads, 0, queue,
                    op);
  }
}

}  // namespace

bool AcceptsPool(const Problem& problem) { return !problem.epilogue.residual && CountsFit(problem); }

bool AcceptsPoolOfPlanes(const Problem& problem) { return AcceptsPool(problem) && CoversPlane(problem); }

template <Layout kLayout, DType kDType>
void MaxPool(const KernelArgs& args, Stream& stream) {
  using T = Element<kDType>;
  if (kLayout != Layout::kRows || !HasLines(*args.problem)) return Pool<Max, T>(args, stream, kLayout);
  const Operands<T> op = OperandsOf<T>(args, kLayout, kLineRows, kLineColumns, 1);
  LaunchDependent(MaxPoolLines<kLineColumns, kLineRows, T>, LaunchGrid::OfThreads(op.parts.count(), kThreads), kThreads,
                  0, QueueOf(stream), op);
}

template <Layout kLayout, DType kDType>
void AveragePool(const KernelArgs& args, Stream& stream) {
  Pool<Mean, Element<kDType>>(args, stream, kLayout);
}

SWIZZLE_INSTANTIATE(MaxPool);
SWIZZLE_INSTANTIATE(AveragePool);
SWIZZLE_INSTANTIATE_HALF_TYPES(MaxPool, Layout::kBatched);
SWIZZLE_INSTANTIATE_HALF_TYPES(AveragePool, Layout::kBatched);

}  // namespace swizzle::cuda

#include "kernels/cuda/elementwise/scale.h"
#include "kernels/cuda/runtime/epilogue.cuh"
#include "kernels/cuda/runtime/instantiate.h"

namespace swizzle::cuda {
namespace {

constexpr int kThreads = 256;

// Rows of `row` elements, in packs; the factor of position p of row c is factors[c * factor_row + p / plane].
struct RowShape {
  FastDivider packs;  // of a row
  FastDivider plane;
  uint32_t last_image;
  uint32_t factor_row;
};

template <typename T>
__global__ void __launch_bounds__(kThreads)
    ScaleRows(const T* input, const T* factors, T* output, uint32_t count, RowShape shape, Clamp clamp) {
  constexpr int kPack = 16 / sizeof(T);
  for (uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < count; i += gridDim.x * kThreads) {
    float values[kPack];
    LoadPack<kPack>(input + int64_t{i} * kPack, values);
    uint32_t row = i;
    const uint32_t position = shape.packs.Split(row) * kPack;
    const T* of_row = factors + int64_t{row} * shape.factor_row;
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      // Spare positions take the last image's.
      const uint32_t image = min(shape.plane.Quotient(position + j), shape.last_image);
      values[j] = clamp(values[j] * ToFloat(of_row[image]));
    }
    StorePack<kPack>(values, output + int64_t{i} * kPack);
  }
}

// Images of [positions][channels] in packs of channels; the factors are [images][channels].
template <int kPack, typename T>
__global__ void __launch_bounds__(kThreads)
    ScaleNhwc(const T* input, const T* factors, T* output, uint32_t count, FastDivider packs, FastDivider plane,
              uint32_t channels, Clamp clamp) {
  for (uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < count; i += gridDim.x * kThreads) {
    float values[kPack], by[kPack];
    LoadPack<kPack>(input + int64_t{i} * kPack, values);
    uint32_t position = i;
    const uint32_t channel = packs.Split(position) * kPack;
    LoadPack<kPack>(factors + int64_t{plane.Quotient(position)} * channels + channel, by);
#pragma unroll
    for (int j = 0; j < kPack; ++j) values[j] = clamp(values[j] * by[j]);
    StorePack<kPack>(values, output + int64_t{i} * kPack);
  }
}

template <int kPack, typename T>
void RunNhwc(const KernelArgs& args, Stream& stream) {
  const Extent& extent = args.problem->input;
  const int64_t count = extent.positions() * extent.channels / kPack;
  ScaleNhwc<kPack, T>
      <<<LaunchGrid::OfLoops(count, kThreads, MultiprocessorsOf(stream)), kThreads, 0, QueueOf(stream)>>>(
          args.Input<T>(0), args.Input<T>(1), args.Output<T>(), static_cast<uint32_t>(count),
          FastDivider(extent.channels / kPack), FastDivider(extent.plane()), static_cast<uint32_t>(extent.channels),
          Clamp(args.problem->epilogue));
}

template <typename T>
void RunRows(const KernelArgs& args, Stream& stream) {
  constexpr int kPack = 16 / sizeof(T);
  const Extent& extent = args.problem->input;
  const int64_t packs = RowStride(extent.positions()) / kPack, count = packs * extent.channels;
  const RowShape shape{FastDivider(packs), FastDivider(extent.plane()), static_cast<uint32_t>(extent.batch - 1),
                       static_cast<uint32_t>(RowStride(extent.batch))};
  ScaleRows<T><<<LaunchGrid::OfLoops(count, kThreads, MultiprocessorsOf(stream)), kThreads, 0, QueueOf(stream)>>>(
      args.Input<T>(0), args.Input<T>(1), args.Output<T>(), static_cast<uint32_t>(count), shape,
      Clamp(args.problem->epilogue));
}

}  // namespace

bool AcceptsScale(const Problem& problem) { return CountsFit(problem); }

template <Layout kLayout, DType kDType>
void Scale(const KernelArgs& args, Stream& stream) {
  using T = Element<kDType>;
  constexpr int kPack = 16 / sizeof(T);
  if constexpr (kLayout == Layout::kRows) {
    RunRows<T>(args, stream);
  } else if (args.problem->input.channels % kPack == 0) {
    RunNhwc<kPack, T>(args, stream);
  } else {
    RunNhwc<1, T>(args, stream);
  }
}

SWIZZLE_INSTANTIATE(Scale);

}  // namespace swizzle::cuda

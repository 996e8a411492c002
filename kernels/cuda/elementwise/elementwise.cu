#include <algorithm>

#include "kernels/cuda/elementwise/elementwise.h"
#include "kernels/cuda/runtime/dependent_launch.cuh"
#include "kernels/cuda/runtime/epilogue.cuh"
#include "kernels/cuda/runtime/instantiate.h"

namespace swizzle::cuda {
namespace {

constexpr int kThreads = 256;

struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct Product {
  __device__ float operator()(float a, float b) const { return a * b; }
};
struct Identity {
  __device__ float operator()(float a, float) const { return a; }
};

template <FunctionKind kKind, typename T>
struct Apply {
  float alpha, beta;
  __device__ float operator()(float a, float) const { return FunctionOf<kKind, T>(a, alpha, beta); }
};

// output[i] = clamp(function(a[i], b[i])), in packs of 16 bytes; the last count % kPack elements go one by one.
template <bool kBinary, typename T, typename Join>
__global__ void __launch_bounds__(kThreads)
    Elementwise(const T* a, const T* b, T* output, int64_t count, Join function, Clamp clamp) {
  constexpr int kPack = 16 / sizeof(T);
  LetNextStart();
  WaitForResults();
  const int64_t step = int64_t{gridDim.x} * kThreads, first = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  for (int64_t i = first; i < count / kPack; i += step) {
    float x[kPack], y[kPack] = {};
    LoadPack<kPack>(a + i * kPack, x);
    if constexpr (kBinary) LoadPack<kPack>(b + i * kPack, y);
#pragma unroll
    for (int j = 0; j < kPack; ++j) x[j] = clamp(function(x[j], y[j]));
    StorePack<kPack>(x, output + i * kPack);
  }
  const int64_t last = count / kPack * kPack + first;
  if (last >= count) return;
  output[last] = FromFloat<T>(clamp(function(ToFloat(a[last]), kBinary ? ToFloat(b[last]) : 0.0f)));
}

template <typename T>
struct Pitched {
  T* data;
  int64_t pitch;
  __device__ T* At(int64_t position) const { return data + position * pitch; }
};

// The same for `positions` that are apart, each of whole packs; blocks go along one, and down the positions.
template <bool kBinary, typename T, typename Join>
__global__ void __launch_bounds__(kThreads)
    ElementwisePitched(Pitched<const T> a, Pitched<const T> b, Pitched<T> output, int64_t positions, int packs,
                       Join function, Clamp clamp) {
  constexpr int kPack = 16 / sizeof(T);
  LetNextStart();
  WaitForResults();
  const int pack = blockIdx.x * blockDim.x + threadIdx.x;
  if (pack >= packs) return;
  const int64_t step = int64_t{gridDim.y} * blockDim.y;
  for (int64_t at = int64_t{blockIdx.y} * blockDim.y + threadIdx.y; at < positions; at += step) {
    float x[kPack], y[kPack] = {};
    LoadPack<kPack>(a.At(at) + pack * kPack, x);
    if constexpr (kBinary) LoadPack<kPack>(b.At(at) + pack * kPack, y);
#pragma unroll
    for (int j = 0; j < kPack; ++j) x[j] = clamp(function(x[j], y[j]));
    StorePack<kPack>(x, output.At(at) + pack * kPack);
  }
}

bool IsPitched(const KernelArgs& args) {
  return args.output.pitch != 0 || std::ranges::any_of(args.inputs, [](const Operand& i) { return i.pitch != 0; });
}

template <DType kDType, bool kBinary, typename Join>
void RunPitched(const KernelArgs& args, Stream& stream, Join function) {
  using T = Element<kDType>;
  const Extent& extent = args.problem->output;
  const auto input = [&](int i) { return Pitched<const T>{args.Input<T>(i), args.inputs[i].PitchOr(extent.channels)}; };
  const int packs = static_cast<int>(extent.channels * sizeof(T) / 16);
  const int across = packs >= kThreads ? kThreads : packs > 32 ? 64 : packs > 8 ? 32 : 8;
  const dim3 block(across, kThreads / across);
  LaunchDependent(ElementwisePitched<kBinary, T, Join>,
                  LaunchGrid(CeilDiv(packs, across), CeilDiv<int64_t>(extent.positions(), block.y)), block, 0,
                  QueueOf(stream), input(0), input(kBinary ? 1 : 0),
                  Pitched<T>{args.Output<T>(), args.output.PitchOr(extent.channels)}, extent.positions(), packs,
                  function, Clamp(args.problem->epilogue));
}

template <Layout kLayout, DType kDType, bool kBinary, typename Join>
void Run(const KernelArgs& args, Stream& stream, Join function) {
  using T = Element<kDType>;
  if constexpr (kLayout == Layout::kNhwc) {
    if (IsPitched(args)) return RunPitched<kDType, kBinary>(args, stream, function);
  }
  const int64_t count = LayoutElements(args.problem->output, kLayout);
  const auto grid = LaunchGrid::OfLoops(CeilDiv(count, 16 / sizeof(T)), kThreads, MultiprocessorsOf(stream));
  LaunchDependent(Elementwise<kBinary, T, Join>, grid, kThreads, 0, QueueOf(stream), args.Input<T>(0),
                  kBinary ? args.Input<T>(1) : nullptr, args.Output<T>(), count, function,
                  Clamp(args.problem->epilogue));
}

}  // namespace

template <Layout kLayout, DType kDType>
void Add(const KernelArgs& args, Stream& stream) {
  Run<kLayout, kDType, true>(args, stream, Sum());
}

template <Layout kLayout, DType kDType>
void Multiply(const KernelArgs& args, Stream& stream) {
  Run<kLayout, kDType, true>(args, stream, Product());
}

template <Layout kLayout, DType kDType>
void Activation(const KernelArgs& args, Stream& stream) {
  Run<kLayout, kDType, false>(args, stream, Identity());
}

template <Layout kLayout, DType kDType>
void ApplyFunction(const KernelArgs& args, Stream& stream) {
  const Function& function = args.problem->function();
  WithKind(function.kind, [&]<FunctionKind kKind>() {
    Run<kLayout, kDType, false>(args, stream, Apply<kKind, Element<kDType>>{function.alpha, function.beta});
  });
}

SWIZZLE_INSTANTIATE(Add);
SWIZZLE_INSTANTIATE(Multiply);
SWIZZLE_INSTANTIATE(Activation);
SWIZZLE_INSTANTIATE(ApplyFunction);
SWIZZLE_INSTANTIATE_HALF_TYPES(Add, Layout::kBatched);
SWIZZLE_INSTANTIATE_HALF_TYPES(Multiply, Layout::kBatched);
SWIZZLE_INSTANTIATE_HALF_TYPES(Activation, Layout::kBatched);
SWIZZLE_INSTANTIATE_HALF_TYPES(ApplyFunction, Layout::kBatched);

}  // namespace swizzle::cuda

#include "kernels/cuda/runtime/byte_element.cuh"
#include "kernels/cuda/runtime/dependent_launch.cuh"
#include "kernels/cuda/runtime/instantiate.h"
#include "kernels/cuda/window/planes.cuh"
#include "kernels/cuda/window/resize.h"
#include "kernels/operator/resampling.h"

namespace swizzle::cuda {
namespace {

constexpr int kThreads = 128;

template <typename T>
struct Planes {
  // A thread has a pack of channels.
  Planes(const KernelArgs& args, Layout layout, int pack)
      : input(args.Input<T>(0)),
        output(args.Output<T>()),
        in(PlaneStrides::Of(args.problem->input, layout, args.inputs[0])),
        out(PlaneStrides::Of(args.problem->output, layout, args.output)),
        parts(args.problem->output, layout, 1, pack) {}

  template <int kPack>
  __device__ void Load(uint32_t channel, uint32_t image, int32_t y, int32_t x, float (&values)[kPack]) const {
    const T* const from = input + in.At(channel, image) + (int64_t{y} * in.width + x) * in.position;
    if constexpr (kPack == 1) {
      values[0] = ToFloat(*from);
    } else {
      LoadPack<kPack>(from, values);
    }
  }
  template <int kPack>
  __device__ void Store(const PlanePart& part, const float (&values)[kPack]) const {
    T* const to = output + out.At(part.channel, part.image) + (int64_t{part.y} * out.width + part.x) * out.position;
    if constexpr (kPack == 1) {
      *to = FromFloat<T>(values[0]);
    } else {
      StorePack<kPack>(values, to);
    }
  }

  const T* input;
  T* output;
  PlaneStrides in, out;
  PlaneParts parts;
};

__device__ float Mix(float first, float second, float weight) { return first * (1 - weight) + second * weight; }

template <int kPack, typename T>
__global__ void __launch_bounds__(kThreads)
    ResizeAny(const __grid_constant__ Planes<T> planes, const __grid_constant__ Resampling how) {
  LetNextStart();
  PlanePart part;
  if (!planes.parts.Take(blockIdx.x * kThreads + threadIdx.x, part)) return;
  WaitForResults();
  const ResampledTaps rows = TapsOf(how, AxisOf(planes.in.height, planes.out.height, how.scale_h), part.y);
  const ResampledTaps columns = TapsOf(how, AxisOf(planes.in.width, planes.out.width, how.scale_w), part.x);
  const auto load = [&](int32_t y, int32_t x, float(&values)[kPack]) {
    planes.Load(part.channel, part.image, y, x, values);
  };
  float values[kPack];
  load(rows.first, columns.first, values);
  if (how.linear) {
    float below[kPack], beside[kPack], across[kPack];
    load(rows.second, columns.first, below);
    load(rows.first, columns.second, beside);
    load(rows.second, columns.second, across);
#pragma unroll
    for (int c = 0; c < kPack; ++c) {
      const float first = Mix(values[c], below[c], rows.weight), second = Mix(beside[c], across[c], rows.weight);
      values[c] = Mix(first, second, columns.weight);
    }
  }
  planes.Store(part, values);
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    PlaceBlocks(const __grid_constant__ Planes<T> planes, SpaceBlock space, int32_t channels) {
  PlanePart part;
  if (!planes.parts.Take(blockIdx.x * kThreads + threadIdx.x, part)) return;
  const auto channel = static_cast<int32_t>(part.channel);
  const int32_t block = space.block, place = part.y % block * block + part.x % block;
  const int32_t from = space.places_first ? place * channels + channel : channel * block * block + place;
  float value[1];
  planes.Load(from, part.image, part.y / block, part.x / block, value);
  planes.Store(part, value);
}

template <int kPack, typename T>
void QueueResize(const KernelArgs& args, Layout layout, Stream& stream) {
  const Planes<T> planes(args, layout, kPack);
  LaunchDependent(ResizeAny<kPack, T>, LaunchGrid::OfThreads(planes.parts.count(), kThreads), kThreads, 0,
                  QueueOf(stream), planes, args.problem->resampling());
}

}  // namespace

bool AcceptsResize(const Problem& problem) { return CountsFit(problem); }

template <Layout kLayout, DType kDType>
void Resize(const KernelArgs& args, Stream& stream) {
  using T = Element<kDType>;
  if constexpr (kLayout == Layout::kNhwc && sizeof(T) > 1) {
    constexpr int kPack = 16 / sizeof(T);
    if (args.problem->output.channels % kPack == 0) return QueueResize<kPack, T>(args, kLayout, stream);
  }
  QueueResize<1, T>(args, kLayout, stream);
}

template <Layout kLayout, DType kDType>
void DepthToSpace(const KernelArgs& args, Stream& stream) {
  using T = Element<kDType>;
  const Planes<T> planes(args, kLayout, 1);
  PlaceBlocks<T><<<LaunchGrid::OfThreads(planes.parts.count(), kThreads), kThreads, 0, QueueOf(stream)>>>(
      planes, args.problem->space_block(), static_cast<int32_t>(args.problem->output.channels));
}

SWIZZLE_INSTANTIATE(Resize);
SWIZZLE_INSTANTIATE_OF_BYTES(Resize);
SWIZZLE_INSTANTIATE(DepthToSpace);

}  // namespace swizzle::cuda

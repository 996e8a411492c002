#include "kernels/cuda/runtime/byte_element.cuh"
#include "kernels/cuda/runtime/instantiate.h"
#include "kernels/cuda/window/planes.cuh"
#include "kernels/cuda/window/resize.h"
#include "kernels/operator/resampling.h"

namespace swizzle::cuda {
namespace {

constexpr int kThreads = 128;

template <typename T>
struct Planes {
  Planes(const KernelArgs& args, Layout layout)
      : input(args.Input<T>(0)),
        output(args.Output<T>()),
        in(PlaneStrides::Of(args.problem->input, layout)),
        out(PlaneStrides::Of(args.problem->output, layout)),
        parts(args.problem->output, layout, 1, 1) {}

  __device__ float At(uint32_t channel, uint32_t image, int32_t y, int32_t x) const {
    return ToFloat(input[in.At(channel, image) + (int64_t{y} * in.width + x) * in.position]);
  }
  __device__ void Store(const PlanePart& part, float value) const {
    output[out.At(part.channel, part.image) + (int64_t{part.y} * out.width + part.x) * out.position] =
        FromFloat<T>(value);
  }

  const T* input;
  T* output;
  PlaneStrides in, out;
  PlaneParts parts;
};

__device__ float Mix(float first, float second, float weight) { return first * (1 - weight) + second * weight; }

template <typename T>
__global__ void __launch_bounds__(kThreads)
    ResizeAny(const __grid_constant__ Planes<T> planes, const __grid_constant__ Resampling how) {
  PlanePart part;
  if (!planes.parts.Take(blockIdx.x * kThreads + threadIdx.x, part)) return;
  const ResampledTaps rows = TapsOf(how, AxisOf(planes.in.height, planes.out.height, how.scale_h), part.y);
  const ResampledTaps columns = TapsOf(how, AxisOf(planes.in.width, planes.out.width, how.scale_w), part.x);
  const auto at = [&](int32_t y, int32_t x) { return planes.At(part.channel, part.image, y, x); };
  float value = at(rows.first, columns.first);
  if (how.linear) {
    value = Mix(value, at(rows.second, columns.first), rows.weight);
    const float other = Mix(at(rows.first, columns.second), at(rows.second, columns.second), rows.weight);
    value = Mix(value, other, columns.weight);
  }
  planes.Store(part, value);
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    PlaceBlocks(const __grid_constant__ Planes<T> planes, SpaceBlock space, int32_t channels) {
  PlanePart part;
  if (!planes.parts.Take(blockIdx.x * kThreads + threadIdx.x, part)) return;
  const auto channel = static_cast<int32_t>(part.channel);
  const int32_t block = space.block, place = part.y % block * block + part.x % block;
  const int32_t from = space.places_first ? place * channels + channel : channel * block * block + place;
  planes.Store(part, planes.At(from, part.image, part.y / block, part.x / block));
}

}  // namespace

bool AcceptsResize(const Problem& problem) { return CountsFit(problem); }

template <Layout kLayout, DType kDType>
void Resize(const KernelArgs& args, Stream& stream) {
  using T = Element<kDType>;
  const Planes<T> planes(args, kLayout);
  ResizeAny<T><<<LaunchGrid::OfThreads(planes.parts.count(), kThreads), kThreads, 0, QueueOf(stream)>>>(
      planes, args.problem->resampling());
}

template <Layout kLayout, DType kDType>
void DepthToSpace(const KernelArgs& args, Stream& stream) {
  using T = Element<kDType>;
  const Planes<T> planes(args, kLayout);
  PlaceBlocks<T><<<LaunchGrid::OfThreads(planes.parts.count(), kThreads), kThreads, 0, QueueOf(stream)>>>(
      planes, args.problem->space_block(), static_cast<int32_t>(args.problem->output.channels));
}

SWIZZLE_INSTANTIATE(Resize);
SWIZZLE_INSTANTIATE_OF_BYTES(Resize);
SWIZZLE_INSTANTIATE(DepthToSpace);

}  // namespace swizzle::cuda

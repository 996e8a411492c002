#include <vector>

#include "kernels/cuda/elementwise/bytes.h"
#include "kernels/cuda/elementwise/pack_channels.cuh"
#include "kernels/cuda/elementwise/pack_images.cuh"
#include "kernels/cuda/runtime/dependent_launch.cuh"
#include "kernels/cuda/runtime/device_array.h"
#include "kernels/cuda/runtime/epilogue.cuh"

namespace swizzle::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kLine = 16;  // bytes that a thread loads at once

// Scale and shift of each channel, one after the other.
class ScaleWeight final : public PackedWeight {
 public:
  explicit ScaleWeight(DeviceArray<float> values) : values_(std::move(values)) {}
  size_t bytes() const override { return values_.bytes(); }
  const float* data() const { return values_.data(); }

 private:
  const DeviceArray<float> values_;
};

// y = clamp(factor * (scale * (x - zero point)) + shift), where `factors` are null by 1 and 0.
struct Affine {
  const float* factors;
  float scale;
  float zero_point;
  Clamp clamp;

  struct Channel {
    float factor, shift, zero_point;
    Clamp clamp;
    __device__ float operator()(uint8_t x) const {
      return clamp(fmaf(static_cast<float>(x) - zero_point, factor, shift));
    }
  };
  __device__ Channel Of(int channel) const {
    if (factors == nullptr) return {scale, 0.0f, zero_point, clamp};
    return {factors[2 * channel] * scale, factors[2 * channel + 1], zero_point, clamp};
  }
};

// The plane of a channel of an image lies in both one after the other, `pitch` elements from one channel to the next
// and `plane` from one image to the next in the output. kCount bytes a thread, which start on as many.
template <int kCount, typename T>
__global__ void __launch_bounds__(kThreads)
    ScalePlanes(const uint8_t* from, T* to, int images, int channels, int64_t plane, int64_t pitch, int64_t image_pitch,
                const Affine affine) {
  LetNextStart();
  const int64_t position = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * kCount;
  if (position >= plane) return;
  for (int image = blockIdx.z; image < images; image += gridDim.z) {
    for (int channel = blockIdx.y; channel < channels; channel += gridDim.y) {
      const Affine::Channel scale = affine.Of(channel);
      const uint8_t* in = from + (int64_t{image} * channels + channel) * plane + position;
      T* out = to + channel * pitch + image * image_pitch + position;
      const auto bytes = *reinterpret_cast<const Pack<uint8_t, kCount>*>(in);
      constexpr int kStore = kCount * sizeof(T) > kLine ? kLine / sizeof(T) : kCount;
#pragma unroll
      for (int i = 0; i < kCount; i += kStore) {
        float values[kStore];
#pragma unroll
        for (int j = 0; j < kStore; ++j) values[j] = scale(bytes.values[i + j]);
        StorePack<kStore>(values, out + i);
      }
    }
  }
}

// To [image][position][channel]: a position a thread, whose channels lie together. Images have few.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    ScaleToNhwc(const uint8_t* from, T* to, int images, int channels, int64_t plane, const Affine affine) {
  const int64_t position = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (position >= plane) return;
  for (int image = blockIdx.z; image < images; image += gridDim.z) {
    const uint8_t* in = from + int64_t{image} * channels * plane + position;
    T* out = to + (image * plane + position) * channels;
    for (int channel = 0; channel < channels; ++channel) {
      out[channel] = FromFloat<T>(affine.Of(channel)(in[channel * plane]));
    }
  }
}

template <Layout kLayout, DType kDType>
void Run(const KernelArgs& args, Stream& stream, const float* factors) {
  using T = Element<kDType>;
  const Extent& extent = args.problem->input;
  const auto* from = static_cast<const uint8_t*>(args.inputs[0].data);
  T* const to = args.Output<T>();
  const Affine affine = {factors, args.inputs[0].scale, static_cast<float>(args.inputs[0].zero_point),
                         Clamp(args.problem->epilogue)};
  const int images = static_cast<int>(extent.batch), channels = static_cast<int>(extent.channels);
  const int64_t plane = extent.plane();
  if constexpr (kLayout == Layout::kBatched) {
    QueuePackImages(from, to, extent, plane, channels * plane, affine, QueueOf(stream));
  } else if constexpr (kLayout == Layout::kNhwc) {
    if (channels == kPackedChannels) return QueuePackChannels(from, to, extent, affine, QueueOf(stream));
    const LaunchGrid grid(CeilDiv(plane, kThreads), 1, images);
    ScaleToNhwc<T><<<grid, kThreads, 0, QueueOf(stream)>>>(from, to, images, channels, plane, affine);
  } else {
    const bool rows = kLayout == Layout::kRows;
    const int64_t pitch = rows ? RowStride(extent.positions()) : plane, image_pitch = rows ? plane : channels * plane;
    const auto launch = [&](auto* kernel, int count) {
      const LaunchGrid grid(CeilDiv(plane, int64_t{kThreads} * count), channels, images);
      kernel<<<grid, kThreads, 0, QueueOf(stream)>>>(from, to, images, channels, plane, pitch, image_pitch, affine);
    };
    plane % kLine == 0 ? launch(ScalePlanes<kLine, T>, kLine) : launch(ScalePlanes<1, T>, 1);
  }
}

}  // namespace

bool AcceptsScaleBytes(const Problem& problem) {
  return problem.window().IsPointwise() && !problem.epilogue.residual && !problem.epilogue.function;
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareScaleBytes(const Weight& weight, const Problem&) {
  const DenseMatrix matrix = weight.ToDense();
  std::vector<float> values;
  for (int64_t channel = 0; channel < matrix.rows; ++channel) {
    values.push_back(matrix.values[channel]);
    values.push_back(weight.bias.empty() ? 0.0f : weight.bias[channel]);
  }
  SWIZZLE_ASSIGN_OR_RETURN(auto uploaded, DeviceArray<float>::Upload(values));
  return std::make_unique<ScaleWeight>(std::move(uploaded));
}

template <Layout kLayout, DType kDType>
void ConvertBytes(const KernelArgs& args, Stream& stream) {
  Run<kLayout, kDType>(args, stream, nullptr);
}

template <Layout kLayout, DType kDType>
void ScaleBytes(const KernelArgs& args, Stream& stream) {
  Run<kLayout, kDType>(args, stream, static_cast<const ScaleWeight&>(*args.weight).data());
}

#define SWIZZLE_INSTANTIATE_BYTES(layout, dtype)                                                    \
  template void ConvertBytes<Layout::layout, DType::dtype>(const KernelArgs& args, Stream& stream); \
  template void ScaleBytes<Layout::layout, DType::dtype>(const KernelArgs& args, Stream& stream)

SWIZZLE_INSTANTIATE_BYTES(kNchw, kFloat32);
SWIZZLE_INSTANTIATE_BYTES(kRows, kFloat32);
SWIZZLE_INSTANTIATE_BYTES(kRows, kFloat16);
SWIZZLE_INSTANTIATE_BYTES(kRows, kBFloat16);
SWIZZLE_INSTANTIATE_BYTES(kNhwc, kFloat32);
SWIZZLE_INSTANTIATE_BYTES(kNhwc, kFloat16);
SWIZZLE_INSTANTIATE_BYTES(kNhwc, kBFloat16);
SWIZZLE_INSTANTIATE_BYTES(kBatched, kFloat16);
SWIZZLE_INSTANTIATE_BYTES(kBatched, kBFloat16);

}  // namespace swizzle::cuda

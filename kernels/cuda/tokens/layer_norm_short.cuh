// Layer normalisation of many short tokens, and what its kernels share (layer_norm.cu has the others).
#ifndef SWIZZLE_KERNELS_CUDA_TOKENS_LAYER_NORM_SHORT_CUH_
#define SWIZZLE_KERNELS_CUDA_TOKENS_LAYER_NORM_SHORT_CUH_

#include "kernels/cuda/runtime/dependent_launch.cuh"
#include "kernels/cuda/tokens/columns.cuh"

namespace swizzle::cuda::layer_norm {

inline constexpr int kPack = 4;  // channels a lane moves at once

template <typename T>
struct Operands {
  const T* input;
  const float* scales;
  const float* biases;
  T* output;
  int64_t channel_stride, position_stride;
  int64_t positions;
  int channels;  // of a group
  int groups;
  float epsilon;
  bool centred;
};

// y = x * scale + bias brings values to mean 0 and variance 1, their rounded mean having been taken off.
struct Normaliser {
  float scale, mean;
  // `sum` is of differences from the rounded mean, `squares` of their squares.
  __device__ Normaliser(float rounded_mean, float sum, float squares, float channels, float epsilon) {
    const float rest = sum / channels;
    const float variance = fmaxf(squares / channels - rest * rest, 0.0f);
    scale = 1 / sqrtf(variance + epsilon);
    rest_ = rest;
    mean = rounded_mean;
  }
  __device__ float operator()(float value) const { return (value - mean - rest_) * scale; }

 private:
  float rest_;
};

inline constexpr int kEach = 4;  // tokens of a group of lanes

// Many tokens of kNhwc: kLanes lanes share one, kPacks packs of 16 bytes each, and take kEach tokens one behind the
// other, which they ask for together. Where a token is a few hundred bytes, a warp for each waits for memory instead:
// 50,176 tokens of 96 channels in FP16 take 42 us so on an H200.
template <typename T, int kLanes, int kPacks>
__global__ void __launch_bounds__(kColumnThreads) LayerNormShort(const __grid_constant__ Operands<T> op) {
  constexpr int kWide = 16 / sizeof(T);
  LetNextStart();
  const int lane = threadIdx.x % kLanes;
  const int64_t first = (int64_t{blockIdx.x} * kColumnThreads + threadIdx.x) / kLanes * kEach;
  const auto channel = [&](int i) { return (lane + i * kLanes) * kWide; };
  float scales[kPacks][kWide], biases[kPacks][kWide];
#pragma unroll
  for (int i = 0; i < kPacks; ++i) {
    if (channel(i) >= op.channels) continue;
#pragma unroll
    for (int j = 0; j < kWide; j += kPack) {
      LoadPack<kPack>(op.scales + channel(i) + j, *reinterpret_cast<float(*)[kPack]>(&scales[i][j]));
      LoadPack<kPack>(op.biases + channel(i) + j, *reinterpret_cast<float(*)[kPack]>(&biases[i][j]));
    }
  }
  WaitForResults();
  Pack<T, kWide> held[kEach][kPacks] = {};
#pragma unroll
  for (int t = 0; t < kEach; ++t) {
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      if (first + t >= op.positions || channel(i) >= op.channels) continue;
      held[t][i] = *reinterpret_cast<const Pack<T, kWide>*>(op.input + (first + t) * op.position_stride + channel(i));
    }
  }
  const auto sum_of_lanes = [](float value) {
#pragma unroll
    for (int step = kLanes / 2; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
    return value;
  };
  const auto channels = static_cast<float>(op.channels);
#pragma unroll
  for (int t = 0; t < kEach; ++t) {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
#pragma unroll
      for (int j = 0; j < kWide; ++j) sum += ToFloat(held[t][i].values[j]);
    }
    const float mean = op.centred ? sum_of_lanes(sum) / channels : 0.0f;
    float rest = 0, squares = 0;
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      if (channel(i) >= op.channels) continue;
#pragma unroll
      for (int j = 0; j < kWide; ++j) {
        const float difference = ToFloat(held[t][i].values[j]) - mean;
        rest += difference;
        squares = fmaf(difference, difference, squares);
      }
    }
    rest = op.centred ? sum_of_lanes(rest) : 0.0f;
    const Normaliser normalise(mean, rest, sum_of_lanes(squares), channels, op.epsilon);
    if (first + t >= op.positions) return;  // of all lanes of the token, and no token behind it is there
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      if (channel(i) >= op.channels) continue;
      Pack<T, kWide> made;
#pragma unroll
      for (int j = 0; j < kWide; ++j) {
        made.values[j] = FromFloat<T>(fmaf(normalise(ToFloat(held[t][i].values[j])), scales[i][j], biases[i][j]));
      }
      *reinterpret_cast<Pack<T, kWide>*>(op.output + (first + t) * op.position_stride + channel(i)) = made;
    }
  }
}

template <typename T, int kLanes, int kPacks>
void QueueShort(const Operands<T>& op, Stream& stream) {
  const int64_t groups = CeilDiv(op.positions, int64_t{kEach});
  LaunchDependent(LayerNormShort<T, kLanes, kPacks>, LaunchGrid::OfThreads(groups * kLanes, kColumnThreads),
                  kColumnThreads, 0, QueueOf(stream), op);
}

// With the fewest lanes whose packs hold the channels. Whether there are such, and tokens enough to fill a device.
template <typename T, int kLanes = 4>
bool LaunchShort(const Operands<T>& op, Stream& stream) {
  constexpr int kWide = 16 / sizeof(T);
  constexpr int64_t kLeastTokens = 16384;
  if (op.positions < kLeastTokens || op.channels % kWide != 0) return false;
  const int64_t packs = CeilDiv<int64_t>(op.channels / kWide, kLanes);
  if (packs <= 2) {
    QueueShort<T, kLanes, 2>(op, stream);
  } else if (packs == 3) {
    QueueShort<T, kLanes, 3>(op, stream);
  } else if (packs == 4) {
    QueueShort<T, kLanes, 4>(op, stream);
  } else if constexpr (kLanes < 32) {
    return LaunchShort<T, 2 * kLanes>(op, stream);
  } else {
    return false;
  }
  return true;
}

}  // namespace swizzle::cuda::layer_norm

#endif  // SWIZZLE_KERNELS_CUDA_TOKENS_LAYER_NORM_SHORT_CUH_

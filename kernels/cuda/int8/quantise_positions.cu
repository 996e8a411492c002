#include "kernels/cuda/int8/quantise_positions.h"
#include "kernels/cuda/runtime/dependent_launch.cuh"
#include "kernels/cuda/runtime/epilogue.cuh"

namespace swizzle::cuda {
namespace {

constexpr int kWarp = 32, kPack = 8;  // channels, or positions, that a thread reads at once
constexpr int64_t kUnit = 16, kAlignment = 256;

struct Range {
  float low = 0.0f, high = 0.0f;
  __device__ void See(float value) {
    low = SmallerOrNan(low, value);
    high = LargerOrNan(high, value);
  }
  __device__ void See(const Range& other) {
    low = SmallerOrNan(low, other.low);
    high = LargerOrNan(high, other.high);
  }
};

struct Steps {
  float scale, inverse, zero_point;
  Steps() = default;
  __device__ explicit Steps(const Range& of) {
    constexpr float kLeastRange = 1e-30f, kSteps = 255.0f;  // what is less is nothing: its inverse would be infinite
    const float range = of.high - of.low;
    scale = range <= kLeastRange ? 1.0f : __fdiv_rn(range, kSteps);
    inverse = __fdiv_rn(1.0f, scale);
    zero_point = SmallerOrNan(rintf(__fdiv_rn(-of.low, scale)), kSteps);
  }
  __device__ uint32_t ByteOf(float value) const {
    return static_cast<uint32_t>(__float2int_rn(fminf(fmaxf(fmaf(value, inverse, zero_point), 0.0f), 255.0f)));
  }
  __device__ uint2 BytesOf(const float (&values)[kPack]) const {
    uint2 bytes = {};
#pragma unroll
    for (int i = 0; i < kPack / 2; ++i) {
      bytes.x |= ByteOf(values[i]) << 8 * i;
      bytes.y |= ByteOf(values[kPack / 2 + i]) << 8 * i;
    }
    return bytes;
  }
  __device__ float2 Kept() const { return make_float2(scale, __fmul_rn(scale, zero_point)); }
};

// A warp a position. kPacks: channels are a multiple of kPack.
template <typename T, bool kPacks>
__global__ void QuantiseLines(const T* from, QuantisedPositions to, int positions, int channels, int line,
                              uint32_t flipped) {
  LetNextStart();
  const int lane = threadIdx.x % kWarp;
  const int position = static_cast<int>(blockIdx.x * (blockDim.x / kWarp) + threadIdx.x / kWarp);
  if (position >= positions) return;
  const T* const in = from + int64_t{position} * channels;
  uint8_t* const out = to.bytes + int64_t{position} * line;
  WaitForResults();
  Range range;
  if constexpr (kPacks) {
#pragma unroll 4
    for (int first = lane * kPack; first < channels; first += kWarp * kPack) {
      float values[kPack];
      LoadPack(in + first, values);
#pragma unroll
      for (const float value : values) range.See(value);
    }
  } else {
    for (int channel = lane; channel < channels; channel += kWarp) range.See(ToFloat(in[channel]));
  }
#pragma unroll
  for (int step = kWarp / 2; step > 0; step /= 2) {
    Range other;
    other.low = __shfl_xor_sync(0xFFFFFFFFu, range.low, step);
    other.high = __shfl_xor_sync(0xFFFFFFFFu, range.high, step);
    range.See(other);
  }
  const Steps steps(range);
  if (lane == 0) to.steps[position] = steps.Kept();
  if constexpr (kPacks) {
#pragma unroll 4
    for (int first = lane * kPack; first < line; first += kWarp * kPack) {
      uint2 bytes = {};
      if (first < channels) {
        float values[kPack];
        LoadPack(in + first, values);
        bytes = steps.BytesOf(values);
        bytes.x ^= flipped, bytes.y ^= flipped;
      }
      *reinterpret_cast<uint2*>(out + first) = bytes;
    }
  } else {
    for (int channel = lane; channel < line; channel += kWarp) {
      out[channel] =
          channel < channels ? static_cast<uint8_t>(steps.ByteOf(ToFloat(in[channel])) ^ (flipped & 0xFF)) : 0;
    }
  }
}

constexpr int kRowThreads = 256;

// kWide positions a block, all channels.
template <typename T, int kWide>
__global__ void __launch_bounds__(kRowThreads)
    QuantiseRows(const T* from, QuantisedPositions to, int channels, int64_t stride) {
  constexpr int kAcross = kWide / kPack, kDown = kRowThreads / kAcross, kWarps = kRowThreads / kWarp;
  __shared__ float2 of_warps[kWarps][kWide];  // low, high
  __shared__ Steps of_positions[kWide];
  LetNextStart();
  const int across = threadIdx.x % kAcross, down = threadIdx.x / kAcross, warp = threadIdx.x / kWarp;
  const int64_t first = int64_t{blockIdx.x} * kWide + across * kPack;
  const bool is_there = first < stride;
  const T* const in = from + first;
  WaitForResults();
  Range ranges[kPack];
  if (is_there) {
#pragma unroll 4
    for (int channel = down; channel < channels; channel += kDown) {
      float values[kPack];
      LoadPack(in + channel * stride, values);
#pragma unroll
      for (int i = 0; i < kPack; ++i) ranges[i].See(values[i]);
    }
  }
#pragma unroll
  for (int i = 0; i < kPack; ++i) {
#pragma unroll
    for (int step = kWarp / 2; step >= kAcross; step /= 2) {
      Range other;
      other.low = __shfl_xor_sync(0xFFFFFFFFu, ranges[i].low, step);
      other.high = __shfl_xor_sync(0xFFFFFFFFu, ranges[i].high, step);
      ranges[i].See(other);
    }
    if (threadIdx.x % kWarp < kAcross) of_warps[warp][across * kPack + i] = make_float2(ranges[i].low, ranges[i].high);
  }
  __syncthreads();
  if (threadIdx.x < kWide) {
    Range range;
#pragma unroll
    for (int i = 0; i < kWarps; ++i) {
      range.See(of_warps[i][threadIdx.x].x);
      range.See(of_warps[i][threadIdx.x].y);
    }
    const Steps steps(range);
    of_positions[threadIdx.x] = steps;
    const int64_t position = int64_t{blockIdx.x} * kWide + threadIdx.x;
    if (position < stride) to.steps[position] = steps.Kept();
  }
  __syncthreads();
  if (!is_there) return;
  Steps steps[kPack];
#pragma unroll
  for (int i = 0; i < kPack; ++i) steps[i] = of_positions[across * kPack + i];
#pragma unroll 4
  for (int channel = down; channel < channels; channel += kDown) {
    float values[kPack];
    LoadPack(in + channel * stride, values);
    uint2 bytes = {};
#pragma unroll
    for (int i = 0; i < kPack / 2; ++i) {
      bytes.x |= steps[i].ByteOf(values[i]) << 8 * i;
      bytes.y |= steps[kPack / 2 + i].ByteOf(values[kPack / 2 + i]) << 8 * i;
    }
    *reinterpret_cast<uint2*>(to.bytes + channel * stride + first) = bytes;
  }
}

template <typename T>
void QueueLines(const KernelArgs& args, const PositionLines& lines, bool is_signed, const QuantisedPositions& to,
                Stream& stream) {
  constexpr int64_t kMany = 1024;  // positions; of fewer each warp has a multiprocessor's caches for itself
  const int threads = lines.positions >= kMany ? 4 * kWarp : kWarp;
  const LaunchGrid grid(CeilDiv<int64_t>(lines.positions, threads / kWarp));
  auto* const kernel = lines.channels % kPack == 0 ? QuantiseLines<T, true> : QuantiseLines<T, false>;
  LaunchDependent(kernel, grid, threads, 0, QueueOf(stream), static_cast<const T*>(args.inputs[0].data), to,
                  static_cast<int>(lines.positions), static_cast<int>(lines.channels), static_cast<int>(lines.line),
                  is_signed ? 0x80808080u : 0u);
}

template <typename T>
void QueueRows(const KernelArgs& args, const PositionRows& rows, const QuantisedPositions& to, Stream& stream) {
  constexpr int64_t kMany = 2048;
  const auto* const from = static_cast<const T*>(args.inputs[0].data);
  const auto queue = [&]<int kWide>() {
    LaunchDependent(QuantiseRows<T, kWide>, LaunchGrid(CeilDiv<int64_t>(rows.stride, kWide)), kRowThreads, 0,
                    QueueOf(stream), from, to, static_cast<int>(rows.channels), rows.stride);
  };
  rows.stride >= kMany ? queue.template operator()<32>() : queue.template operator()<16>();
}

int64_t StepsSize(int64_t positions) { return RoundUp(positions * int64_t{sizeof(float2)}, kAlignment); }

// Bytes first: what reads them wants them aligned.
QuantisedPositions Placed(std::byte* workspace, int64_t bytes) {
  return {reinterpret_cast<uint8_t*>(workspace), reinterpret_cast<float2*>(workspace + RoundUp(bytes, kAlignment))};
}

}  // namespace

PositionLines::PositionLines(const Problem& problem)
    : positions(problem.input.positions()), channels(problem.input.channels), line(RoundUp(channels, kUnit)) {}
size_t PositionLines::bytes() const {
  return static_cast<size_t>(RoundUp(positions * line, kAlignment) + StepsSize(positions));
}
QuantisedPositions PositionLines::In(std::byte* workspace) const { return Placed(workspace, positions * line); }

void QueueQuantisedLines(const KernelArgs& args, const PositionLines& lines, bool is_signed,
                         const QuantisedPositions& to, Stream& stream) {
  VisitReal(args.inputs[0].dtype,
            [&]<DType kType>() { QueueLines<Element<kType>>(args, lines, is_signed, to, stream); });
}

PositionRows::PositionRows(const Problem& problem)
    : channels(problem.input.channels), stride(RowStride(problem.input.positions())) {}
size_t PositionRows::bytes() const {
  return static_cast<size_t>(RoundUp(channels * stride, kAlignment) + StepsSize(stride));
}
QuantisedPositions PositionRows::In(std::byte* workspace) const { return Placed(workspace, channels * stride); }

void QueueQuantisedRows(const KernelArgs& args, const PositionRows& rows, const QuantisedPositions& to,
                        Stream& stream) {
  VisitReal(args.inputs[0].dtype, [&]<DType kType>() { QueueRows<Element<kType>>(args, rows, to, stream); });
}

}  // namespace swizzle::cuda

#include "kernels/cuda/conv/operands/position_parts.h"
#include "kernels/cuda/runtime/dependent_launch.cuh"
#include "kernels/cuda/runtime/elements.cuh"
#include "kernels/cuda/tensor_core/operand.cuh"

namespace swizzle::cuda {
namespace {

constexpr int kWarp = 32, kPack = 4;  // numbers that a thread reads at once

__device__ float LargerMagnitude(float most, const float (&values)[kPack]) {  // NaNs do not count
#pragma unroll
  for (const float value : values) most = fmaxf(most, fabsf(value));
  return most;
}

struct Parts {
  uint2 uppers, rests;
  __device__ Parts(const float (&x)[kPack])
      : uppers{PackHalves(x[0], x[1]), PackHalves(x[2], x[3])},
        rests{PackHalves(RestOf(x[0]), RestOf(x[1])), PackHalves(RestOf(x[2]), RestOf(x[3]))} {}
};

// Zeros behind the line's end. kPacks: lines are whole packs.
template <bool kPacks>
__device__ void LoadOfLine(const float* line, int first, int depth, float (&values)[kPack]) {
  if constexpr (kPacks) {
    if (first < depth) return LoadPack(line + first, values);
#pragma unroll
    for (float& value : values) value = 0;
  } else {
#pragma unroll
    for (int i = 0; i < kPack; ++i) values[i] = first + i < depth ? line[first + i] : 0.0f;
  }
}

// A warp a position.
template <bool kPacks>
__global__ void SplitEachLine(const float* from, PositionParts to, int64_t positions, int depth, int part) {
  LetNextStart();
  const int lane = threadIdx.x % kWarp;
  const int64_t position = int64_t{blockIdx.x} * (blockDim.x / kWarp) + threadIdx.x / kWarp;
  if (position >= positions) return;
  const float* const line = from + position * depth;
  auto* const out = static_cast<__half*>(to.halves) + position * 3 * part;
  WaitForResults();
  float most = 0;
#pragma unroll 4
  for (int first = lane * kPack; first < depth; first += kWarp * kPack) {
    float values[kPack];
    LoadOfLine<kPacks>(line, first, depth, values);
    most = LargerMagnitude(most, values);
  }
  const Fit fit = FitOf(__float_as_uint(MaxOfLanes(most)));
  if (lane == 0) to.inverses[position] = fit.inverse;
#pragma unroll 4
  for (int first = lane * kPack; first < part; first += kWarp * kPack) {
    float values[kPack];
    LoadOfLine<kPacks>(line, first, depth, values);
#pragma unroll
    for (float& value : values) value *= fit.factor;
    const Parts parts(values);
    *reinterpret_cast<uint2*>(out + first) = parts.uppers;
    *reinterpret_cast<uint2*>(out + part + first) = parts.rests;
    *reinterpret_cast<uint2*>(out + 2 * part + first) = parts.uppers;
  }
}

constexpr int kRowThreads = 512;

// kWide positions a block, all of their numbers.
template <int kWide>
__global__ void __launch_bounds__(kRowThreads)
    SplitEachRow(const float* from, PositionParts to, int depth, int64_t stride) {
  constexpr int kAcross = kWide / kPack, kDown = kRowThreads / kAcross, kWarps = kRowThreads / kWarp;
  __shared__ float most_of_warps[kWarps][kWide];
  __shared__ alignas(16) float factors[kWide];
  LetNextStart();
  const int across = threadIdx.x % kAcross, down = threadIdx.x / kAcross, warp = threadIdx.x / kWarp;
  const int64_t first = int64_t{blockIdx.x} * kWide + across * kPack;
  const bool is_there = first < stride;
  const float* const in = from + first;
  WaitForResults();
  float most[kPack] = {};
  if (is_there) {
#pragma unroll 8
    for (int row = down; row < depth; row += kDown) {
      float values[kPack];
      LoadPack(in + row * stride, values);
#pragma unroll
      for (int i = 0; i < kPack; ++i) most[i] = fmaxf(most[i], fabsf(values[i]));
    }
  }
#pragma unroll
  for (int i = 0; i < kPack; ++i) {
#pragma unroll
    for (int step = kWarp / 2; step >= kAcross; step /= 2) {
      most[i] = fmaxf(most[i], __shfl_xor_sync(0xFFFFFFFFu, most[i], step));
    }
    if (threadIdx.x % kWarp < kAcross) most_of_warps[warp][across * kPack + i] = most[i];
  }
  __syncthreads();
  if (threadIdx.x < kWide) {
    float largest = 0;
#pragma unroll
    for (int i = 0; i < kWarps; ++i) largest = fmaxf(largest, most_of_warps[i][threadIdx.x]);
    const Fit fit = FitOf(__float_as_uint(largest));
    factors[threadIdx.x] = fit.factor;
    const int64_t position = int64_t{blockIdx.x} * kWide + threadIdx.x;
    if (position < stride) to.inverses[position] = fit.inverse;
  }
  __syncthreads();
  if (!is_there) return;
  const float4 factor = *reinterpret_cast<const float4*>(factors + across * kPack);
  auto* const out = static_cast<__half*>(to.halves) + first;
#pragma unroll 8
  for (int row = down; row < depth; row += kDown) {
    float values[kPack];
    LoadPack(in + row * stride, values);
    values[0] *= factor.x, values[1] *= factor.y, values[2] *= factor.z, values[3] *= factor.w;
    const Parts parts(values);
    *reinterpret_cast<uint2*>(out + row * stride) = parts.uppers;
    *reinterpret_cast<uint2*>(out + (depth + row) * stride) = parts.rests;
  }
}

}  // namespace

void SplitLines(const float* from, int64_t positions, int64_t depth, const PositionParts& to, Stream& stream) {
  constexpr int64_t kMany = 1024;  // positions; of fewer each warp has a multiprocessor's caches for itself
  const int threads = positions >= kMany ? 4 * kWarp : kWarp;
  auto* const kernel = depth % kPack == 0 ? SplitEachLine<true> : SplitEachLine<false>;
  LaunchDependent(kernel, LaunchGrid(CeilDiv<int64_t>(positions, threads / kWarp)), threads, 0, QueueOf(stream), from,
                  to, positions, static_cast<int>(depth), static_cast<int>(PartOfLine(depth)));
}

// Launched in turn: started while the step before ends, a layer with 3,072 rows of X took 72 us in a plan, and 26 alone
// (kernels/cuda/PERFORMANCE.md).
void SplitRows(const float* from, int64_t depth, int64_t stride, const PositionParts& to, Stream& stream) {
  constexpr int64_t kMany = 4096;
  const auto queue = [&]<int kWide>() {
    const LaunchGrid grid(CeilDiv<int64_t>(stride, kWide));
    SplitEachRow<kWide><<<grid, kRowThreads, 0, QueueOf(stream)>>>(from, to, static_cast<int>(depth), stride);
  };
  stride >= kMany ? queue.template operator()<32>() : queue.template operator()<16>();
}

}  // namespace swizzle::cuda

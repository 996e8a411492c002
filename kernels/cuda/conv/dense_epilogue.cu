#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>

#include "kernels/base/integers.h"
#include "kernels/cuda/conv/dense_epilogue.h"
#include "kernels/cuda/runtime/queue.h"

namespace swizzle::cuda {
namespace {

constexpr int kThreads = 256;

// 16 bytes of elements.
template <typename T>
struct alignas(16) Pack {
  static constexpr int kSize = 16 / sizeof(T);
  T values[kSize];
};

// A NaN stays one.
__device__ float Clamped(float value, float low, float high) {
  value = value < low ? low : value;
  return value > high ? high : value;
}

// Elements past the last whole pack are the last block's.
template <typename T>
__global__ void Clamp(T* values, int64_t count, float low, float high) {
  constexpr int kSize = Pack<T>::kSize;
  const int64_t first = (blockIdx.x * int64_t{kThreads} + threadIdx.x) * kSize;
  if (first + kSize <= count) {
    Pack<T> pack = *reinterpret_cast<const Pack<T>*>(values + first);
#pragma unroll
    for (T& value : pack.values) value = T(Clamped(float(value), low, high));
    *reinterpret_cast<Pack<T>*>(values + first) = pack;
  } else {
    for (int64_t i = first; i < count; ++i) values[i] = T(Clamped(float(values[i]), low, high));
  }
}

// A row has `packs` packs; blocks go along it, and down the rows.
template <typename T>
__global__ void Finish(T* values, const T* residual, const float* bias, int rows, int packs, float low, float high) {
  const int pack = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (pack >= packs || row >= rows) return;
  const int64_t at = int64_t{row} * packs + pack;
  const float added = bias == nullptr ? 0.0f : bias[row];
  Pack<T> sums = reinterpret_cast<const Pack<T>*>(values)[at];
  Pack<T> others = residual == nullptr ? Pack<T>{} : reinterpret_cast<const Pack<T>*>(residual)[at];
#pragma unroll
  for (int i = 0; i < Pack<T>::kSize; ++i) {
    sums.values[i] = T(Clamped(float(sums.values[i]) + added + float(others.values[i]), low, high));
  }
  reinterpret_cast<Pack<T>*>(values)[at] = sums;
}

template <typename T>
void ClampAs(const KernelArgs& args, Stream& stream) {
  const Problem& problem = *args.problem;
  const int64_t count = problem.output.positions() * problem.output.channels;
  const int64_t step = int64_t{kThreads} * Pack<T>::kSize;
  Clamp<T><<<static_cast<unsigned>(CeilDiv(count, step)), kThreads, 0, QueueOf(stream)>>>(
      reinterpret_cast<T*>(args.output), count, problem.epilogue.low, problem.epilogue.high);
}

template <typename T>
void FinishAs(const KernelArgs& args, const float* bias, Stream& stream) {
  const Problem& problem = *args.problem;
  const int rows = static_cast<int>(problem.output.channels);
  const int packs = static_cast<int>(RowStride(problem.output.positions()) / Pack<T>::kSize);
  const int across = packs >= kThreads ? kThreads : packs > 32 ? 64 : packs > 8 ? 32 : 8;
  const dim3 block(across, kThreads / across);
  const dim3 grid(CeilDiv(packs, block.x), CeilDiv(rows, block.y));
  const float* const residual = problem.epilogue.residual ? args.inputs[1] : nullptr;
  Finish<T><<<grid, block, 0, QueueOf(stream)>>>(reinterpret_cast<T*>(args.output),
                                                 reinterpret_cast<const T*>(residual), bias, rows, packs,
                                                 problem.epilogue.low, problem.epilogue.high);
}

}  // namespace

void ClampOutput(const KernelArgs& args, Stream& stream) {
  switch (args.problem->dtype) {
    case DType::kFloat16:
      return ClampAs<__half>(args, stream);
    case DType::kBFloat16:
      return ClampAs<__nv_bfloat16>(args, stream);
    default:
      return ClampAs<float>(args, stream);
  }
}

void FinishRows(const KernelArgs& args, const float* bias, Stream& stream) {
  switch (args.problem->dtype) {
    case DType::kFloat16:
      return FinishAs<__half>(args, bias, stream);
    case DType::kBFloat16:
      return FinishAs<__nv_bfloat16>(args, bias, stream);
    default:
      return FinishAs<float>(args, bias, stream);
  }
}

}  // namespace swizzle::cuda

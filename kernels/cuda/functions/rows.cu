// Functions of rows: a warp takes each, or a block where rows are long.
#include "kernels/cuda/functions/functions.h"
#include "kernels/cuda/runtime/launch_grid.h"
#include "kernels/cuda/runtime/queue.h"

namespace swizzle::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int64_t kLongRow = 2048;  // from here on a block has a row

struct Add {
  static constexpr float kNone = 0.0f;
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct Larger {
  static constexpr float kNone = -INFINITY;
  __device__ float operator()(float a, float b) const { return a > b || a != a ? a : b; }
};
struct Smaller {
  static constexpr float kNone = INFINITY;
  __device__ float operator()(float a, float b) const { return a < b || a != a ? a : b; }
};

// Of all that share a row, for each of them. kShare: 32 or kThreads. REQUIRES: where it is kThreads, all of the block
// call it.
template <int kShare, typename Join>
__device__ float Joined(float value, Join join) {
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) value = join(value, __shfl_xor_sync(~0u, value, lanes));
  if constexpr (kShare > 32) {
    __shared__ float warps[kWarps];
    __syncthreads();
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
    __syncthreads();
    value = warps[0];
#pragma unroll
    for (int i = 1; i < kWarps; ++i) value = join(value, warps[i]);
  }
  return value;
}

// Calls body(row, lane) for this thread's rows, of which its sharers take every kShare-th element from `lane` on.
template <int kShare, typename Body>
__device__ void ForEachRow(int64_t rows, const Body& body) {
  constexpr int kAtOnce = kThreads / kShare;
  const int64_t step = int64_t{gridDim.x} * kAtOnce;
  for (int64_t row = int64_t{blockIdx.x} * kAtOnce + threadIdx.x / kShare; row < rows; row += step) {
    body(row, static_cast<int>(threadIdx.x % kShare));
  }
}

template <int kShare, bool kSquares, typename Join>
__global__ void __launch_bounds__(kThreads) ReduceRows(RowsReduced call, Join join, float factor) {
  ForEachRow<kShare>(call.rows, [&](int64_t row, int lane) {
    const float* from = call.from + row * call.length;
    float value = Join::kNone;
    for (int64_t i = lane; i < call.length; i += kShare) value = join(value, kSquares ? from[i] * from[i] : from[i]);
    value = Joined<kShare>(value, join);
    if (lane == 0) call.to[row] = value * factor;
  });
}

template <int kShare>
__global__ void __launch_bounds__(kThreads) SoftmaxRows(RowsSoftmax call) {
  ForEachRow<kShare>(call.outer * call.middle * call.inner, [&](int64_t row, int lane) {
    const float* from = call.from + row * call.length;
    const float* bias = nullptr;
    if (call.bias != nullptr) {
      bias = call.bias + row % call.inner * call.bias_strides[2] +
             row / call.inner % call.middle * call.bias_strides[1] +
             row / call.inner / call.middle * call.bias_strides[0];
    }
    const auto score = [&](int64_t i) { return fmaf(call.scale, from[i], bias == nullptr ? 0.0f : bias[i]); };
    float largest = -INFINITY;
    for (int64_t i = lane; i < call.length; i += kShare) largest = fmaxf(largest, score(i));
    largest = Joined<kShare>(largest, Larger());
    float total = 0;
    for (int64_t i = lane; i < call.length; i += kShare) total += expf(score(i) - largest);
    total = Joined<kShare>(total, Add());
    const bool nothing = largest == -INFINITY;
    for (int64_t i = lane; i < call.length; i += kShare) {
      call.to[row * call.length + i] = nothing ? 0.0f : expf(score(i) - largest) / total;
    }
  });
}

template <int kShare>
__global__ void __launch_bounds__(kThreads) NormaliseRows(RowsNormalised call) {
  ForEachRow<kShare>(call.rows, [&](int64_t row, int lane) {
    const float* from = call.from + row * call.length;
    const auto count = static_cast<float>(call.length);
    float total = 0;
    for (int64_t i = lane; i < call.length; i += kShare) total += from[i];
    const float mean = Joined<kShare>(total, Add()) / count;
    float squares = 0;
    for (int64_t i = lane; i < call.length; i += kShare) squares += (from[i] - mean) * (from[i] - mean);
    const float factor = rsqrtf(Joined<kShare>(squares, Add()) / count + call.epsilon);
    for (int64_t i = lane; i < call.length; i += kShare) {
      const float scale = call.scale == nullptr ? 1.0f : call.scale[i];
      const float shift = call.shift == nullptr ? 0.0f : call.shift[i];
      call.to[row * call.length + i] = (from[i] - mean) * factor * scale + shift;
    }
  });
}

template <typename T>
__global__ void __launch_bounds__(kThreads) SumAlongRows(RowsSummed call) {
  ForEachRow<32>(call.rows, [&](int64_t row, int lane) {
    const T* from = static_cast<const T*>(call.from) + row * call.length;
    T* to = static_cast<T*>(call.to) + row * call.length;
    T before = 0;
    for (int64_t first = 0; first < call.length; first += 32) {
      const int64_t step = first + lane, i = call.reverse ? call.length - 1 - step : step;
      const T own = step < call.length ? from[i] : T(0);
      T sum = own;
#pragma unroll
      for (int lanes = 1; lanes < 32; lanes *= 2) {
        const T other = __shfl_up_sync(~0u, sum, lanes);
        if (lane >= lanes) sum += other;
      }
      if (step < call.length) to[i] = before + (call.exclusive ? sum - own : sum);
      before += __shfl_sync(~0u, sum, 31);
    }
  });
}

LaunchGrid GridOf(int64_t rows, int share, Stream& stream) {
  return LaunchGrid::OfLoops(rows * share, kThreads, MultiprocessorsOf(stream));
}

// launch.operator()<threads that share a row>(grid)
template <typename Launch>
void WithShare(int64_t rows, int64_t length, Stream& stream, const Launch& launch) {
  if (rows == 0 || length == 0) return;
  if (length < kLongRow) return launch.template operator()<32>(GridOf(rows, 32, stream));
  launch.template operator()<kThreads>(GridOf(rows, kThreads, stream));
}

template <bool kSquares = false, typename Join>
void QueueReduction(const RowsReduced& call, Join join, float factor, Stream& stream) {
  WithShare(call.rows, call.length, stream, [&]<int kShare>(const LaunchGrid& grid) {
    ReduceRows<kShare, kSquares><<<grid, kThreads, 0, QueueOf(stream)>>>(call, join, factor);
  });
}

}  // namespace

void CudaFunctions::Reduce(const RowsReduced& call, Stream& stream) const {
  switch (call.reduction) {
    case RowReduction::kSum:
      return QueueReduction(call, Add(), 1.0f, stream);
    case RowReduction::kMean:
      return QueueReduction(call, Add(), 1.0f / static_cast<float>(call.length), stream);
    case RowReduction::kMax:
      return QueueReduction(call, Larger(), 1.0f, stream);
    case RowReduction::kMin:
      return QueueReduction(call, Smaller(), 1.0f, stream);
    case RowReduction::kSumSquare:
      return QueueReduction<true>(call, Add(), 1.0f, stream);
  }
}

void CudaFunctions::Sum(const RowsSummed& call, Stream& stream) const {
  if (call.rows == 0 || call.length == 0) return;
  const LaunchGrid grid = GridOf(call.rows, 32, stream);
  if (call.dtype == DType::kInt64) {
    SumAlongRows<long long><<<grid, kThreads, 0, QueueOf(stream)>>>(call);
  } else {
    SumAlongRows<float><<<grid, kThreads, 0, QueueOf(stream)>>>(call);
  }
}

void CudaFunctions::Softmax(const RowsSoftmax& call, Stream& stream) const {
  WithShare(call.outer * call.middle * call.inner, call.length, stream, [&]<int kShare>(const LaunchGrid& grid) {
    SoftmaxRows<kShare><<<grid, kThreads, 0, QueueOf(stream)>>>(call);
  });
}

void CudaFunctions::Normalise(const RowsNormalised& call, Stream& stream) const {
  WithShare(call.rows, call.length, stream, [&]<int kShare>(const LaunchGrid& grid) {
    NormaliseRows<kShare><<<grid, kThreads, 0, QueueOf(stream)>>>(call);
  });
}

}  // namespace swizzle::cuda

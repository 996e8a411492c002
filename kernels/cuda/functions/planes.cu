// Functions that read by a table: a thread makes each element, or each piece.
#include "kernels/cuda/functions/functions.h"
#include "kernels/cuda/runtime/launch_grid.h"
#include "kernels/cuda/runtime/queue.h"

namespace swizzle::cuda {
namespace {

constexpr int kThreads = 256;

// Calls make(i) for each i below `count`, in as many threads as fill the device.
template <typename Make>
__global__ void __launch_bounds__(kThreads) ForEach(int64_t count, Make make) {
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += step) make(i);
}

template <typename Make>
void Queue(int64_t count, const Make& make, Stream& stream) {
  if (count == 0) return;
  const auto grid = LaunchGrid::OfLoops(count, kThreads, MultiprocessorsOf(stream));
  ForEach<<<grid, kThreads, 0, QueueOf(stream)>>>(count, make);
}

// Pieces are copied in units of T.
template <typename T, typename Index>
struct PickUnits {
  Picks call;
  int64_t units;  // of a piece

  __device__ void operator()(int64_t i) const {
    const int64_t unit = i % units, place = i / units;
    const int64_t pick = place % call.count;
    int64_t index = static_cast<const Index*>(call.indices)[pick];
    if (index < 0) index += call.size;
    if (index < 0 || index >= call.size) {
      *call.bad = call.mark;
      index = 0;
    }
    const auto* from = static_cast<const T*>(call.from);
    static_cast<T*>(call.to)[i] = from[(place / call.count * call.size + index) * units + unit];
  }
};

template <typename T>
void QueuePicks(const Picks& call, Stream& stream) {
  const int64_t units = call.piece_bytes / static_cast<int64_t>(sizeof(T)), all = call.outer * call.count * units;
  if (call.index_dtype == DType::kInt32) {
    Queue(all, PickUnits<T, int32_t>{call, units}, stream);
  } else {
    Queue(all, PickUnits<T, int64_t>{call, units}, stream);
  }
}

struct GatherColumns {
  ColumnsGathered call;
  __device__ void operator()(int64_t i) const {
    const int64_t column = call.taps * call.positions;
    const int32_t source = call.sources[i % column];
    call.to[i] = source < 0 ? 0.0f : call.from[i / column * call.plane + source];
  }
};

struct SumColumns {
  ColumnsSummed call;
  __device__ void operator()(int64_t i) const {
    const int64_t place = i % call.plane;
    const float* from = call.from + i / call.plane * call.columns;
    float sum = 0;
    for (int32_t entry = call.offsets[place]; entry < call.offsets[place + 1]; ++entry)
      sum += from[call.entries[entry]];
    call.to[i] = sum;
  }
};

struct ResizeElements {
  Resized call;
  __device__ void operator()(int64_t i) const {
    const int64_t inner = i % call.inner, at = i / call.inner % call.to_size, outer = i / call.inner / call.to_size;
    const WeightedTaps& taps = call.taps[at];
    const float* from = call.from + outer * call.from_size * call.inner + inner;
    float sum = taps.start;
    for (int k = 0; k < taps.count; ++k) sum += taps.weights[k] * from[taps.at[k] * call.inner];
    call.to[i] = sum;
  }
};

struct PoolWindows {
  Pooled call;
  __device__ void operator()(int64_t i) const {
    const int64_t position = i % call.positions;
    const float* from = call.from + i / call.positions * call.plane;
    float sum = 0, largest = -INFINITY;
    for (int64_t tap = 0; tap < call.taps; ++tap) {
      const int32_t source = call.sources[tap * call.positions + position];
      if (source < 0) continue;
      sum += from[source];
      largest = fmaxf(largest, from[source]);
    }
    call.to[i] = call.divisors == nullptr ? largest : sum / call.divisors[position];
  }
};

}  // namespace

void CudaFunctions::Pick(const Picks& call, Stream& stream) const {
  if (call.piece_bytes % 16 == 0) return QueuePicks<uint4>(call, stream);
  if (call.piece_bytes % 4 == 0) return QueuePicks<uint32_t>(call, stream);
  QueuePicks<uint8_t>(call, stream);
}

void CudaFunctions::Gather(const ColumnsGathered& call, Stream& stream) const {
  Queue(call.planes * call.taps * call.positions, GatherColumns{call}, stream);
}

void CudaFunctions::Sum(const ColumnsSummed& call, Stream& stream) const {
  Queue(call.planes * call.plane, SumColumns{call}, stream);
}

void CudaFunctions::Resize(const Resized& call, Stream& stream) const {
  Queue(call.outer * call.to_size * call.inner, ResizeElements{call}, stream);
}

void CudaFunctions::Pool(const Pooled& call, Stream& stream) const {
  Queue(call.planes * call.positions, PoolWindows{call}, stream);
}

}  // namespace swizzle::cuda

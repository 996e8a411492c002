#include "kernels/cuda/functions/functions.h"
#include "kernels/cuda/runtime/launch_grid.h"
#include "kernels/cuda/runtime/queue.h"

namespace swizzle::cuda {
namespace {

constexpr int kThreads = 256;

// The dimensions of a copy but for those that a kernel sees to itself.
template <typename Index>
struct Walk {
  int rank = 0;
  Index dims[kMaxStridedRank] = {};
  Index from_strides[kMaxStridedRank] = {}, to_strides[kMaxStridedRank] = {};

  // Adds the offsets of the index that is number `i`, row-major.
  __device__ void Find(Index i, Index& from, Index& to) const {
#pragma unroll
    for (int d = kMaxStridedRank - 1; d >= 0; --d) {
      if (d >= rank) continue;
      const Index at = i % dims[d];
      i /= dims[d];
      from += at * from_strides[d];
      to += at * to_strides[d];
    }
  }
};

template <typename T, typename Index>
__global__ void __launch_bounds__(kThreads) CopyElements(const T* from, T* to, Walk<Index> walk, Index count) {
  const Index step = Index(gridDim.x) * kThreads;
  for (Index i = Index(blockIdx.x) * kThreads + threadIdx.x; i < count; i += step) {
    Index source = 0, target = 0;
    walk.Find(i, source, target);
    to[target] = from[source];
  }
}

// Tiles of 32x32, whose columns are neighbours in `from` and whose rows are neighbours in `to`, pass through shared
// memory: both sides are then read and written in whole lines.
constexpr int kTile = 32, kTileRows = 8;

template <typename T, typename Index>
__global__ void __launch_bounds__(kTile* kTileRows)
    TurnTiles(const T* from, T* to, Walk<Index> others, Index rows, Index columns, Index from_stride, Index to_stride) {
  __shared__ T tile[kTile][kTile + 1];
  const Index across = (columns + kTile - 1) / kTile, down = (rows + kTile - 1) / kTile;
  Index block = blockIdx.x;
  const Index first_column = block % across * kTile;
  block /= across;
  const Index first_row = block % down * kTile;
  Index source = 0, target = 0;
  others.Find(block / down, source, target);
#pragma unroll
  for (int i = 0; i < kTile; i += kTileRows) {
    const Index row = first_row + threadIdx.y + i, column = first_column + threadIdx.x;
    if (row < rows && column < columns) {
      tile[threadIdx.y + i][threadIdx.x] = from[source + row * from_stride + column];
    }
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kTile; i += kTileRows) {
    const Index column = first_column + threadIdx.y + i, row = first_row + threadIdx.x;
    if (row < rows && column < columns) to[target + column * to_stride + row] = tile[threadIdx.x][threadIdx.y + i];
  }
}

// The dimension along which neighbours are neighbours in memory, or -1.
int NeighboursOf(const StridedCopy& call, const StridedDims& strides) {
  for (int d = call.rank - 1; d >= 0; --d) {
    if (strides[d] == 1 && call.dims[d] > 1) return d;
  }
  return -1;
}

template <typename T, typename Index>
void Queue(const StridedCopy& call, Index count, Stream& stream) {
  const int row = NeighboursOf(call, call.to_strides), column = NeighboursOf(call, call.from_strides);
  constexpr int64_t kWorthATile = 8;
  const bool turns =
      row >= 0 && column >= 0 && row != column && call.dims[row] >= kWorthATile && call.dims[column] >= kWorthATile;
  Walk<Index> walk;
  for (int d = 0; d < call.rank; ++d) {
    if (turns && (d == row || d == column)) continue;
    walk.dims[walk.rank] = static_cast<Index>(call.dims[d]);
    walk.from_strides[walk.rank] = static_cast<Index>(call.from_strides[d]);
    walk.to_strides[walk.rank++] = static_cast<Index>(call.to_strides[d]);
  }
  const auto* from = static_cast<const T*>(call.from);
  auto* to = static_cast<T*>(call.to);
  if (!turns) {
    const auto grid = LaunchGrid::OfLoops(static_cast<int64_t>(count), kThreads, MultiprocessorsOf(stream));
    CopyElements<T, Index><<<grid, kThreads, 0, QueueOf(stream)>>>(from, to, walk, count);
    return;
  }
  const int64_t rows = call.dims[row], columns = call.dims[column];
  const LaunchGrid grid(static_cast<int64_t>(count) / (rows * columns) * CeilDiv(rows, kTile) *
                        CeilDiv(columns, kTile));
  TurnTiles<T, Index><<<grid, dim3(kTile, kTileRows), 0, QueueOf(stream)>>>(
      from, to, walk, static_cast<Index>(rows), static_cast<Index>(columns), static_cast<Index>(call.from_strides[row]),
      static_cast<Index>(call.to_strides[column]));
}

template <typename T>
void QueueOfType(const StridedCopy& call, Stream& stream) {
  int64_t count = 1, from = 0, to = 0;
  bool forward = true;
  for (int d = 0; d < call.rank; ++d) {
    count *= call.dims[d];
    forward &= call.from_strides[d] >= 0 && call.to_strides[d] >= 0;
    from += (call.dims[d] - 1) * call.from_strides[d];
    to += (call.dims[d] - 1) * call.to_strides[d];
  }
  if (count == 0) return;
  constexpr int64_t kMost = int64_t{1} << 31;
  if (forward && count < kMost && from < kMost && to < kMost) {
    Queue<T, uint32_t>(call, static_cast<uint32_t>(count), stream);
  } else {
    Queue<T, int64_t>(call, count, stream);
  }
}

}  // namespace

void CudaFunctions::Copy(const StridedCopy& call, Stream& stream) const {
  switch (call.element_bytes) {
    case 1:
      return QueueOfType<uint8_t>(call, stream);
    case 2:
      return QueueOfType<uint16_t>(call, stream);
    case 4:
      return QueueOfType<uint32_t>(call, stream);
    default:
      return QueueOfType<uint64_t>(call, stream);
  }
}

}  // namespace swizzle::cuda

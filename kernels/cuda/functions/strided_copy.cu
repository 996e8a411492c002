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

// Several copies as one grid, whose threads find theirs by its number: copies of a few microseconds each would take as
// long to begin as to end.
template <typename T>
struct CopiesTogether {
  static constexpr int kMost = 24;  // as many as arguments of a kernel have room for

  struct One {
    const T* from = nullptr;
    T* to = nullptr;
    Walk<uint32_t> walk;
  };
  int count = 0;
  uint32_t first[kMost + 1] = {};  // element of each, and their number
  One copies[kMost];
};

template <typename T>
__global__ void __launch_bounds__(kThreads) CopyTogether(const __grid_constant__ CopiesTogether<T> all) {
  const uint32_t step = gridDim.x * kThreads, end = all.first[all.count];
  int copy = 0;
  for (uint32_t i = blockIdx.x * kThreads + threadIdx.x; i < end; i += step) {
    while (i >= all.first[copy + 1]) ++copy;
    const auto& one = all.copies[copy];
    uint32_t source = 0, target = 0;
    one.walk.Find(i - all.first[copy], source, target);
    one.to[target] = one.from[source];
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

// The dimensions that a copy in tiles turns, or none.
struct Turn {
  int row = -1, column = -1;  // of neighbours in `to`, in `from`

  bool turns() const { return row >= 0; }
};

Turn TurnOf(const StridedCopy& call) {
  const Turn turn{NeighboursOf(call, call.to_strides), NeighboursOf(call, call.from_strides)};
  constexpr int64_t kWorthATile = 8;
  const bool turns = turn.row >= 0 && turn.column >= 0 && turn.row != turn.column &&
                     call.dims[turn.row] >= kWorthATile && call.dims[turn.column] >= kWorthATile;
  return turns ? turn : Turn();
}

template <typename Index>
Walk<Index> WalkOf(const StridedCopy& call, const Turn& turn = {}) {
  Walk<Index> walk;
  for (int d = 0; d < call.rank; ++d) {
    if (d == turn.row || d == turn.column) continue;
    walk.dims[walk.rank] = static_cast<Index>(call.dims[d]);
    walk.from_strides[walk.rank] = static_cast<Index>(call.from_strides[d]);
    walk.to_strides[walk.rank++] = static_cast<Index>(call.to_strides[d]);
  }
  return walk;
}

template <typename T, typename Index>
void Queue(const StridedCopy& call, Index count, Stream& stream) {
  const Turn turn = TurnOf(call);
  const Walk<Index> walk = WalkOf<Index>(call, turn);
  const auto* from = static_cast<const T*>(call.from);
  auto* to = static_cast<T*>(call.to);
  if (!turn.turns()) {
    const auto grid = LaunchGrid::OfLoops(static_cast<int64_t>(count), kThreads, MultiprocessorsOf(stream));
    CopyElements<T, Index><<<grid, kThreads, 0, QueueOf(stream)>>>(from, to, walk, count);
    return;
  }
  const int64_t rows = call.dims[turn.row], columns = call.dims[turn.column];
  const LaunchGrid grid(static_cast<int64_t>(count) / (rows * columns) * CeilDiv(rows, kTile) *
                        CeilDiv(columns, kTile));
  TurnTiles<T, Index><<<grid, dim3(kTile, kTileRows), 0, QueueOf(stream)>>>(
      from, to, walk, static_cast<Index>(rows), static_cast<Index>(columns),
      static_cast<Index>(call.from_strides[turn.row]), static_cast<Index>(call.to_strides[turn.column]));
}

int64_t ElementsOf(const StridedCopy& call) {
  int64_t count = 1;
  for (int d = 0; d < call.rank; ++d) count *= call.dims[d];
  return count;
}

constexpr int64_t kMost32 = int64_t{1} << 31;

// Whether 32 bits count all that it touches.
bool IsSmall(const StridedCopy& call) {
  int64_t from = 0, to = 0;
  for (int d = 0; d < call.rank; ++d) {
    if (call.from_strides[d] < 0 || call.to_strides[d] < 0) return false;
    from += (call.dims[d] - 1) * call.from_strides[d];
    to += (call.dims[d] - 1) * call.to_strides[d];
  }
  return ElementsOf(call) < kMost32 && from < kMost32 && to < kMost32;
}

template <typename T>
void QueueOfType(const StridedCopy& call, Stream& stream) {
  const int64_t count = ElementsOf(call);
  if (count == 0) return;
  if (IsSmall(call)) {
    Queue<T, uint32_t>(call, static_cast<uint32_t>(count), stream);
  } else {
    Queue<T, int64_t>(call, count, stream);
  }
}

template <typename T>
void QueueTogether(std::span<const StridedCopy> calls, Stream& stream) {
  CopiesTogether<T> all;
  const auto queue = [&] {
    if (all.count == 0) return;
    const auto grid =
        LaunchGrid::OfLoops(static_cast<int64_t>(all.first[all.count]), kThreads, MultiprocessorsOf(stream));
    CopyTogether<T><<<grid, kThreads, 0, QueueOf(stream)>>>(all);
    all.count = 0;
  };
  for (const StridedCopy& call : calls) {
    const int64_t count = ElementsOf(call);
    if (count == 0) continue;
    if (!IsSmall(call) || TurnOf(call).turns()) {
      QueueOfType<T>(call, stream);
      continue;
    }
    if (all.count == CopiesTogether<T>::kMost || all.first[all.count] + count >= kMost32) queue();
    all.copies[all.count] = {static_cast<const T*>(call.from), static_cast<T*>(call.to), WalkOf<uint32_t>(call)};
    all.first[all.count + 1] = all.first[all.count] + static_cast<uint32_t>(count);
    ++all.count;
  }
  queue();
}

// Calls visit(T()) with a type of the element's size.
template <typename Visit>
void VisitElement(size_t bytes, const Visit& visit) {
  switch (bytes) {
    case 1:
      return visit(uint8_t());
    case 2:
      return visit(uint16_t());
    case 4:
      return visit(uint32_t());
    case 8:
      return visit(uint64_t());
    default:
      return visit(uint4());
  }
}

}  // namespace

void CudaFunctions::Copy(const StridedCopy& call, Stream& stream) const {
  VisitElement(call.element_bytes, [&]<typename T>(T) { QueueOfType<T>(call, stream); });
}

void CudaFunctions::CopyAll(std::span<const StridedCopy> calls, Stream& stream) const {
  if (calls.size() == 1) return Copy(calls.front(), stream);
  if (calls.empty()) return;
  VisitElement(calls.front().element_bytes, [&]<typename T>(T) { QueueTogether<T>(calls, stream); });
}

}  // namespace swizzle::cuda

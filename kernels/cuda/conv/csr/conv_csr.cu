#include <cuda_pipeline.h>

#include "kernels/cuda/conv/csr/conv_csr.h"
#include "kernels/cuda/conv/csr/spmm_lane.cuh"
#include "kernels/cuda/runtime/shared_memory.h"

namespace swizzle::cuda {
namespace {

constexpr int kWarp = 32;
constexpr int kBundle = QuadCsr::kPieces;  // warps of a CTA of pieces

// Partial sums of a CTA's warps, laid so that a warp reads and writes 512 bytes at a time.
template <typename T, int kVectors>
struct Partials {
  static constexpr int kSize = Vector<T>::kSize, kFours = kVectors * kSize / 4;
  float4 of[kBundle][kFours][kWarp];

  __device__ void Put(int warp, int thread, const Lane<T, kVectors>& lane) {
    const float* sums = &lane.sums[0][0];
#pragma unroll
    for (int i = 0; i < kFours; ++i) {
      of[warp][i][thread] = {sums[4 * i], sums[4 * i + 1], sums[4 * i + 2], sums[4 * i + 3]};
    }
  }
  __device__ void AddTo(int warp, int thread, Lane<T, kVectors>& lane) const {
    float* sums = &lane.sums[0][0];
#pragma unroll
    for (int i = 0; i < kFours; ++i) {
      const float4 more = of[warp][i][thread];
      sums[4 * i] += more.x, sums[4 * i + 1] += more.y, sums[4 * i + 2] += more.z, sums[4 * i + 3] += more.w;
    }
  }
};

// Where a thread stands: warps take quads or pieces of them, eight lanes a row, each lane some columns.
template <typename T, int kVectors>
struct Place {
  int warp = threadIdx.x / kWarp;
  int thread = threadIdx.x % kWarp;
  int in_quad = thread / kLanesOfRow;
  int64_t column;  // first one of this lane
  __device__ explicit Place(int tile)
      : column(int64_t{tile} * Lane<T, kVectors>::kTile + thread % kLanesOfRow * Vector<T>::kSize) {}
};

// A CTA has a bundle of pieces and one column tile; the heaviest bundles come first.
template <typename T, typename Column, int kVectors, typename Function>
__global__ __launch_bounds__(kBundle* kWarp) void SpmmPieces(const __grid_constant__ SpmmArgs<T, Column, Function> args,
                                                             int tiles) {
  __shared__ Partials<T, kVectors> partials;
  const int bundle = blockIdx.x / tiles;
  const Place<T, kVectors> place(blockIdx.x % tiles);
  const int4* pieces = args.pieces + bundle * kBundle;
  const int4 piece = __ldg(pieces + place.warp);  // a QuadPiece: quad, begin, chunks, parts
  const int most_parts = __ldg(pieces).w;
  Lane<T, kVectors> lane;
  lane.Clear();
  if (piece.x >= 0) {
    const GlobalX<T, kVectors> x(args.x, args.stride, args.n, place.column);
    ChunkAdder<T, Column, kVectors, GlobalX<T, kVectors>>(args, piece.y, place.in_quad).Add(piece.z, x, lane);
  }
  const bool leads = place.warp % piece.w == 0;
  if (most_parts > 1) {
    if (!leads) partials.Put(place.warp, place.thread, lane);
    __syncthreads();
    if (leads) {
      for (int part = 1; part < piece.w; ++part) partials.AddTo(place.warp + part, place.thread, lane);
    }
  }
  if (leads && piece.x >= 0) lane.Store(args, piece.x * QuadCsr::kRows + place.in_quad, place.column);
}

extern __shared__ uint4 shared_tile[];  // [cols][kVectors][kLanesOfRow]

// A wider tile leaves room for one CTA on a multiprocessor instead of two: it gets all the warps.
template <int kVectors>
constexpr int kTileWarps = 16 * kVectors;

// `sharers` CTAs share the quads of a column tile. Quads go round in snake order, as they fall in weight.
template <typename T, int kVectors, typename Function>
__global__ __launch_bounds__(kTileWarps<kVectors>* kWarp,
                             2 / kVectors) void SpmmTile(const __grid_constant__ SpmmArgs<T, uint16_t, Function> args,
                                                         int sharers) {
  constexpr int kUnits = kVectors * kLanesOfRow, kSize = Vector<T>::kSize, kWarps = kTileWarps<kVectors>;
  const int tile = blockIdx.x / sharers, sharer = blockIdx.x % sharers;
  const Place<T, kVectors> place(tile);
  const int64_t column = int64_t{tile} * kUnits * kSize + threadIdx.x % kUnits * kSize;
  if (column < args.n) {
    for (int row = threadIdx.x / kUnits; row < args.cols; row += kWarps * kWarp / kUnits) {
      __pipeline_memcpy_async(&shared_tile[row * kUnits + threadIdx.x % kUnits], args.x + row * args.stride + column,
                              16);
    }
  }
  __pipeline_commit();
  using Adder = ChunkAdder<T, uint16_t, kVectors, SharedX<kVectors>>;
  const int workers = sharers * kWarps, worker = place.warp * sharers + sharer;
  int quad = worker, begin = 0, end = 0;
  if (quad < args.quads) begin = __ldg(args.chunk_begins + quad), end = __ldg(args.chunk_begins + quad + 1);
  Adder adder(args, begin, place.in_quad);  // the first entries travel with X
  __pipeline_wait_prior(0);
  __syncthreads();
  const SharedX<kVectors> x{&shared_tile[place.thread % kLanesOfRow]};
  for (int round = 0; quad < args.quads;) {
    Lane<T, kVectors> lane;
    lane.Clear();
    adder.Add(end - begin, x, lane);
    const int done = quad;
    ++round;
    quad = round * workers + (round % 2 == 0 ? worker : workers - 1 - worker);
    if (quad < args.quads) {
      begin = __ldg(args.chunk_begins + quad), end = __ldg(args.chunk_begins + quad + 1);
      adder = Adder(args, begin, place.in_quad);
    }
    lane.Store(args, done * QuadCsr::kRows + place.in_quad, place.column);
  }
}

template <typename T, typename Column, typename Function>
SpmmArgs<T, Column, Function> ArgsOf(const SpmmOperands& operands, const SpmmPlan& plan,
                                     const Ending<Function>& ending) {
  const QuadCsr& weight = *operands.weight;
  return {.weights = static_cast<const typename Quadruple<T>::Raw*>(weight.weights()),
          .columns = static_cast<const typename Quadruple<Column>::Raw*>(weight.columns()),
          .rows = weight.rows(),
          .bias = weight.bias(),
          .pieces = reinterpret_cast<const int4*>(weight.cuts()[plan.cut].bundle),
          .chunk_begins = weight.chunk_begins(),
          .quads = static_cast<int32_t>(weight.quads()),
          .cols = static_cast<int32_t>(weight.cols()),
          .x = static_cast<const T*>(operands.x),
          .residual = static_cast<const T*>(operands.residual),
          .y = static_cast<T*>(operands.y),
          .stride = operands.stride,
          .n = operands.columns,
          .ending = ending};
}

// A column tile of one vector a lane is 128 bytes of a row of X, whatever its type.
constexpr int kVectorTileBytes = 128;

int64_t Tiles(int64_t columns, int vectors, size_t element_bytes) {
  return CeilDiv(columns, kVectorTileBytes * vectors / static_cast<int64_t>(element_bytes));
}

template <typename T, typename Column, int kVectors>
void QueuePieces(const SpmmOperands& operands, const SpmmPlan& plan, cudaStream_t queue) {
  const int64_t bundles = operands.weight->cuts()[plan.cut].bundles;
  const int64_t tiles = Tiles(operands.columns, kVectors, sizeof(T));
  WithEnding(operands.epilogue, [&]<typename Function>(const Ending<Function>& ending) {
    SpmmPieces<T, Column, kVectors, Function><<<LaunchGrid(bundles * tiles), kBundle * kWarp, 0, queue>>>(
        ArgsOf<T, Column>(operands, plan, ending), static_cast<int>(tiles));
  });
}

template <typename T, int kVectors>
void QueueTile(const SpmmOperands& operands, int sharers, cudaStream_t queue) {
  const auto bytes = static_cast<size_t>(operands.weight->cols()) * kVectorTileBytes * kVectors;
  const int64_t tiles = Tiles(operands.columns, kVectors, sizeof(T));
  WithEnding(operands.epilogue, [&]<typename Function>(const Ending<Function>& ending) {
    auto* const kernel = SpmmTile<T, kVectors, Function>;
    AllowSharedMemory(kernel, MostSharedMemory());
    kernel<<<LaunchGrid(tiles * sharers), kTileWarps<kVectors> * kWarp, bytes, queue>>>(
        ArgsOf<T, uint16_t>(operands, {}, ending), sharers);
  });
}

template <typename T>
void Queue(const SpmmOperands& operands, const SpmmPlan& plan, cudaStream_t queue) {
  switch (plan.way) {
    case SpmmWay::kTile128:
      return QueueTile<T, 1>(operands, plan.sharers, queue);
    case SpmmWay::kTile256:
      return QueueTile<T, 2>(operands, plan.sharers, queue);
    case SpmmWay::kPieces:
      break;
  }
  if (operands.weight->has_short_columns()) return QueuePieces<T, uint16_t, 1>(operands, plan, queue);
  QueuePieces<T, uint32_t, 1>(operands, plan, queue);
}

}  // namespace

void QueueSpmm(const SpmmOperands& operands, const SpmmPlan& plan, cudaStream_t queue) {
  if (operands.weight->quads() == 0 || operands.columns == 0) return;
  VisitReal(operands.dtype, [&]<DType kType>() { Queue<Element<kType>>(operands, plan, queue); });
}

}  // namespace swizzle::cuda

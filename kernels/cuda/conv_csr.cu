#include <cooperative_groups.h>
#include <cuda_pipeline.h>

#include <algorithm>

#include "kernels/cuda/conv_csr.h"
#include "kernels/cuda/spmm_lane.cuh"

namespace swizzle::cuda {
namespace {

constexpr int kWarp = 32;
constexpr int kBundle = QuadCsr::kPieces;  // warps of a CTA of pieces and of clusters
constexpr int kTileWarps = 16;

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
template <typename T, typename Column, int kVectors>
__global__ __launch_bounds__(kBundle* kWarp) void SpmmPieces(const __grid_constant__ SpmmArgs<T, Column> args, int tiles) {
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

// A cluster has eight quads and one column tile, each of its CTAs a part of all eight. Afterwards each CTA sums and stores
// some of the quads.
template <typename T, typename Column, int kVectors>
__global__ __launch_bounds__(kBundle* kWarp) void SpmmCluster(const __grid_constant__ SpmmArgs<T, Column> args, int tiles,
                                                              int parts) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  __shared__ Partials<T, kVectors> partials;
  const auto cluster = cooperative_groups::this_cluster();
  const int part = static_cast<int>(cluster.block_rank());
  const int group = blockIdx.x / parts / tiles;
  const Place<T, kVectors> place(blockIdx.x / parts % tiles);
  const int quad = group * kBundle + place.warp;
  Lane<T, kVectors> lane;
  lane.Clear();
  if (quad < args.quads) {
    const int first = __ldg(args.chunk_begins + quad), chunks = __ldg(args.chunk_begins + quad + 1) - first;
    const int begin = chunks * part / parts, end = chunks * (part + 1) / parts;
    const GlobalX<T, kVectors> x(args.x, args.stride, args.n, place.column);
    ChunkAdder<T, Column, kVectors, GlobalX<T, kVectors>>(args, first + begin, place.in_quad).Add(end - begin, x, lane);
  }
  partials.Put(place.warp, place.thread, lane);
  cluster.sync();
  if (place.warp < kBundle / parts) {
    const int of_warp = place.warp * parts + part, summed = group * kBundle + of_warp;
    if (summed < args.quads) {
      lane.Clear();
      for (int from = 0; from < parts; ++from) {
        cluster.map_shared_rank(&partials, from)->AddTo(of_warp, place.thread, lane);
      }
      lane.Store(args, summed * QuadCsr::kRows + place.in_quad, place.column);
    }
  }
  cluster.sync();  // nobody leaves while others read its memory
#endif
}

extern __shared__ uint4 shared_tile[];  // [cols][kVectors][kLanesOfRow]

// `parts` CTAs share the quads of a column tile. Quads go round in snake order, as they fall in weight.
template <typename T, typename Column, int kVectors>
__global__ __launch_bounds__(kTileWarps* kWarp, kVectors <= 2 ? 2 : 1) void SpmmTile(
    const __grid_constant__ SpmmArgs<T, Column> args, int parts) {
  constexpr int kUnits = kVectors * kLanesOfRow, kSize = Vector<T>::kSize;
  const int tile = blockIdx.x / parts, part = blockIdx.x % parts;
  const Place<T, kVectors> place(tile);
  const int64_t column = int64_t{tile} * kUnits * kSize + threadIdx.x % kUnits * kSize;
  if (column < args.n) {
    for (int row = threadIdx.x / kUnits; row < args.cols; row += kTileWarps * kWarp / kUnits) {
      __pipeline_memcpy_async(&shared_tile[row * kUnits + threadIdx.x % kUnits], args.x + row * args.stride + column, 16);
    }
  }
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  const SharedX<kVectors> x{&shared_tile[place.thread % kLanesOfRow]};
  const int workers = parts * kTileWarps, worker = place.warp * parts + part;
  for (int round = 0; round * workers < args.quads; ++round) {
    const int quad = round * workers + (round % 2 == 0 ? worker : workers - 1 - worker);
    if (quad >= args.quads) continue;
    const int begin = __ldg(args.chunk_begins + quad), end = __ldg(args.chunk_begins + quad + 1);
    Lane<T, kVectors> lane;
    lane.Clear();
    ChunkAdder<T, Column, kVectors, SharedX<kVectors>>(args, begin, place.in_quad).Add(end - begin, x, lane);
    lane.Store(args, quad * QuadCsr::kRows + place.in_quad, place.column);
  }
}

template <typename T, typename Column>
SpmmArgs<T, Column> ArgsOf(const SpmmOperands& operands, const SpmmPlan& plan) {
  const QuadCsr& weight = *operands.weight;
  SpmmArgs<T, Column> args;
  args.weights = static_cast<const typename Quadruple<T>::Raw*>(weight.weights());
  args.columns = static_cast<const typename Quadruple<Column>::Raw*>(weight.columns());
  args.rows = weight.rows();
  args.bias = weight.bias();
  args.pieces = reinterpret_cast<const int4*>(weight.cuts()[plan.cut].bundle);
  args.chunk_begins = weight.chunk_begins();
  args.quads = static_cast<int32_t>(weight.quads());
  args.cols = static_cast<int32_t>(weight.cols());
  args.x = static_cast<const T*>(operands.x);
  args.residual = static_cast<const T*>(operands.residual);
  args.y = static_cast<T*>(operands.y);
  args.stride = operands.stride;
  args.n = operands.columns;
  args.low = operands.low;
  args.high = operands.high;
  return args;
}

// A column tile of one vector a lane is 128 bytes of a row of X, whatever its type.
constexpr int kVectorTileBytes = 128;

int Tiles(int64_t columns, int vectors, size_t element_bytes) {
  const int64_t width = kVectorTileBytes * vectors / static_cast<int64_t>(element_bytes);
  return static_cast<int>((columns + width - 1) / width);
}

template <typename T, typename Column, int kVectors>
void QueueCluster(const SpmmArgs<T, Column>& args, int parts, int tiles, cudaStream_t queue) {
  cudaLaunchAttribute cluster;
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {static_cast<unsigned>(parts), 1, 1};
  cudaLaunchConfig_t config = {};
  config.gridDim = static_cast<unsigned>((args.quads + kBundle - 1) / kBundle * tiles * parts);
  config.blockDim = kBundle * kWarp;
  config.stream = queue;
  config.attrs = &cluster;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, SpmmCluster<T, Column, kVectors>, args, tiles, parts);
}

template <typename T, typename Column, int kVectors>
void QueuePieces(const SpmmOperands& operands, const SpmmPlan& plan, cudaStream_t queue) {
  const auto args = ArgsOf<T, Column>(operands, plan);
  const auto bundles = static_cast<unsigned>(operands.weight->cuts()[plan.cut].bundles);
  const int tiles = Tiles(args.n, kVectors, sizeof(T));
  SpmmPieces<T, Column, kVectors><<<bundles * tiles, kBundle * kWarp, 0, queue>>>(args, tiles);
}

template <typename T, typename Column, int kVectors>
void Queue(const SpmmOperands& operands, const SpmmPlan& plan, cudaStream_t queue) {
  const auto args = ArgsOf<T, Column>(operands, plan);
  const int tiles = Tiles(args.n, kVectors, sizeof(T));
  switch (plan.way) {
    case SpmmPlan::Way::kPieces:
      QueuePieces<T, Column, kVectors>(operands, plan, queue);
      break;
    case SpmmPlan::Way::kCluster:
      QueueCluster<T, Column, kVectors>(args, plan.parts, tiles, queue);
      break;
    case SpmmPlan::Way::kTile: {
      const int bytes = args.cols * kVectorTileBytes * kVectors;
      cudaFuncSetAttribute(SpmmTile<T, Column, kVectors>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
      SpmmTile<T, Column, kVectors><<<tiles * plan.parts, kTileWarps * kWarp, bytes, queue>>>(args, plan.parts);
      break;
    }
  }
}

template <typename T, typename Column>
void QueueOfVectors(const SpmmOperands& operands, const SpmmPlan& plan, cudaStream_t queue) {
  switch (plan.vectors) {
    case 1: return Queue<T, Column, 1>(operands, plan, queue);
    case 2: return Queue<T, Column, 2>(operands, plan, queue);
    default: return Queue<T, Column, 4>(operands, plan, queue);
  }
}

// Weights with columns beyond 16 bits are rare: one kernel has to do for them.
template <typename T>
void QueueOfColumns(const SpmmOperands& operands, const SpmmPlan& plan, cudaStream_t queue) {
  if (operands.weight->has_short_columns()) return QueueOfVectors<T, uint16_t>(operands, plan, queue);
  QueuePieces<T, uint32_t, 1>(operands, plan, queue);
}

}  // namespace

void QueueSpmm(const SpmmOperands& operands, const SpmmPlan& plan, cudaStream_t queue) {
  if (operands.weight->quads() == 0 || operands.columns == 0) return;
  switch (operands.dtype) {
    case DType::kFloat16: return QueueOfColumns<__half>(operands, plan, queue);
    case DType::kBFloat16: return QueueOfColumns<__nv_bfloat16>(operands, plan, queue);
    default: return QueueOfColumns<float>(operands, plan, queue);
  }
}

}  // namespace swizzle::cuda

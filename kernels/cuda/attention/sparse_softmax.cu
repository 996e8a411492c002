#include <algorithm>

#include "kernels/cuda/attention/row_pieces.cuh"
#include "kernels/cuda/attention/sparse_softmax.h"
#include "kernels/cuda/runtime/elements.cuh"
#include "kernels/cuda/runtime/powers.cuh"

namespace swizzle::cuda {
namespace {

constexpr int kWarps = 8;
constexpr int kLongThreads = 256;

struct Params {
  const void* input;
  void* output;
  int64_t value_stride;
  const uint32_t* row_offsets;
  const uint32_t* long_rows;
  int tokens;
  float scale;  // in units of log(2)
};

// Values [begin, end) of one head, in pieces from the boundary before.
template <typename T>
struct Row {
  static constexpr int kElements = kPieceElements<T>;
  // Of a row that a warp shares: 24 or 8 values to spare for the start.
  static constexpr int kPiecesOfLane = CeilDiv(kLongRow, 32 * kElements);
  const T* input;
  T* output;
  int begin, end;

  __device__ Row(const Params& p, int row)
      : input(static_cast<const T*>(p.input) + blockIdx.y * p.value_stride),
        output(static_cast<T*>(p.output) + blockIdx.y * p.value_stride),
        begin(p.row_offsets[row]),
        end(p.row_offsets[row + 1]) {}

  __device__ int length() const { return end - begin; }
  __device__ int first_piece() const { return begin / kElements; }
  __device__ bool Has(int piece) const { return piece * kElements < end; }

  __device__ uint4 Load(int piece) const { return reinterpret_cast<const uint4*>(input)[piece]; }

  // The scaled values of a piece; neighbours' are -infinity.
  __device__ void Read(const uint4& from, int piece, float scale, float (&values)[kElements]) const {
    const int at = piece * kElements;
    ToFloats(from, values);
#pragma unroll
    for (int e = 0; e < kElements; ++e) values[e] *= scale;
    if (at >= begin && at + kElements <= end) return;
#pragma unroll
    for (int e = 0; e < kElements; ++e) {
      if (at + e < begin || at + e >= end) values[e] = -INFINITY;
    }
  }

  __device__ void Store(int piece, const float (&values)[kElements]) const {
    const int at = piece * kElements;
    if (at >= begin && at + kElements <= end) {
      reinterpret_cast<uint4*>(output)[piece] = FromFloats(values);
      return;
    }
#pragma unroll
    for (int e = 0; e < kElements; ++e) {
      if (at + e >= begin && at + e < end) output[at + e] = static_cast<T>(values[e]);
    }
  }
};

template <typename T>
__global__ void __launch_bounds__(32 * kWarps) SoftmaxShortRows(const __grid_constant__ Params p) {
  constexpr int kElements = kPieceElements<T>;
  constexpr int kPieces = Row<T>::kPiecesOfLane;
  static_assert(kPieces * 32 * kElements >= kLongRow + kElements);
  const int index = blockIdx.x * kWarps + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (index >= p.tokens) return;
  const Row<T> row(p, index);
  if (row.length() == 0 || row.length() > kLongRow) return;
  uint4 pieces[kPieces];  // all on their way before the first is used
#pragma unroll
  for (int i = 0; i < kPieces; ++i) {
    const int piece = row.first_piece() + i * 32 + lane;
    if (row.Has(piece)) pieces[i] = row.Load(piece);
  }
  float values[kPieces][kElements], largest = -INFINITY, total = 0;
#pragma unroll
  for (int i = 0; i < kPieces; ++i) {
    const int piece = row.first_piece() + i * 32 + lane;
    if (!row.Has(piece)) break;
    row.Read(pieces[i], piece, p.scale, values[i]);
#pragma unroll
    for (int e = 0; e < kElements; ++e) largest = fmaxf(largest, values[i][e]);
  }
  largest = MaxOfLanes(largest);
#pragma unroll
  for (int i = 0; i < kPieces; ++i) {
    if (!row.Has(row.first_piece() + i * 32 + lane)) break;
#pragma unroll
    for (int e = 0; e < kElements; ++e) total += values[i][e] = PowerOfTwo(values[i][e] - largest);
  }
  const float inverse = 1 / SumOfLanes(total);
#pragma unroll
  for (int i = 0; i < kPieces; ++i) {
    const int piece = row.first_piece() + i * 32 + lane;
    if (!row.Has(piece)) break;
#pragma unroll
    for (int e = 0; e < kElements; ++e) values[i][e] *= inverse;
    row.Store(piece, values[i]);
  }
}

// The largest of all threads' values and the sum of their totals, each of which goes by its own value.
__device__ void JoinBlock(float& largest, float& total) {
  __shared__ float all_largest[kLongThreads / 32], all_totals[kLongThreads / 32];
  const float warp_largest = MaxOfLanes(largest);
  total = SumOfLanes(total * PowerOfTwo(largest - warp_largest));
  if (threadIdx.x % 32 == 0) {
    all_largest[threadIdx.x / 32] = warp_largest;
    all_totals[threadIdx.x / 32] = total;
  }
  __syncthreads();
  largest = all_largest[0];
  for (int i = 1; i < kLongThreads / 32; ++i) largest = fmaxf(largest, all_largest[i]);
  total = 0;
  for (int i = 0; i < kLongThreads / 32; ++i) total += all_totals[i] * PowerOfTwo(all_largest[i] - largest);
}

template <typename T>
__global__ void __launch_bounds__(kLongThreads) SoftmaxLongRows(const __grid_constant__ Params p) {
  constexpr int kElements = kPieceElements<T>;
  const Row<T> row(p, p.long_rows[blockIdx.x]);
  float largest = -1e30f, total = 0;
  for (int piece = row.first_piece() + threadIdx.x; row.Has(piece); piece += kLongThreads) {
    float values[kElements], before = largest;
    row.Read(row.Load(piece), piece, p.scale, values);
#pragma unroll
    for (int e = 0; e < kElements; ++e) largest = fmaxf(largest, values[e]);
    total *= PowerOfTwo(before - largest);
#pragma unroll
    for (int e = 0; e < kElements; ++e) total += PowerOfTwo(values[e] - largest);
  }
  JoinBlock(largest, total);
  const float inverse = 1 / total;
  for (int piece = row.first_piece() + threadIdx.x; row.Has(piece); piece += kLongThreads) {
    float values[kElements];
    row.Read(row.Load(piece), piece, p.scale, values);
#pragma unroll
    for (int e = 0; e < kElements; ++e) values[e] = PowerOfTwo(values[e] - largest) * inverse;
    row.Store(piece, values);
  }
}

template <typename T>
void Launch(const Params& params, int heads, int64_t long_rows, cudaStream_t queue) {
  SoftmaxShortRows<T><<<LaunchGrid(CeilDiv(params.tokens, kWarps), heads), 32 * kWarps, 0, queue>>>(params);
  if (long_rows == 0) return;
  SoftmaxLongRows<T><<<LaunchGrid(long_rows, heads), kLongThreads, 0, queue>>>(params);
}

}  // namespace

void SparseSoftmax(const SparseSoftmaxArgs& args, const DeviceAttentionPattern& pattern, cudaStream_t queue) {
  if (pattern.nnz() == 0) return;
  const Params params{args.input,
                      args.output,
                      pattern.value_stride(),
                      pattern.row_offsets(),
                      pattern.long_rows(),
                      static_cast<int>(pattern.tokens()),
                      args.scale * kLog2E};
  VisitFloat32Or16(args.dtype,
                   [&]<DType kType>() { Launch<Element<kType>>(params, args.heads, pattern.long_row_count(), queue); });
}

}  // namespace swizzle::cuda

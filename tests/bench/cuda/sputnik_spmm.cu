#include "kernels/base/integers.h"
#include "tests/bench/cuda/sputnik_spmm.h"

namespace swizzle::bench {
namespace {

constexpr int kK = 32;  // entries of a tile
constexpr int kWarp = 32;
constexpr int kAtOnce = 8;  // entries whose X is in registers at a time

template <int kVector>
struct Floats;
template <>
struct Floats<1> {
  using Float = float;
  using Int = int;
};
template <>
struct Floats<4> {
  using Float = float4;
  using Int = int4;
};

// kVector 4: up to 8 lanes a row, for 4 rows or more; kVector 1: a warp a row.
template <int kX_, int kVector_, bool kPrescaled_, bool kUnrolled_>
struct Config {
  static constexpr int kX = kX_, kVector = kVector_;
  static constexpr bool kPrescaled = kPrescaled_, kUnrolled = kUnrolled_;
  static constexpr int kLanes = kVector == 1 ? kWarp : kX < 32 ? kX / kVector : 8;
  static constexpr int kY = kWarp / kLanes;
  static constexpr int kParts = (kX + kLanes * kVector - 1) / (kLanes * kVector);  // vectors of X of a lane
};

template <typename C>
struct Subwarp {
  using Float = typename Floats<C::kVector>::Float;
  using Int = typename Floats<C::kVector>::Int;

  const float* x;  // this lane's first column
  int stride, lane, columns_left;
  float* values;  // of this row, kK in shared memory
  int* offsets;   // likewise
  float sums[C::kParts][C::kVector] = {};

  __device__ unsigned mask() const { return 0xFFFFFFFFu >> (kWarp - C::kLanes) << (threadIdx.y * C::kLanes); }
  __device__ int Scaled(int column) const { return C::kPrescaled ? column * stride : column; }

  __device__ void LoadTile(const float* from_values, const int* from_columns) {
#pragma unroll
    for (int first = 0; first < kK; first += C::kLanes * C::kVector) {
      const int at = first + lane * C::kVector;
      if constexpr (C::kVector == 4) {
        *reinterpret_cast<Float*>(values + at) = __ldg(reinterpret_cast<const Float*>(from_values + at));
        const int4 c = __ldg(reinterpret_cast<const int4*>(from_columns + at));
        *reinterpret_cast<int4*>(offsets + at) = make_int4(Scaled(c.x), Scaled(c.y), Scaled(c.z), Scaled(c.w));
      } else {
        values[at] = __ldg(from_values + at);
        offsets[at] = Scaled(__ldg(from_columns + at));
      }
    }
  }

  template <int kCount>
  __device__ void MultiplyAdd(int first) {
    Float fragment[kCount][C::kParts];
    float weights[kCount];
    int at[kCount];
    if constexpr (kCount % 4 == 0) {
#pragma unroll
      for (int i = 0; i < kCount; i += 4) {
        *reinterpret_cast<float4*>(weights + i) = *reinterpret_cast<const float4*>(values + first + i);
        *reinterpret_cast<int4*>(at + i) = *reinterpret_cast<const int4*>(offsets + first + i);
      }
    } else {
#pragma unroll
      for (int i = 0; i < kCount; ++i) weights[i] = values[first + i], at[i] = offsets[first + i];
    }
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const float* row = x + (C::kPrescaled ? at[i] : at[i] * stride);
#pragma unroll
      for (int p = 0; p < C::kParts; ++p) {
        const int column = p * C::kLanes * C::kVector;
        if (column < columns_left) fragment[i][p] = __ldg(reinterpret_cast<const Float*>(row + column));
      }
    }
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
#pragma unroll
      for (int p = 0; p < C::kParts; ++p) {
        const float* f = reinterpret_cast<const float*>(&fragment[i][p]);
#pragma unroll
        for (int v = 0; v < C::kVector; ++v) sums[p][v] = fmaf(weights[i], f[v], sums[p][v]);
      }
    }
  }

  __device__ void AddTile() {
#pragma unroll
    for (int i = 0; i < kK; i += kAtOnce) MultiplyAdd<kAtOnce>(i);
  }

  // The last `count` entries, from anywhere: through zeroed memory, in fours that need no check.
  __device__ void AddResidue(const float* from_values, const int* from_columns, int count) {
    for (int i = lane; i < kK; i += C::kLanes) {
      values[i] = i < count ? __ldg(from_values + i) : 0.0f;
      offsets[i] = i < count ? Scaled(__ldg(from_columns + i)) : 0;
    }
    __syncwarp(mask());
    if constexpr (C::kUnrolled) {
      for (int i = 0; i < count; i += 4) MultiplyAdd<4>(i);
    } else {
#pragma unroll 1
      for (int i = 0; i < count; ++i) MultiplyAdd<1>(i);
    }
  }
};

template <typename C>
__global__ __launch_bounds__(kWarp) void SputnikSpmm(SputnikMatrix matrix, const float* x, float* y, int n,
                                                     int stride) {
  __shared__ __align__(16) float values[C::kY][kK];
  __shared__ __align__(16) int offsets[C::kY][kK];
  const int at = blockIdx.x * C::kY + threadIdx.y;
  if (at >= matrix.rows) return;
  const int row = __ldg(matrix.row_order + at);
  const int column = blockIdx.y * C::kX + threadIdx.x * C::kVector;
  if (__shfl_sync(Subwarp<C>{}.mask(), column, 0, C::kLanes) >= n) return;
  Subwarp<C> subwarp{x + (column < n ? column : 0), stride,
                     static_cast<int>(threadIdx.x), column < n ? n - column : 1,
                     values[threadIdx.y],           offsets[threadIdx.y]};
  int begin = __ldg(matrix.row_offsets + row);
  int left = __ldg(matrix.row_offsets + row + 1) - begin;
  if (left >= kK) {
    const int foreign = C::kVector == 4 ? begin % 4 : 0;
    begin -= foreign, left += foreign;
    for (bool first = true; left >= kK; left -= kK, begin += kK, first = false) {
      __syncwarp(subwarp.mask());
      subwarp.LoadTile(matrix.values + begin, matrix.columns + begin);
      __syncwarp(subwarp.mask());
      for (int i = threadIdx.x; first && i < foreign; i += C::kLanes) {
        values[threadIdx.y][i] = 0, offsets[threadIdx.y][i] = 0;
      }
      __syncwarp(subwarp.mask());
      subwarp.AddTile();
    }
    __syncwarp(subwarp.mask());
  }
  subwarp.AddResidue(matrix.values + begin, matrix.columns + begin, left);
  if (column >= n) return;
#pragma unroll
  for (int p = 0; p < C::kParts; ++p) {
    const int to = column + p * C::kLanes * C::kVector;
    if (to < n) {
      *reinterpret_cast<typename Floats<C::kVector>::Float*>(y + static_cast<int64_t>(row) * stride + to) =
          *reinterpret_cast<const typename Floats<C::kVector>::Float*>(subwarp.sums[p]);
    }
  }
}

struct Launch {
  const SputnikMatrix& matrix;
  const float* x;
  float* y;
  int n, stride;
  cudaStream_t queue;

  template <typename C>
  void Queue() const {
    const dim3 grid(CeilDiv(matrix.rows, C::kY), CeilDiv(n, C::kX));
    SputnikSpmm<C><<<grid, dim3(C::kLanes, C::kY), 0, queue>>>(matrix, x, y, n, stride);
  }
  template <int kX>
  void QueueOf(const SputnikParts& parts) const {
    if (!parts.vector_loads) return Queue<Config<kX, 1, true, true>>();
    if (!parts.prescaled) return Queue<Config<kX, 4, false, true>>();
    if (!parts.unrolled_residue) return Queue<Config<kX, 4, true, false>>();
    Queue<Config<kX, 4, true, true>>();
  }
};

}  // namespace

void QueueSputnikSpmm(const SputnikMatrix& matrix, const float* x, float* y, int32_t n, int32_t stride,
                      const SputnikParts& parts, cudaStream_t queue) {
  const Launch launch = {matrix, x, y, n, stride, queue};
  switch (parts.columns) {
    case 8:
      return launch.QueueOf<8>(parts);
    case 16:
      return launch.QueueOf<16>(parts);
    case 32:
      return launch.QueueOf<32>(parts);
    default:
      return launch.QueueOf<64>(parts);
  }
}

}  // namespace swizzle::bench

// What one lane does in the kernels of conv_csr.h: entries, multiply-adds and the epilogue, for one type of X.
#ifndef SWIZZLE_KERNELS_CUDA_CONV_CSR_SPMM_LANE_CUH_
#define SWIZZLE_KERNELS_CUDA_CONV_CSR_SPMM_LANE_CUH_

#include "kernels/cuda/conv/csr/quad_csr.h"
#include "kernels/cuda/runtime/epilogue.cuh"
#include "kernels/cuda/tensor_core/operand.cuh"

namespace swizzle::cuda {

inline constexpr int kLanesOfRow = 8;

// Two weights, or columns, of 16 bits, in a register.
template <typename T>
__device__ void UnpackTwo(uint32_t raw, float& a, float& b) {
  const float2 both = UnpackPair<T>(raw);
  a = both.x, b = both.y;
}
template <typename T>
__device__ void UnpackTwo(uint32_t raw, uint32_t& a, uint32_t& b) {
  a = raw & 0xFFFFu, b = raw >> 16;
}

// Four weights, or columns, of one type, in two registers or four.
template <typename T>
struct Quadruple {
  using Raw = uint2;
  template <typename Wide>
  static __device__ void Unpack(const Raw& raw, Wide (&values)[4]) {
    UnpackTwo<T>(raw.x, values[0], values[1]), UnpackTwo<T>(raw.y, values[2], values[3]);
  }
};
template <>
struct Quadruple<float> {
  using Raw = float4;
  static __device__ void Unpack(const Raw& raw, float (&w)[4]) {
    w[0] = raw.x, w[1] = raw.y, w[2] = raw.z, w[3] = raw.w;
  }
};
template <>
struct Quadruple<uint32_t> {
  using Raw = uint4;
  static __device__ void Unpack(const Raw& raw, uint32_t (&c)[4]) {
    c[0] = raw.x, c[1] = raw.y, c[2] = raw.z, c[3] = raw.w;
  }
};

// Sixteen bytes of X.
template <typename T>
struct Vector {
  static constexpr int kSize = 8;
  static __device__ void Unpack(const uint4& raw, float (&x)[8]) {
    UnpackTwo<T>(raw.x, x[0], x[1]), UnpackTwo<T>(raw.y, x[2], x[3]);
    UnpackTwo<T>(raw.z, x[4], x[5]), UnpackTwo<T>(raw.w, x[6], x[7]);
  }
  static __device__ uint4 Pack(const float (&x)[8]) {
    return {PackPair<T>(x[0], x[1]), PackPair<T>(x[2], x[3]), PackPair<T>(x[4], x[5]), PackPair<T>(x[6], x[7])};
  }
};
template <>
struct Vector<float> {
  static constexpr int kSize = 4;
  static __device__ void Unpack(const uint4& raw, float (&x)[4]) {
    x[0] = __uint_as_float(raw.x), x[1] = __uint_as_float(raw.y), x[2] = __uint_as_float(raw.z),
    x[3] = __uint_as_float(raw.w);
  }
  static __device__ uint4 Pack(const float (&x)[4]) {
    return {__float_as_uint(x[0]), __float_as_uint(x[1]), __float_as_uint(x[2]), __float_as_uint(x[3])};
  }
};

// What kernels are given; see SpmmOperands and QuadCsr.
template <typename T, typename Column, typename Function>
struct SpmmArgs {
  const typename Quadruple<T>::Raw* weights;  // [chunks][kRows]
  const typename Quadruple<Column>::Raw* columns;
  const int32_t* rows;
  const float* bias;
  const int4* pieces;
  const int32_t* chunk_begins;
  int32_t quads, cols;
  const T* x;
  const T* residual;
  T* y;
  int64_t stride, n;
  Ending<Function> ending;
};

// The part of a row that a lane has: kVectors vectors, kLanesOfRow apart.
template <typename T, int kVectors>
struct Lane {
  static constexpr int kSize = Vector<T>::kSize;
  static constexpr int kTile = kLanesOfRow * kSize * kVectors;  // columns of a tile
  float sums[kVectors][kSize];

  __device__ void Clear() {
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
#pragma unroll
      for (int i = 0; i < kSize; ++i) sums[v][i] = 0;
    }
  }

  __device__ void MultiplyAdd(float weight, const uint4 (&x)[kVectors]) {
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      float values[kSize];
      Vector<T>::Unpack(x[v], values);
#pragma unroll
      for (int i = 0; i < kSize; ++i) sums[v][i] = fmaf(weight, values[i], sums[v][i]);
    }
  }

  // y = ending(sum + bias + residual), rounded; columns from `column` on of a row.
  __device__ void Store(const auto& args, int slot, int64_t column) {
    const int row = args.rows[slot];
    if (row < 0) return;
    const float bias = args.bias[slot];
#pragma unroll
    for (int v = 0; v < kVectors; ++v, column += kLanesOfRow * kSize) {
      if (column >= args.n) break;
      const int64_t at = row * args.stride + column;
      float residual[kSize] = {};
      if (args.residual != nullptr) Vector<T>::Unpack(*reinterpret_cast<const uint4*>(args.residual + at), residual);
#pragma unroll
      for (int i = 0; i < kSize; ++i) residual[i] = sums[v][i] + bias + residual[i];
      args.ending.template Apply<T>(residual);
      *reinterpret_cast<uint4*>(args.y + at) = Vector<T>::Pack(residual);
    }
  }
};

// X in global memory, through the first cache. Loads past the end of rows are of their first columns instead.
template <typename T, int kVectors>
struct GlobalX {
  const uint4* at[kVectors];
  int64_t stride_bytes;
  __device__ GlobalX(const T* x, int64_t stride, int64_t n, int64_t column) : stride_bytes(stride * sizeof(T)) {
#pragma unroll
    for (int v = 0; v < kVectors; ++v, column += kLanesOfRow * Vector<T>::kSize) {
      at[v] = reinterpret_cast<const uint4*>(x + (column < n ? column : 0));
    }
  }
  __device__ void Load(uint32_t row, uint4 (&x)[kVectors]) const {
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      x[v] = __ldg(reinterpret_cast<const uint4*>(reinterpret_cast<const char*>(at[v]) + row * stride_bytes));
    }
  }
};

// X's column tile in shared memory, [cols][kTile].
template <int kVectors>
struct SharedX {
  const uint4* at;
  __device__ void Load(uint32_t row, uint4 (&x)[kVectors]) const {
#pragma unroll
    for (int v = 0; v < kVectors; ++v) x[v] = at[(row * kVectors + v) * kLanesOfRow];
  }
};

// Adds chunks of a quad's row, whose entries lie at `weights` and `columns`. Those of the next chunk are read ahead,
// which is what spare chunks are for.
template <typename T, typename Column, int kVectors, typename X>
class ChunkAdder {
 public:
  __device__ ChunkAdder(const auto& args, int begin, int in_quad)
      : weights_(args.weights + int64_t{begin} * kRows + in_quad),
        columns_(args.columns + int64_t{begin} * kRows + in_quad) {
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) ReadAhead(i);
  }

  // Eight loads of X are under way at a time, or four of more than one vector: what hides the second cache's latency.
  __device__ void Add(int chunks, const X& x, Lane<T, kVectors>& lane) {
    for (; chunks >= kAtOnce; chunks -= kAtOnce) AddSome<kAtOnce>(x, lane);
    if (kAtOnce > 1 && chunks > 0) AddSome<1>(x, lane);
  }

 private:
  static constexpr int kEntries = QuadCsr::kEntries, kRows = QuadCsr::kRows;
  static constexpr int kAtOnce = kVectors == 1 ? 2 : 1;

  __device__ void ReadAhead(int i) {
    next_weights_[i] = __ldg(weights_ + i * kRows);
    next_columns_[i] = __ldg(columns_ + i * kRows);
  }

  template <int kChunks>
  __device__ void AddSome(const X& x, Lane<T, kVectors>& lane) {
    float w[kChunks][kEntries];
    uint32_t c[kChunks][kEntries];
#pragma unroll
    for (int i = 0; i < kChunks; ++i) {
      Quadruple<T>::Unpack(next_weights_[i], w[i]);
      Quadruple<Column>::Unpack(next_columns_[i], c[i]);
    }
    weights_ += kChunks * kRows, columns_ += kChunks * kRows;
    uint4 values[kChunks][kEntries][kVectors];
#pragma unroll
    for (int i = 0; i < kChunks; ++i) {
#pragma unroll
      for (int j = 0; j < kEntries; ++j) x.Load(c[i][j], values[i][j]);
    }
#pragma unroll
    for (int i = 0; i < kChunks; ++i) ReadAhead(i);
#pragma unroll
    for (int i = 0; i < kChunks; ++i) {
#pragma unroll
      for (int j = 0; j < kEntries; ++j) lane.MultiplyAdd(w[i][j], values[i][j]);
    }
  }

  const typename Quadruple<T>::Raw* weights_;
  const typename Quadruple<Column>::Raw* columns_;
  typename Quadruple<T>::Raw next_weights_[kAtOnce];
  typename Quadruple<Column>::Raw next_columns_[kAtOnce];
};

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_CONV_CSR_SPMM_LANE_CUH_

// A row of a matrix, spread over neighbouring lanes of a warp in 128-bit pieces. Device code.
#ifndef SWIZZLE_KERNELS_CUDA_ATTENTION_ROW_PIECES_CUH_
#define SWIZZLE_KERNELS_CUDA_ATTENTION_ROW_PIECES_CUH_

#include <cstdint>

#include "kernels/cuda/tensor_core/operand.cuh"

namespace swizzle::cuda {

__device__ inline void ToFloats(const uint4& piece, float (&to)[4]) {
  to[0] = __uint_as_float(piece.x);
  to[1] = __uint_as_float(piece.y);
  to[2] = __uint_as_float(piece.z);
  to[3] = __uint_as_float(piece.w);
}

__device__ inline void ToFloats(const uint4& piece, float (&to)[8]) {
  const uint32_t pairs[4] = {piece.x, piece.y, piece.z, piece.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 pair = UnpackPair<__half>(pairs[i]);
    to[2 * i] = pair.x;
    to[2 * i + 1] = pair.y;
  }
}

__device__ inline uint4 FromFloats(const float (&from)[4]) {
  return make_uint4(__float_as_uint(from[0]), __float_as_uint(from[1]), __float_as_uint(from[2]),
                    __float_as_uint(from[3]));
}

__device__ inline uint4 FromFloats(const float (&from)[8]) {
  return make_uint4(PackHalves(from[0], from[1]), PackHalves(from[2], from[3]), PackHalves(from[4], from[5]),
                    PackHalves(from[6], from[7]));
}

template <typename T>
inline constexpr int kPieceElements = 16 / sizeof(T);

// kLanes lanes, at most kMaxLanes, share a row of kHeadDim elements: lane i has the pieces i, i + kLanes, ...
template <typename T, int kHeadDim, int kMaxLanes>
struct RowPieces {
  static constexpr int kAll = kHeadDim / kPieceElements<T>;
  static constexpr int kLanes = kAll < kMaxLanes ? kAll : kMaxLanes;
  static constexpr int kPieces = kAll / kLanes;
  uint4 pieces[kPieces];

  __device__ void Load(const T* row, int lane) {
#pragma unroll
    for (int i = 0; i < kPieces; ++i) pieces[i] = __ldg(reinterpret_cast<const uint4*>(row) + i * kLanes + lane);
  }

  // This lane's part of it.
  __device__ float Dot(const RowPieces& other) const {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
      float x[kPieceElements<T>], y[kPieceElements<T>];
      ToFloats(pieces[i], x);
      ToFloats(other.pieces[i], y);
#pragma unroll
      for (int e = 0; e < kPieceElements<T>; ++e) sum = fmaf(x[e], y[e], sum);
    }
    return sum;
  }

  // sums[i] += weight * piece i
  __device__ void AddTo(float (&sums)[kPieces][kPieceElements<T>], float weight) const {
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
      float x[kPieceElements<T>];
      ToFloats(pieces[i], x);
#pragma unroll
      for (int e = 0; e < kPieceElements<T>; ++e) sums[i][e] = fmaf(weight, x[e], sums[i][e]);
    }
  }
};

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_ATTENTION_ROW_PIECES_CUH_

// Products of attention with tiles of keys and values that lie in shared memory token by token, a head's channels being
// neighbours. Device code.
//
// Beside what attention_warp.cuh asks for, a shape S says how far tokens are apart there (kPitch, in bytes, an odd
// number of pieces), how many elements (kPieceElements) are in a piece, and how many pieces in a head (kPieces).
#ifndef SWIZZLE_KERNELS_CUDA_ATTENTION_ATTENTION_TOKEN_TILES_CUH_
#define SWIZZLE_KERNELS_CUDA_ATTENTION_ATTENTION_TOKEN_TILES_CUH_

#include "kernels/cuda/attention/attention_warp.cuh"

namespace swizzle::cuda {

constexpr int kPieceBytes = 16;

// Elements as Multiply takes them.
template <typename T>
__device__ uint32_t Operand(uint32_t bits) {
  if constexpr (sizeof(T) == 2) return bits;
  return RoundToTf32(__uint_as_float(bits));
}

// scores[j] = queries by keys 8j to 8j + 7 of the tile.
template <typename S>
__device__ void Scores(uint32_t keys, int qk_size, const Group<S>& group, float (&scores)[S::kOctets][4]) {
  using T = typename S::T;
  const int lane = threadIdx.x % 32;
  // Matrices: pieces alternate, then octets of keys.
  const uint32_t row = keys + (lane / 16 * 8 + lane % 8) * S::kPitch + lane / 8 % 2 * kPieceBytes;
#pragma unroll
  for (int step = 0; step < S::kSteps; ++step) {
    if (2 * step * S::kPieceElements >= qk_size) break;
#pragma unroll
    for (int j = 0; j < S::kOctets; j += 2) {
      uint32_t b[4];
      LoadMatrices(b, row + j * 8 * S::kPitch + 2 * step * kPieceBytes);
      Multiply<T>(scores[j], group.queries[step], Operand<T>(b[0]), Operand<T>(b[1]));
      Multiply<T>(scores[j + 1], group.queries[step], Operand<T>(b[2]), Operand<T>(b[3]));
    }
  }
}

// sums += weights by values, in FP16 and BF16.
template <typename S>
__device__ void AddHalfValues(uint32_t values, int vo_size, const float (&weights)[S::kOctets][4], Group<S>& group) {
  using T = typename S::T;
  const int lane = threadIdx.x % 32;
  // Matrices: octets of keys alternate, then pieces.
  const uint32_t row = values + lane % 16 * S::kPitch + lane / 16 * kPieceBytes;
#pragma unroll
  for (int j = 0; j < S::kOctets; j += 2) {
    const uint32_t a[4] = {PackPair<T>(weights[j][0], weights[j][1]), PackPair<T>(weights[j][2], weights[j][3]),
                           PackPair<T>(weights[j + 1][0], weights[j + 1][1]),
                           PackPair<T>(weights[j + 1][2], weights[j + 1][3])};
#pragma unroll
    for (int piece = 0; piece < S::kPieces; piece += 2) {
      if (piece * S::kPieceElements >= vo_size) break;
      uint32_t b[4];
      LoadTransposed(b, row + j * 8 * S::kPitch + piece * kPieceBytes);
      Multiply<T>(group.sums[piece], a, b[0], b[1]);
      Multiply<T>(group.sums[piece + 1], a, b[2], b[3]);
    }
  }
}

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_ATTENTION_ATTENTION_TOKEN_TILES_CUH_

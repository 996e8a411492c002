#include <algorithm>
#include <bit>

#include "kernels/cuda/attention/split_operands.h"
#include "kernels/cuda/runtime/elements.cuh"
#include "kernels/cuda/tensor_core/operand.cuh"

namespace swizzle::cuda {
namespace {

// Eight FP32 numbers to FP16 parts.
__device__ void SplitPiece(const float4& a, const float4& b, float factor, uint4& upper, uint4& rest) {
  const float x[8] = {a.x * factor, a.y * factor, a.z * factor, a.w * factor,
                      b.x * factor, b.y * factor, b.z * factor, b.w * factor};
  upper = make_uint4(PackHalves(x[0], x[1]), PackHalves(x[2], x[3]), PackHalves(x[4], x[5]), PackHalves(x[6], x[7]));
  rest = make_uint4(PackHalves(RestOf(x[0]), RestOf(x[1])), PackHalves(RestOf(x[2]), RestOf(x[3])),
                    PackHalves(RestOf(x[4]), RestOf(x[5])), PackHalves(RestOf(x[6]), RestOf(x[7])));
}

// The largest magnitude of each head of queries, keys and values, as bits; rows have 4 << shift elements.
__global__ void FindLargest(HeadMatrices queries, HeadMatrices keys, HeadMatrices values, int tokens, int shift,
                            uint32_t* largest) {
  const HeadMatrices& matrix = blockIdx.z == 0 ? queries : blockIdx.z == 1 ? keys : values;
  const auto* head = static_cast<const float*>(matrix.data) + blockIdx.y * matrix.head_stride;
  float most = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < tokens << shift; i += gridDim.x * blockDim.x) {
    const float4 x =
        *reinterpret_cast<const float4*>(head + (i >> shift) * matrix.token_stride + (i & ((1 << shift) - 1)) * 4);
    most = fmaxf(most, fmaxf(fmaxf(fabsf(x.x), fabsf(x.y)), fmaxf(fabsf(x.z), fabsf(x.w))));
  }
  most = MaxOfLanes(most);
  if (threadIdx.x % 32 == 0) atomicMax(largest + blockIdx.z * gridDim.y + blockIdx.y, __float_as_uint(most));
}

// Keys (blockIdx.z 0) and values to rows of upper parts and rests: [2][heads][tokens][parts][head dim].
__global__ void SplitRows(HeadMatrices keys, HeadMatrices values, int tokens, int pieces, const uint32_t* largest,
                          uint4* parts) {
  const HeadMatrices& matrix = blockIdx.z == 0 ? keys : values;
  const int i = blockIdx.x * blockDim.x + threadIdx.x, token = i / pieces, piece = i % pieces;
  if (token >= tokens) return;
  const auto* head = static_cast<const float*>(matrix.data) + blockIdx.y * matrix.head_stride;
  const auto* from = reinterpret_cast<const float4*>(head + token * matrix.token_stride) + 2 * piece;
  const float factor = FitOf(largest[(blockIdx.z + 1) * gridDim.y + blockIdx.y]).factor;
  uint4* to = parts + ((int64_t{blockIdx.z} * gridDim.y + blockIdx.y) * tokens + token) * 2 * pieces + piece;
  SplitPiece(from[0], from[1], factor, to[0], to[pieces]);
}

constexpr size_t kLargestBytes = 4096;
constexpr int kMaxHeads = kLargestBytes / 12;
constexpr int64_t kMostSearchers = 128;  // blocks that look for the largest of a head

size_t PartBytes(const Operands& operands) {
  return operands.heads * operands.tokens * operands.head_dim * 2 * sizeof(__half);
}

}  // namespace

size_t SplitBytes(const Operands& operands) {
  return kLargestBytes + (operands.values.data == nullptr ? 1 : 2) * PartBytes(operands);
}

SplitOperands Split(const Operands& operands, std::span<std::byte> workspace, cudaStream_t queue) {
  constexpr int kThreads = 256;
  SWIZZLE_CHECK(operands.heads <= kMaxHeads);
  const bool values = operands.values.data != nullptr;
  auto* largest = reinterpret_cast<uint32_t*>(workspace.data());
  std::byte* parts = workspace.data() + kLargestBytes;
  const int tokens = static_cast<int>(operands.tokens), pieces = operands.head_dim / 8;
  const int64_t blocks = CeilDiv(operands.tokens * pieces, kThreads);
  cudaMemsetAsync(largest, 0, kLargestBytes, queue);
  FindLargest<<<LaunchGrid(std::min(blocks, kMostSearchers), operands.heads, values ? 3 : 2), kThreads, 0, queue>>>(
      operands.queries, operands.keys, operands.values, tokens, std::bit_width(static_cast<unsigned>(pieces)), largest);
  SplitRows<<<LaunchGrid(blocks, operands.heads, values ? 2 : 1), kThreads, 0, queue>>>(
      operands.keys, operands.values, tokens, pieces, largest, reinterpret_cast<uint4*>(parts));
  const int64_t row = 2 * operands.head_dim;
  return {.keys = {parts, row, row * tokens},
          .values = {values ? parts + PartBytes(operands) : nullptr, row, row * tokens},
          .largest = largest};
}

}  // namespace swizzle::cuda

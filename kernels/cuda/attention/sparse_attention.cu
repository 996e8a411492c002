#include "kernels/cuda/attention/attention_tile.cuh"
#include "kernels/cuda/attention/sparse_attention.h"
#include "kernels/cuda/attention/split_operands.h"
#include "kernels/cuda/runtime/launch_grid.h"
#include "kernels/cuda/runtime/powers.cuh"
#include "kernels/cuda/runtime/shared_memory.h"

namespace swizzle::cuda {
namespace {

// How far scores, in units of log(2), may lie above their reference before that is raised, to kHeadroom below the
// largest: weights are at most 2^14, which FP16 holds, and most blocks of keys need no reduction over the warp.
constexpr float kSlack = 14.0f;
constexpr float kHeadroom = 6.0f;

// Raises the references to the largest score so far, and brings sums and totals in line.
template <typename C>
__device__ void RaiseReferences(const float (&scores)[C::kOctetGroups][4], float scale, Group<C>& group) {
#pragma unroll
  for (int j = 0; j < C::kOctetGroups; ++j) {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      float largest = fmaxf(scores[j][e], scores[j][e + 2]) * scale;
#pragma unroll
      for (int lanes = 4; lanes < 32; lanes *= 2) {
        largest = fmaxf(largest, __shfl_xor_sync(0xFFFFFFFFu, largest, lanes));
      }
      const float before = group.references[j][e], after = fmaxf(before, largest - kHeadroom);
      const float growth = PowerOfTwo(before - after);
      group.references[j][e] = after;
      group.totals[j][e] *= growth;
#pragma unroll
      for (int i = 0; i < C::kHeadDim / 16; ++i) {
        group.sums[i][j][e] *= growth;
        group.sums[i][j][e + 2] *= growth;
      }
    }
  }
}

// Masked scores become weights, 2^(score - reference), and are added to the totals.
template <typename C, bool kFull>
__device__ void Weigh(uint32_t entry_a, uint32_t entry_b, float scale, Group<C>& group,
                      float (&scores)[C::kOctetGroups][4]) {
  const int t = threadIdx.x % 4;
  const uint32_t masks[2] = {entry_a >> (16 + 2 * t), entry_b >> (16 + 2 * t)};
  float excess = kLeast;
#pragma unroll
  for (int j = 0; j < C::kOctetGroups; ++j) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      if (!kFull && (masks[e / 2] >> (8 * j + e % 2) & 1) == 0) scores[j][e] = -INFINITY;
      excess = fmaxf(excess, fmaf(scores[j][e], scale, -group.references[j][e % 2]));
    }
  }
  if (__any_sync(0xFFFFFFFFu, excess > kSlack)) RaiseReferences<C>(scores, scale, group);
#pragma unroll
  for (int j = 0; j < C::kOctetGroups; ++j) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      scores[j][e] = PowerOfTwo(fmaf(scores[j][e], scale, -group.references[j][e % 2]));
      group.totals[j][e % 2] += scores[j][e];
    }
  }
}

// O^T += V^T P^T for 16 keys, the lane's row for ldmatrix being at `values`. FP32's products are added up outside of
// the tensor cores, which cut sums off: over thousands of keys that would show.
template <typename C>
__device__ void AddValues(uint32_t values, const float (&weights)[C::kOctetGroups][4], Group<C>& group) {
  uint32_t depth[C::kOctetGroups][2], rest[C::kOctetGroups][2];
#pragma unroll
  for (int j = 0; j < C::kOctetGroups; ++j) {
    depth[j][0] = TransposeInWarp(PackHalves(weights[j][0], weights[j][1]));
    depth[j][1] = TransposeInWarp(PackHalves(weights[j][2], weights[j][3]));
    if constexpr (!C::kHalf) {
      rest[j][0] = TransposeInWarp(PackHalves(RestOf(weights[j][0]), RestOf(weights[j][1])));
      rest[j][1] = TransposeInWarp(PackHalves(RestOf(weights[j][2]), RestOf(weights[j][3])));
    }
  }
#pragma unroll
  for (int i = 0; i < C::kHeadDim / 16; ++i) {
    uint32_t a[4];
    LoadTransposed(a, Further(values, 2 * i));
    if constexpr (C::kHalf) {
#pragma unroll
      for (int j = 0; j < C::kOctetGroups; ++j) Mma<__half>(group.sums[i][j], a, depth[j][0], depth[j][1]);
    } else {
      uint32_t a_rest[4];
      LoadTransposed(a_rest, Further(values, C::kPartPieces + 2 * i));
#pragma unroll
      for (int j = 0; j < C::kOctetGroups; ++j) {
        float more[4] = {};
        Mma<__half>(more, a, rest[j][0], rest[j][1]);
        Mma<__half>(more, a_rest, depth[j][0], depth[j][1]);
        Mma<__half>(more, a, depth[j][0], depth[j][1]);
#pragma unroll
        for (int e = 0; e < 4; ++e) group.sums[i][j][e] += more[e];
      }
    }
  }
}

// 16 keys of a group's list.
template <typename C, bool kFull>
__device__ void AttendKeys(uint32_t keys, const Rows<kFull>& rows, float scale, Group<C>& group) {
  const int lane = threadIdx.x % 32, row = lane % 8, matrix = lane / 8;
  // Matrices: of keys, octets alternate and then pieces; of values, pieces and then octets.
  const uint32_t key_row = rows.At(matrix % 2 * 8 + row), value_row = rows.At(matrix / 2 * 8 + row);
  float scores[C::kOctetGroups][4];
  Scores<C>(PieceAddress<C>(keys, key_row & 0xFFFF, matrix / 2), group, scores);
  Weigh<C, kFull>(rows.At(lane / 4), rows.At(8 + lane / 4), scale, group, scores);
  AddValues<C>(PieceAddress<C>(keys + C::kMatrixBytes, value_row & 0xFFFF, matrix % 2), scores, group);
}

template <typename C>
__device__ void AttendStage(const char* stage, float scale, Group<C>& group) {
  const uint32_t keys = SharedAddress(stage);
  const auto* lists = reinterpret_cast<const uint32_t*>(stage + 2 * C::kMatrixBytes);
  const uint32_t header = lists[C::kListBytes / 4 + threadIdx.x / 32];
  if (header == AttentionTiles::kFull) {
    for (int key = 0; key < C::kKeyBlock; key += 16) AttendKeys<C, true>(keys, Rows<true>{lists, key}, scale, group);
    return;
  }
  const uint32_t* list = lists + (header & 0xFFFF) * AttentionTiles::kOctet;
  const int octets = header >> 16;
  for (int octet = 0; octet < octets; octet += 2) {
    AttendKeys<C, false>(keys, Rows<false>{list + octet * AttentionTiles::kOctet, 0}, scale, group);
  }
}

// Two neighbouring dimensions of the row, from the same of two neighbouring queries.
__device__ inline void WritePair(float x, float y, bool real, float* to) {
  TransposeInWarp(x, y);
  if (real) *reinterpret_cast<float2*>(to) = make_float2(x, y);
}
__device__ inline void WritePair(float x, float y, bool real, __half* to) {
  const uint32_t pair = TransposeInWarp(PackHalves(x, y));
  if (real) *reinterpret_cast<uint32_t*>(to) = pair;
}

template <typename C>
__device__ void WriteOutput(const TileParams& p, int first_query, const Group<C>& group) {
  using T = typename C::Element;
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  const float fit = C::kHalf ? 1.0f : FitOf(p.largest[2 * p.heads + blockIdx.y]).inverse;
#pragma unroll
  for (int j = 0; j < C::kOctetGroups; ++j) {
    float inverse[2];
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      float total = group.totals[j][e];
#pragma unroll
      for (int lanes = 4; lanes < 32; lanes *= 2) total += __shfl_xor_sync(0xFFFFFFFFu, total, lanes);
      inverse[e] = total == 0 ? 0 : fit / total;
    }
    const int query = first_query + 8 * j + g;
    const bool real = query < p.tokens;
    T* row = static_cast<T*>(p.output.data) + blockIdx.y * p.output.head_stride + query * p.output.token_stride + 2 * t;
#pragma unroll
    for (int i = 0; i < C::kHeadDim / 16; ++i) {
      const float(&c)[4] = group.sums[i][j];
      WritePair(c[0] * inverse[0], c[1] * inverse[1], real, row + 16 * i);
      WritePair(c[2] * inverse[0], c[3] * inverse[1], real, row + 16 * i + 8);
    }
  }
}

template <typename C>
__global__ void __launch_bounds__(C::kThreads) AttendTile(const __grid_constant__ TileParams p) {
  extern __shared__ __align__(128) char shared[];
  const int tile = p.order[blockIdx.x];
  const int first_query = (tile * C::kWarps + threadIdx.x / 32) * C::kGroup;
  float scale = p.scale;
  if constexpr (!C::kHalf)
    scale *= FitOf(p.largest[blockIdx.y]).inverse * FitOf(p.largest[p.heads + blockIdx.y]).inverse;
  Group<C> group;
  LoadQueries<C>(p, first_query, group);
  ForEachStage<C>(p, tile, shared, [&](const char* stage) { AttendStage<C>(stage, scale, group); });
  WriteOutput<C>(p, first_query, group);
}

Operands OperandsOf(const SparseAttentionArgs& args, int64_t tokens) {
  return {args.queries, args.keys, args.values, tokens, args.heads, args.head_dim};
}

template <typename C>
void Launch(const SparseAttentionArgs& args, const DeviceAttentionTiles& tiles, std::span<std::byte> workspace,
            cudaStream_t queue) {
  AllowSharedMemory(AttendTile<C>, C::kSharedBytes);
  TileParams params = TileParamsOf(tiles, args.queries, args.keys, args.values);
  params.output = args.output;
  params.heads = args.heads;
  params.scale = args.scale * kLog2E;
  if constexpr (!C::kHalf) {
    const SplitOperands split = Split(OperandsOf(args, tiles.tokens()), workspace, queue);
    params.keys = split.keys;
    params.values = split.values;
    params.largest = split.largest;
  }
  AttendTile<C><<<LaunchGrid(tiles.tiles(), args.heads), C::kThreads, C::kSharedBytes, queue>>>(params);
}

}  // namespace

AttentionTileShape FusedTileShape(DType dtype, int head_dim, const AttentionStructure& structure) {
  if (structure.kind == AttentionStructure::Kind::kBlocks) return {16, 8, 64};
  if (dtype == DType::kFloat32 && head_dim == 128) return {8, 16, 64};
  return {16, 12, 128};
}

size_t FusedWorkspaceBytes(const SparseAttentionArgs& args, int64_t tokens) {
  return args.dtype == DType::kFloat32 ? SplitBytes(OperandsOf(args, tokens)) : 0;
}

void FusedSparseAttention(const SparseAttentionArgs& args, const DeviceAttentionTiles& tiles,
                          std::span<std::byte> workspace, cudaStream_t queue) {
  if (tiles.tiles() == 0) return;
  WithTile(args.dtype, args.head_dim, tiles.shape(),
           [&](auto config) { Launch<decltype(config)>(args, tiles, workspace, queue); });
}

}  // namespace swizzle::cuda

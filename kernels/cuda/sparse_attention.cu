#include "kernels/cuda/sparse_attention.h"

#include <algorithm>
#include <bit>
#include <type_traits>

#include "kernels/cuda/attention_mma.cuh"

namespace swizzle::cuda {
namespace {

constexpr float kLeast = -1e30f;
constexpr float kLog2E = 1.44269504f;
// How far scores, in units of log(2), may lie above their reference before that is raised, to kHeadroom below the largest:
// weights are at most 2^14, which FP16 holds, and most blocks of keys need no reduction over the warp.
constexpr float kSlack = 14.0f;
constexpr float kHeadroom = 6.0f;

// Groups of `warps` warps, blocks of `key_block` keys, of which `stages` are in flight. In shared memory a row of keys or
// values is its FP16 numbers, or those of its upper parts and then those of its rests.
template <typename T, int head_dim, int warps, int key_block, int stages>
struct Config {
  using Element = T;
  static constexpr bool kHalf = std::is_same_v<T, __half>;
  static constexpr int kHeadDim = head_dim, kWarps = warps, kKeyBlock = key_block, kStages = stages;
  static constexpr int kThreads = 32 * warps;
  static constexpr int kParts = kHalf ? 1 : 2;
  static constexpr int kOctetGroups = kHalf ? 2 : 1;  // of 8 queries
  static constexpr int kGroup = 8 * kOctetGroups;
  static constexpr int kPartPieces = head_dim / 8;  // of 16 bytes
  static constexpr int kPieces = kParts * kPartPieces;
  static constexpr int kSteps = head_dim / 16;  // of products
  static constexpr int kRowBytes = 16 * kPieces;
  static constexpr int kMatrixBytes = key_block * kRowBytes;
  static constexpr int kListBytes = warps * key_block * 4;
  static constexpr int kHeaderBytes = warps * 4;
  static constexpr int kStageBytes = (2 * kMatrixBytes + kListBytes + kHeaderBytes + 127) / 128 * 128;
  static constexpr int kSharedBytes = stages * kStageBytes;
  static_assert(kThreads % kPieces == 0, "a thread copies the same piece of every row it copies of");
  static_assert(kHeaderBytes % 16 == 0 && kSharedBytes <= 227 * 1024);
};

struct FusedParams {
  HeadMatrices queries;       // of elements
  HeadMatrices keys, values;  // of FP16 numbers: the elements, or their parts
  const uint32_t* largest;    // FP32: of queries, keys and values, by head
  MutableHeadMatrices output;
  const uint32_t* tile_offsets;
  const AttentionTiles::Entry* entries;
  const uint32_t* headers;
  const uint32_t* lists;
  const uint32_t* order;
  int tokens;
  int heads;
  float scale;  // in units of log(2)
};

// Which 16-byte piece of a row holds the piece 0; piece i lies at i ^ that. Among eight keys of different remainders modulo 8
// all differ, so that ldmatrix reads eight rows without conflict.
__device__ inline int Swizzle(int key) { return key & 7; }

// Where piece `piece`, 0 or 1, of a row of keys or values lies in shared memory, and a piece that is `more`, an even number,
// further: matrices start on 128 bytes.
template <typename C>
__device__ uint32_t PieceAddress(uint32_t matrix, int key, int piece) {
  return matrix + key * C::kRowBytes + ((piece ^ (Swizzle(key) & (C::kPieces - 1))) * 16);
}
__device__ inline uint32_t Further(uint32_t address, int more) { return (address ^ (more & 7) * 16) + (more >> 3) * 128; }

// The keys of 16 rows of a product: `key | mask << 16` by position.
template <bool kFull>
struct Rows {
  const uint32_t* list;
  int first;  // full: the first key

  __device__ uint32_t At(int position) const {
    if constexpr (kFull) return static_cast<uint32_t>(first + position);
    return list[position];
  }
};

// What a warp holds of its group of queries.
template <typename C>
struct Group {
  uint2 queries[C::kSteps][C::kOctetGroups][C::kParts];
  float sums[C::kHeadDim / 16][C::kOctetGroups][4];  // O^T
  float references[C::kOctetGroups][2];              // of queries 2t and 2t + 1, in units of log(2)
  float totals[C::kOctetGroups][2];                  // this lane's part
};

// The power of two that brings the largest number to 2^14, and its inverse.
struct Fit {
  float factor, inverse;
};
__device__ inline Fit FitOf(uint32_t largest) {
  const int exponent = max(static_cast<int>(largest >> 23), 27);
  return {__int_as_float((268 - exponent) << 23), __int_as_float((exponent - 14) << 23)};
}

// Eight FP32 numbers to FP16 parts.
__device__ inline void SplitPiece(const float4& a, const float4& b, float factor, uint4& upper, uint4& rest) {
  const float x[8] = {a.x * factor, a.y * factor, a.z * factor, a.w * factor,
                      b.x * factor, b.y * factor, b.z * factor, b.w * factor};
  upper = make_uint4(PackHalves(x[0], x[1]), PackHalves(x[2], x[3]), PackHalves(x[4], x[5]), PackHalves(x[6], x[7]));
  rest = make_uint4(PackHalves(RestOf(x[0]), RestOf(x[1])), PackHalves(RestOf(x[2]), RestOf(x[3])),
                    PackHalves(RestOf(x[4]), RestOf(x[5])), PackHalves(RestOf(x[6]), RestOf(x[7])));
}

// Elements 2t and 2t + 1, and those 8 further.
__device__ inline void LoadStep(const __half* row, float, uint2 (&parts)[1]) {
  const auto* pairs = reinterpret_cast<const uint32_t*>(row);
  parts[0] = make_uint2(pairs[0], pairs[4]);
}
__device__ inline void LoadStep(const float* row, float factor, uint2 (&parts)[2]) {
  const auto* pairs = reinterpret_cast<const float2*>(row);
  const float2 a = pairs[0], b = pairs[4];
  const float x[4] = {a.x * factor, a.y * factor, b.x * factor, b.y * factor};
  parts[0] = make_uint2(PackHalves(x[0], x[1]), PackHalves(x[2], x[3]));
  parts[1] = make_uint2(PackHalves(RestOf(x[0]), RestOf(x[1])), PackHalves(RestOf(x[2]), RestOf(x[3])));
}

template <typename C>
__device__ void LoadQueries(const FusedParams& p, int first_query, Group<C>& group) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  const auto* head = static_cast<const typename C::Element*>(p.queries.data) + blockIdx.y * p.queries.head_stride;
  const float factor = C::kHalf ? 1.0f : FitOf(p.largest[blockIdx.y]).factor;
#pragma unroll
  for (int j = 0; j < C::kOctetGroups; ++j) {
    const int query = first_query + 8 * j + g;
#pragma unroll
    for (int s = 0; s < C::kSteps; ++s) {
      for (uint2& part : group.queries[s][j]) part = make_uint2(0, 0);
      if (query >= p.tokens) continue;
      LoadStep(head + query * p.queries.token_stride + 16 * s + 2 * t, factor, group.queries[s][j]);
    }
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      group.references[j][e] = kLeast;
      group.totals[j][e] = 0;
    }
#pragma unroll
    for (int i = 0; i < C::kHeadDim / 16; ++i) {
#pragma unroll
      for (int e = 0; e < 4; ++e) group.sums[i][j][e] = 0;
    }
  }
}

// Begins to copy a block of keys and values, and the groups' lists of it.
template <typename C>
__device__ void LoadStage(const FusedParams& p, const AttentionTiles::Entry& entry, int entry_index, uint32_t stage) {
  constexpr int kRowsAtOnce = C::kThreads / C::kPieces;
  const int piece = threadIdx.x % C::kPieces;
  const int first_key = entry.key_block * C::kKeyBlock;
  const uint32_t keys = stage, values = keys + C::kMatrixBytes;
  const auto* key_head = static_cast<const __half*>(p.keys.data) + blockIdx.y * p.keys.head_stride + piece * 8;
  const auto* value_head = static_cast<const __half*>(p.values.data) + blockIdx.y * p.values.head_stride + piece * 8;
#pragma unroll 4
  for (int key = threadIdx.x / C::kPieces; key < C::kKeyBlock; key += kRowsAtOnce) {
    const uint32_t to = key * C::kRowBytes + (piece ^ (Swizzle(key) & (C::kPieces - 1))) * 16;
    const bool real = first_key + key < p.tokens;
    const int64_t token = real ? first_key + key : 0;
    CopyAsync(keys + to, key_head + token * p.keys.token_stride, real);
    CopyAsync(values + to, value_head + token * p.values.token_stride, real);
  }
  const uint32_t lists = values + C::kMatrixBytes;
  for (int i = threadIdx.x; i < static_cast<int>(entry.octets) * 2; i += C::kThreads) {
    CopyAsync(lists + i * 16, p.lists + int64_t{entry.first_octet} * AttentionTiles::kOctet + i * 4, true);
  }
  if (threadIdx.x < C::kWarps / 4) {
    CopyAsync(lists + C::kListBytes + threadIdx.x * 16, p.headers + entry_index * C::kWarps + threadIdx.x * 4, true);
  }
}

// S^T of 16 keys, the lane's row for ldmatrix being at `keys`. Two sums halve the chain of dependent products.
template <typename C>
__device__ void Scores(uint32_t keys, const Group<C>& group, float (&scores)[C::kOctetGroups][4]) {
  float sums[2][C::kOctetGroups][4] = {};
#pragma unroll
  for (int s = 0; s < C::kSteps; ++s) {
    uint32_t a[4];
    LoadMatrices(a, Further(keys, 2 * s));
    if constexpr (C::kHalf) {
#pragma unroll
      for (int j = 0; j < C::kOctetGroups; ++j) {
        MmaHalf(sums[s % 2][j], a, group.queries[s][j][0].x, group.queries[s][j][0].y);
      }
    } else {
      uint32_t a_rest[4];
      LoadMatrices(a_rest, Further(keys, C::kPartPieces + 2 * s));
      const uint2 q = group.queries[s][0][0], q_rest = group.queries[s][0][1];
      MmaHalf(sums[s % 2][0], a, q.x, q.y);
      MmaHalf(sums[(s + 1) % 2][0], a, q_rest.x, q_rest.y);
      MmaHalf(sums[s % 2][0], a_rest, q.x, q.y);
    }
  }
#pragma unroll
  for (int j = 0; j < C::kOctetGroups; ++j) {
#pragma unroll
    for (int e = 0; e < 4; ++e) scores[j][e] = sums[0][j][e] + sums[1][j][e];
  }
}

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

// O^T += V^T P^T for 16 keys, the lane's row for ldmatrix being at `values`. FP32's products are added up outside of the
// tensor cores, which cut sums off: over thousands of keys that would show.
template <typename C>
__device__ void AddValues(uint32_t values, const float (&weights)[C::kOctetGroups][4], Group<C>& group) {
  uint32_t depth[C::kOctetGroups][2], rest[2];
#pragma unroll
  for (int j = 0; j < C::kOctetGroups; ++j) {
    depth[j][0] = TransposeInWarp(PackHalves(weights[j][0], weights[j][1]));
    depth[j][1] = TransposeInWarp(PackHalves(weights[j][2], weights[j][3]));
  }
  if constexpr (!C::kHalf) {
    rest[0] = TransposeInWarp(PackHalves(RestOf(weights[0][0]), RestOf(weights[0][1])));
    rest[1] = TransposeInWarp(PackHalves(RestOf(weights[0][2]), RestOf(weights[0][3])));
  }
#pragma unroll
  for (int i = 0; i < C::kHeadDim / 16; ++i) {
    uint32_t a[4];
    LoadTransposed(a, Further(values, 2 * i));
    if constexpr (C::kHalf) {
#pragma unroll
      for (int j = 0; j < C::kOctetGroups; ++j) MmaHalf(group.sums[i][j], a, depth[j][0], depth[j][1]);
    } else {
      uint32_t a_rest[4];
      LoadTransposed(a_rest, Further(values, C::kPartPieces + 2 * i));
      float more[4] = {};
      MmaHalf(more, a, rest[0], rest[1]);
      MmaHalf(more, a_rest, depth[0][0], depth[0][1]);
      MmaHalf(more, a, depth[0][0], depth[0][1]);
#pragma unroll
      for (int e = 0; e < 4; ++e) group.sums[i][0][e] += more[e];
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
__device__ void WriteOutput(const FusedParams& p, int first_query, const Group<C>& group) {
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
__global__ void __launch_bounds__(C::kThreads) AttendTile(const __grid_constant__ FusedParams p) {
  extern __shared__ __align__(128) char shared[];
  const int tile = p.order[blockIdx.x];
  const int begin = p.tile_offsets[tile], end = p.tile_offsets[tile + 1];
  const int first_query = (tile * C::kWarps + threadIdx.x / 32) * C::kGroup;
  float scale = p.scale;
  if constexpr (!C::kHalf) scale *= FitOf(p.largest[blockIdx.y]).inverse * FitOf(p.largest[p.heads + blockIdx.y]).inverse;
  Group<C> group;
  LoadQueries<C>(p, first_query, group);
  for (int i = 0; i < C::kStages - 1; ++i) {
    if (begin + i < end) LoadStage<C>(p, p.entries[begin + i], begin + i, SharedAddress(shared) + i * C::kStageBytes);
    CommitCopies();
  }
  int stage = 0, next_stage = C::kStages - 1;
  AttentionTiles::Entry next = p.entries[min(begin + C::kStages - 1, max(begin, end - 1))];
  for (int i = begin; i < end; ++i) {
    WaitForCopies<C::kStages - 2>();
    __syncthreads();  // the copies of all threads are there, and nobody reads the stage before this one any more
    const int ahead = i + C::kStages - 1;
    if (ahead < end) {
      LoadStage<C>(p, next, ahead, SharedAddress(shared) + next_stage * C::kStageBytes);
      next = p.entries[min(ahead + 1, end - 1)];
    }
    CommitCopies();
    AttendStage<C>(shared + stage * C::kStageBytes, scale, group);
    stage = stage + 1 == C::kStages ? 0 : stage + 1;
    next_stage = next_stage + 1 == C::kStages ? 0 : next_stage + 1;
  }
  WriteOutput<C>(p, first_query, group);
}

// The largest magnitude of each head of queries, keys and values, as bits; rows have 4 << shift elements.
__global__ void FindLargest(HeadMatrices queries, HeadMatrices keys, HeadMatrices values, int tokens, int shift,
                            uint32_t* largest) {
  const HeadMatrices& matrix = blockIdx.z == 0 ? queries : blockIdx.z == 1 ? keys : values;
  const auto* head = static_cast<const float*>(matrix.data) + blockIdx.y * matrix.head_stride;
  float most = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < tokens << shift; i += gridDim.x * blockDim.x) {
    const float4 x = *reinterpret_cast<const float4*>(head + (i >> shift) * matrix.token_stride + (i & ((1 << shift) - 1)) * 4);
    most = fmaxf(most, fmaxf(fmaxf(fabsf(x.x), fabsf(x.y)), fmaxf(fabsf(x.z), fabsf(x.w))));
  }
  const uint32_t warp_most = __reduce_max_sync(0xFFFFFFFFu, __float_as_uint(most));
  if (threadIdx.x % 32 == 0) atomicMax(largest + blockIdx.z * gridDim.y + blockIdx.y, warp_most);
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

size_t PartBytes(const SparseAttentionArgs& args, int64_t tokens) {
  return args.heads * tokens * args.head_dim * 2 * sizeof(__half);
}

// Splits keys and values into the workspace, and points the parameters there.
void SplitOperands(const SparseAttentionArgs& args, std::span<std::byte> workspace, FusedParams& params,
                   cudaStream_t queue) {
  constexpr int kThreads = 256;
  auto* largest = reinterpret_cast<uint32_t*>(workspace.data());
  std::byte* parts = workspace.data() + kLargestBytes;
  const int pieces = args.head_dim / 8;
  const unsigned heads = args.heads, blocks = (params.tokens * pieces + kThreads - 1) / kThreads;
  cudaMemsetAsync(largest, 0, kLargestBytes, queue);
  FindLargest<<<dim3(std::min(blocks, 128u), heads, 3), kThreads, 0, queue>>>(args.queries, args.keys, args.values,
                                                                             params.tokens, std::bit_width(static_cast<unsigned>(pieces)), largest);
  SplitRows<<<dim3(blocks, heads, 2), kThreads, 0, queue>>>(args.keys, args.values, params.tokens, pieces, largest,
                                                            reinterpret_cast<uint4*>(parts));
  const int64_t row = 2 * args.head_dim;
  params.keys = {parts, row, row * params.tokens};
  params.values = {parts + PartBytes(args, params.tokens), row, row * params.tokens};
  params.largest = largest;
}

template <typename C>
void Launch(const SparseAttentionArgs& args, const DeviceAttentionTiles& tiles, std::span<std::byte> workspace,
            cudaStream_t queue) {
  cudaFuncSetAttribute(AttendTile<C>, cudaFuncAttributeMaxDynamicSharedMemorySize, C::kSharedBytes);
  FusedParams params{.queries = args.queries,
                     .keys = args.keys,
                     .values = args.values,
                     .largest = nullptr,
                     .output = args.output,
                     .tile_offsets = tiles.tile_offsets(),
                     .entries = tiles.entries(),
                     .headers = tiles.headers(),
                     .lists = tiles.lists(),
                     .order = tiles.order(),
                     .tokens = static_cast<int>(tiles.tokens()),
                     .heads = args.heads,
                     .scale = args.scale * kLog2E};
  if constexpr (!C::kHalf) SplitOperands(args, workspace, params, queue);
  const dim3 grid(static_cast<unsigned>(tiles.tiles()), args.heads);
  AttendTile<C><<<grid, C::kThreads, C::kSharedBytes, queue>>>(params);
}

// FP16: 12 groups of 16 queries where the pattern is scattered, for more use of each block read; 8, in line with blocks of
// 128 queries, where it is blocked. FP32: 16 groups of 8 queries, whose
// unions of keys are smaller: a key costs more.
template <int kHeadDim>
void LaunchHalf(const SparseAttentionArgs& args, const DeviceAttentionTiles& tiles, cudaStream_t queue) {
  if (tiles.shape().groups == 8) return Launch<Config<__half, kHeadDim, 8, 64, 3>>(args, tiles, {}, queue);
  Launch<Config<__half, kHeadDim, 12, 128, kHeadDim == 128 ? 2 : 3>>(args, tiles, {}, queue);
}

}  // namespace

AttentionTileShape FusedTileShape(DType dtype, int head_dim, const AttentionStructure& structure) {
  if (dtype == DType::kFloat32) return {8, 16, head_dim == 128 ? 64 : 128};
  if (structure.kind == AttentionStructure::Kind::kBlocks) return {16, 8, 64};
  return {16, 12, 128};
}

size_t FusedWorkspaceBytes(const SparseAttentionArgs& args, int64_t tokens) {
  return args.dtype == DType::kFloat16 ? 0 : kLargestBytes + 2 * PartBytes(args, tokens);
}

void FusedSparseAttention(const SparseAttentionArgs& args, const DeviceAttentionTiles& tiles,
                          std::span<std::byte> workspace, cudaStream_t queue) {
  if (tiles.tiles() == 0) return;
  SWIZZLE_CHECK(args.heads <= kMaxHeads);
  const bool half = args.dtype == DType::kFloat16;
  switch (args.head_dim) {
    case 32:
      if (half) return LaunchHalf<32>(args, tiles, queue);
      return Launch<Config<float, 32, 16, 128, 3>>(args, tiles, workspace, queue);
    case 64:
      if (half) return LaunchHalf<64>(args, tiles, queue);
      return Launch<Config<float, 64, 16, 128, 3>>(args, tiles, workspace, queue);
    case 128:
      if (half) return LaunchHalf<128>(args, tiles, queue);
      return Launch<Config<float, 128, 16, 64, 3>>(args, tiles, workspace, queue);
  }
}

}  // namespace swizzle::cuda

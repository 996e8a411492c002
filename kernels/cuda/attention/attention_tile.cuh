// A tile of attention's queries and the blocks of keys that it meets: their shapes, how they pass
// through shared memory, and the first of the two products. Device code, but for the parameters.
//
// A thread block owns a tile of one head, a warp one group of it. Blocks of keys, and of values, pass through shared
// memory in stages, with the groups' lists of them.
#ifndef SWIZZLE_KERNELS_CUDA_ATTENTION_ATTENTION_TILE_CUH_
#define SWIZZLE_KERNELS_CUDA_ATTENTION_ATTENTION_TILE_CUH_

#include <type_traits>

#include "kernels/base/integers.h"
#include "kernels/cuda/attention/attention_pattern.h"
#include "kernels/cuda/attention/split_operands.h"
#include "kernels/cuda/runtime/elements.cuh"
#include "kernels/cuda/tensor_core/mma.cuh"
#include "kernels/cuda/tensor_core/pipeline.cuh"

namespace swizzle::cuda {

inline constexpr float kLeast = -1e30f;

// Groups of `warps` warps, blocks of `key_block` keys, of which `stages` are in flight. In shared memory a row of keys
// or values is its FP16 numbers, or those of its upper parts and then those of its rests.
template <typename T, int head_dim, int octet_groups, int warps, int key_block, int stages>
struct Config {
  using Element = T;
  static constexpr bool kHalf = std::is_same_v<T, __half>;
  static constexpr int kHeadDim = head_dim, kWarps = warps, kKeyBlock = key_block, kStages = stages;
  static constexpr int kThreads = 32 * warps;
  static constexpr int kParts = kHalf ? 1 : 2;
  static constexpr int kOctetGroups = octet_groups;  // of 8 queries
  static constexpr int kGroup = 8 * kOctetGroups;
  static constexpr int kPartPieces = head_dim / 8;  // of 16 bytes
  static constexpr int kPieces = kParts * kPartPieces;
  static constexpr int kSteps = head_dim / 16;  // of products
  static constexpr int kRowBytes = 16 * kPieces;
  static constexpr int kMatrixBytes = key_block * kRowBytes;
  static constexpr int kListBytes = warps * key_block * 4;
  static constexpr int kHeaderBytes = warps * 4;
  static constexpr int kStageBytes = RoundUp(2 * kMatrixBytes + kListBytes + kHeaderBytes, 128);
  static constexpr int kSharedBytes = stages * kStageBytes;
  static_assert(kThreads % kPieces == 0, "a thread copies the same piece of every row it copies of");
  static_assert(kHeaderBytes % 16 == 0 && kSharedBytes <= 227 * 1024);
};

struct TileParams {
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

inline TileParams TileParamsOf(const DeviceAttentionTiles& tiles, const HeadMatrices& queries, const HeadMatrices& keys,
                               const HeadMatrices& values) {
  return {.queries = queries,
          .keys = keys,
          .values = values,
          .largest = nullptr,
          .output = {},
          .tile_offsets = tiles.tile_offsets(),
          .entries = tiles.entries(),
          .headers = tiles.headers(),
          .lists = tiles.lists(),
          .order = tiles.order(),
          .tokens = static_cast<int>(tiles.tokens()),
          .heads = 0,
          .scale = 0};
}

// Which 16-byte piece of a row holds the piece 0; piece i lies at i ^ that. Among eight keys of different remainders
// modulo 8 all differ, so that ldmatrix reads eight rows without conflict.
__device__ inline int Swizzle(int key) { return key & 7; }

// Where piece `piece`, 0 or 1, of a row of keys or values lies in shared memory, and a piece that is `more`, an even
// number, further: matrices start on 128 bytes.
template <typename C>
__device__ uint32_t PieceAddress(uint32_t matrix, int key, int piece) {
  return matrix + key * C::kRowBytes + ((piece ^ (Swizzle(key) & (C::kPieces - 1))) * 16);
}
__device__ inline uint32_t Further(uint32_t address, int more) {
  return (address ^ (more & 7) * 16) + (more >> 3) * 128;
}

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
__device__ void LoadQueries(const TileParams& p, int first_query, Group<C>& group) {
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
__device__ void LoadStage(const TileParams& p, const AttentionTiles::Entry& entry, int entry_index, uint32_t stage) {
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
    CopyAsync(lists + i * 16, p.lists + int64_t{entry.first_octet} * AttentionTiles::kOctet + i * 4);
  }
  if (threadIdx.x < C::kWarps / 4) {
    CopyAsync(lists + C::kListBytes + threadIdx.x * 16, p.headers + entry_index * C::kWarps + threadIdx.x * 4);
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
        Mma<__half>(sums[s % 2][j], a, group.queries[s][j][0].x, group.queries[s][j][0].y);
      }
    } else {
      uint32_t a_rest[4];
      LoadMatrices(a_rest, Further(keys, C::kPartPieces + 2 * s));
#pragma unroll
      for (int j = 0; j < C::kOctetGroups; ++j) {
        const uint2 q = group.queries[s][j][0], q_rest = group.queries[s][j][1];
        Mma<__half>(sums[s % 2][j], a, q.x, q.y);
        Mma<__half>(sums[(s + 1) % 2][j], a, q_rest.x, q_rest.y);
        Mma<__half>(sums[s % 2][j], a_rest, q.x, q.y);
      }
    }
  }
#pragma unroll
  for (int j = 0; j < C::kOctetGroups; ++j) {
#pragma unroll
    for (int e = 0; e < 4; ++e) scores[j][e] = sums[0][j][e] + sums[1][j][e];
  }
}

// Passes the stages of a tile: visit(stage in shared memory).
template <typename C, typename Visit>
__device__ void ForEachStage(const TileParams& p, int tile, const char* shared, const Visit& visit) {
  const int begin = p.tile_offsets[tile], end = p.tile_offsets[tile + 1];
  for (int i = 0; i < C::kStages - 1; ++i) {
    if (begin + i < end) {
      LoadStage<C>(p, p.entries[begin + i], begin + i, SharedAddress(shared) + i * C::kStageBytes);
    }
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
    visit(shared + stage * C::kStageBytes);
    stage = NextStage<C::kStages>(stage);
    next_stage = NextStage<C::kStages>(next_stage);
  }
}

// What the kernels are made for: 12 groups of 16 queries where the pattern is scattered, for more use of each block
// read; 8, in line with blocks of 128 queries, where it is blocked. FP32 rows of 128 take so many registers that 16
// groups of 8 queries, whose unions of keys are smaller, are faster there: 2,310 us against 2,630 on the seed pattern.
template <typename T, int kHeadDim>
using ScatteredTile = std::conditional_t<sizeof(T) * kHeadDim == 512, Config<T, kHeadDim, 1, 16, 64, 3>,
                                         Config<T, kHeadDim, 2, 12, 128, sizeof(T) * kHeadDim == 256 ? 2 : 3>>;
template <typename T, int kHeadDim>
using BlockTile = Config<T, kHeadDim, 2, 8, 64, 3>;

// launch(configuration) for the type, head dim and cut.
template <typename T, int kHeadDim, typename Launch>
void WithTileOf(const AttentionTileShape& shape, const Launch& launch) {
  if (shape.groups == 8) return launch(BlockTile<T, kHeadDim>());
  launch(ScatteredTile<T, kHeadDim>());
}
template <int kHeadDim, typename Launch>
void WithTileOf(DType dtype, const AttentionTileShape& shape, const Launch& launch) {
  VisitFloat32Or16(dtype, [&]<DType kType>() { WithTileOf<Element<kType>, kHeadDim>(shape, launch); });
}
template <typename Launch>
void WithTile(DType dtype, int head_dim, const AttentionTileShape& shape, const Launch& launch) {
  switch (head_dim) {
    case 32:
      return WithTileOf<32>(dtype, shape, launch);
    case 64:
      return WithTileOf<64>(dtype, shape, launch);
    case 128:
      return WithTileOf<128>(dtype, shape, launch);
  }
}

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_ATTENTION_ATTENTION_TILE_CUH_

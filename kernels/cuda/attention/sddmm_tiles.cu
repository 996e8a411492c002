#include "kernels/cuda/attention/attention_tile.cuh"
#include "kernels/cuda/attention/sddmm_tiles.h"
#include "kernels/cuda/runtime/launch_grid.h"
#include "kernels/cuda/runtime/shared_memory.h"
#include "kernels/cuda/tensor_core/wgmma.cuh"

namespace swizzle::cuda {
namespace {

constexpr int kThreads = 32 * SddmmTiles::kGroups;
constexpr int kSlabBytes = SddmmTiles::kKeys * 128;  // of keys: 8 pieces of 16 bytes each
static_assert(SddmmTiles::kGroupQueries == 16, "a warp's rows of a warpgroup's product");

// Where the lists of a block's tiles lie, in shared memory.
struct WorkLists {
  uint32_t bases[SddmmTiles::kMostTiles * SddmmTiles::kQueries];
  uint32_t offsets[SddmmTiles::kMostTiles * SddmmTiles::kGroups + 4];  // rounded up to 16 bytes
};

// A warpgroup has 64 queries in registers and goes with the other through the tiles' keys, stages of which are in
// shared memory. A warp's scores go there too, rows being so far apart that a store meets every bank once.
template <typename T, int head_dim>
struct TileOf {
  using Element = T;
  static constexpr bool kHalf = sizeof(T) == 2;
  static constexpr int kParts = kHalf ? 1 : 2;
  static constexpr int kSteps = head_dim / 16, kPartPieces = head_dim / 8, kPieces = kParts * kPartPieces;
  static constexpr int kStageBytes = CeilDiv(kPieces, 8) * kSlabBytes;
  static constexpr int kScorePitch = SddmmTiles::kKeys * sizeof(T) + 8 * sizeof(T);
  static constexpr int kScoreBytes = SddmmTiles::kGroupQueries * kScorePitch;
  static constexpr int kStages = kStageBytes > 16384 ? 2 : 3;
  static constexpr int kSharedBytes = kStages * kStageBytes + SddmmTiles::kGroups * kScoreBytes + sizeof(WorkLists);
  static constexpr int kEntries = kHalf || head_dim != 64 ? 4 : 8;  // of a list that a lane reads ahead
  static constexpr int kBlocks = kHalf && head_dim <= 64 ? 3 : 2;   // that registers are to leave room for
};

struct SampleParams {
  HeadMatrices queries;     // of elements
  HeadMatrices keys;        // of FP16 numbers: the elements, or their parts
  const uint32_t* largest;  // FP32: of queries and keys, by head
  int tokens, heads;
  const SddmmTiles::Work* work;
  const uint32_t* key_blocks;
  const uint32_t* list_offsets;
  const uint16_t* lists;
  const uint32_t* bases;
  void* output;
  int64_t value_stride;
};

template <typename C>
__device__ void LoadKeys(const SampleParams& p, int first_key, uint32_t to) {
  constexpr int kRowsAtOnce = kThreads / C::kPieces;
  const int piece = threadIdx.x % C::kPieces;
  const auto* head = static_cast<const __half*>(p.keys.data) + blockIdx.y * p.keys.head_stride + piece * 8;
#pragma unroll 4
  for (int key = threadIdx.x / C::kPieces; key < SddmmTiles::kKeys; key += kRowsAtOnce) {
    const bool real = first_key + key < p.tokens;
    const int64_t token = real ? first_key + key : 0;
    CopyAsync(to + piece / 8 * kSlabBytes + key * 128 + (piece % 8 ^ key % 8) * 16, head + token * p.keys.token_stride,
              real);
  }
}

// A lane's part of the warpgroup's queries, as left operands.
template <typename C>
struct Queries {
  uint32_t steps[C::kParts][C::kSteps][4];

  // `first` is the warp's.
  __device__ void Load(const SampleParams& p, int first) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const auto* head = static_cast<const typename C::Element*>(p.queries.data) + blockIdx.y * p.queries.head_stride;
    const float factor = C::kHalf ? 1.0f : FitOf(p.largest[blockIdx.y]).factor;
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const int query = first + 8 * row + g;
#pragma unroll
      for (int step = 0; step < C::kSteps; ++step) {
        uint2 parts[C::kParts] = {};
        if (query < p.tokens) LoadStep(head + query * p.queries.token_stride + 16 * step + 2 * t, factor, parts);
#pragma unroll
        for (int part = 0; part < C::kParts; ++part) {
          steps[part][step][row] = parts[part].x;
          steps[part][step][2 + row] = parts[part].y;
        }
      }
    }
  }
};

using ScoreSums = float[SddmmTiles::kKeys / 2];

// Begins the products of the warpgroup's queries and a stage of keys; of FP32's, the small ones come first.
template <typename C>
__device__ void QueueScores(const Queries<C>& queries, uint32_t keys, ScoreSums& scores) {
  const auto operand = [&](int part, int step) {
    const int piece = part * C::kPartPieces + 2 * step;
    return SharedOperand(keys + piece / 8 * kSlabBytes + piece % 8 * 16);
  };
  FenceProducts();
  if constexpr (!C::kHalf) {
#pragma unroll
    for (int step = 0; step < C::kSteps; ++step) {
      if (step == 0) {
        QueueProduct<false, __half>(scores, queries.steps[1][step], operand(0, step));
      } else {
        QueueProduct<true, __half>(scores, queries.steps[1][step], operand(0, step));
      }
      QueueProduct<true, __half>(scores, queries.steps[0][step], operand(1, step));
    }
  }
#pragma unroll
  for (int step = 0; step < C::kSteps; ++step) {
    if (C::kHalf && step == 0) {
      QueueProduct<false, __half>(scores, queries.steps[0][step], operand(0, step));
    } else {
      QueueProduct<true, __half>(scores, queries.steps[0][step], operand(0, step));
    }
  }
  CommitProducts();
}

// To [queries of the warp][keys].
template <typename C>
__device__ void StoreScores(const ScoreSums& scores, char* to) {
  using T = typename C::Element;
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
  for (int j = 0; j < SddmmTiles::kKeys / 8; ++j) {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const float x = scores[4 * j + 2 * row], y = scores[4 * j + 2 * row + 1];
      char* pair = to + (8 * row + g) * C::kScorePitch + (8 * j + 2 * t) * static_cast<int>(sizeof(T));
      if constexpr (C::kHalf) {
        *reinterpret_cast<uint32_t*>(pair) = PackHalves(x, y);
      } else {
        *reinterpret_cast<float2*>(pair) = make_float2(x, y);
      }
    }
  }
}

// Entries of a list that a lane reads ahead, every 32nd.
template <int kCount>
struct Entries {
  static constexpr int kOfWarp = 32 * kCount;
  uint32_t entries[kCount];

  __device__ void Load(const uint16_t* list, int first, int count) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int at = first + 32 * i + threadIdx.x % 32;
      entries[i] = at < count ? __ldg(list + at) : 0;
    }
  }
};

// FP32's scores are of scaled operands.
__device__ inline __half Unscaled(__half score, float, float) { return score; }
__device__ inline float Unscaled(float score, float a, float b) { return score * a * b; }

struct Inverses {
  float a = 1, b = 1;
};

// A warp's list of a tile. `base` is that of the warp's query of this lane's number.
struct List {
  const uint16_t* entries;
  int count;
  uint32_t base;

  // `tile` is counted from the block's first.
  __device__ List(const SampleParams& p, const WorkLists& lists, int tile) {
    const int warp = threadIdx.x / 32, at = tile * SddmmTiles::kGroups + warp;
    entries = p.lists + lists.offsets[at];
    count = static_cast<int>(lists.offsets[at + 1] - lists.offsets[at]);
    base = lists.bases[tile * SddmmTiles::kQueries + warp * SddmmTiles::kGroupQueries +
                       threadIdx.x % SddmmTiles::kGroupQueries];
  }
};

__device__ inline void CopyLists(const SampleParams& p, const SddmmTiles::Work& work, WorkLists& to) {
  const uint32_t* bases = p.bases + work.first_tile * SddmmTiles::kQueries;
  const uint32_t* offsets = p.list_offsets + work.first_tile * SddmmTiles::kGroups;
  for (uint32_t i = threadIdx.x; i < work.tiles * SddmmTiles::kQueries; i += kThreads) to.bases[i] = bases[i];
  for (uint32_t i = threadIdx.x; i <= work.tiles * SddmmTiles::kGroups; i += kThreads) to.offsets[i] = offsets[i];
}

// Writes a list's scores to their places; `entries` are its first.
template <typename C>
__device__ void SampleTile(const char* scores, const List& list, Entries<C::kEntries> entries, const Inverses& inverses,
                           typename C::Element* output) {
  using T = typename C::Element;
  for (int first = 0; first < list.count; first += entries.kOfWarp) {
    Entries<C::kEntries> next;
    next.Load(list.entries, first + entries.kOfWarp, list.count);
#pragma unroll
    for (int i = 0; i < C::kEntries; ++i) {
      const int at = first + 32 * i + threadIdx.x % 32;
      const uint32_t entry = entries.entries[i], query = entry / SddmmTiles::kKeys, key = entry % SddmmTiles::kKeys;
      const uint32_t place = __shfl_sync(0xFFFFFFFFu, list.base, query) + at;
      const T score = *reinterpret_cast<const T*>(scores + query * C::kScorePitch + key * sizeof(T));
      if (at < list.count) output[place] = Unscaled(score, inverses.a, inverses.b);
    }
    entries = next;
  }
}

template <typename C>
__global__ void __launch_bounds__(kThreads, C::kBlocks) SampleTiles(const __grid_constant__ SampleParams p) {
  extern __shared__ __align__(1024) char shared[];
  const int warp = threadIdx.x / 32;
  const SddmmTiles::Work work = p.work[blockIdx.x];
  const int tiles = work.tiles;
  const uint32_t stages = SharedAddress(shared);
  char* const stored = shared + C::kStages * C::kStageBytes + warp * C::kScoreBytes;
  auto& lists = *reinterpret_cast<WorkLists*>(shared + C::kSharedBytes - sizeof(WorkLists));
  auto* const output = static_cast<typename C::Element*>(p.output) + blockIdx.y * p.value_stride;
  const auto load = [&](int tile) {
    if (tile < tiles) {
      LoadKeys<C>(p, p.key_blocks[work.first_tile + tile] * SddmmTiles::kKeys,
                  stages + tile % C::kStages * C::kStageBytes);
    }
    CommitCopies();
  };
  for (int tile = 0; tile < C::kStages - 1; ++tile) load(tile);
  CopyLists(p, work, lists);
  Inverses inverses;
  if constexpr (!C::kHalf) {
    inverses = {FitOf(p.largest[blockIdx.y]).inverse, FitOf(p.largest[p.heads + blockIdx.y]).inverse};
  }
  Queries<C> queries;
  queries.Load(p, work.query_block * SddmmTiles::kQueries + warp * SddmmTiles::kGroupQueries);
  __syncthreads();
  List list(p, lists, 0);
  Entries<C::kEntries> entries;
  entries.Load(list.entries, 0, list.count);
#pragma unroll 1
  for (int tile = 0; tile < tiles; ++tile) {
    WaitForCopies<C::kStages - 2>();
    PublishToProducts();
    __syncthreads();  // the copies of all threads are there, and nobody reads the stage before this one any more
    ScoreSums scores;
    QueueScores<C>(queries, stages + tile % C::kStages * C::kStageBytes, scores);
    load(tile + C::kStages - 1);
    const List next_list(p, lists, min(tile + 1, tiles - 1));
    Entries<C::kEntries> next_entries;
    next_entries.Load(next_list.entries, 0, next_list.count);
    WaitForProducts(scores);
    StoreScores<C>(scores, stored);
    __syncwarp();
    SampleTile<C>(stored, list, entries, inverses, output);
    __syncwarp();
    list = next_list;
    entries = next_entries;
  }
}

// visit(TileOf) for the type and head dim.
template <typename T, typename Visit>
void WithTileOf(int head_dim, const Visit& visit) {
  switch (head_dim) {
    case 32:
      return visit(TileOf<T, 32>());
    case 64:
      return visit(TileOf<T, 64>());
    case 128:
      return visit(TileOf<T, 128>());
  }
}
template <typename Visit>
void WithTileOf(DType dtype, int head_dim, const Visit& visit) {
  VisitFloat32Or16(dtype, [&]<DType kType>() { WithTileOf<Element<kType>>(head_dim, visit); });
}

constexpr int kMostSplitHeads = 341;

Operands OperandsOf(const SddmmArgs& args, int64_t tokens) {
  return {args.a, args.b, {}, tokens, args.heads, args.head_dim};
}

}  // namespace

bool MultipliesSddmmTiles() {
  constexpr int kHopper = 9;
  int ordinal = 0, major = 0;
  return cudaGetDevice(&ordinal) == cudaSuccess &&
         cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, ordinal) == cudaSuccess && major == kHopper;
}

StatusOr<DeviceSddmmTiles> DeviceSddmmTiles::MakeBest(const AttentionPattern& pattern, DType dtype, int heads) {
  // Of 8,192. On the seed pattern the best for both types and heads of 64 and 128; from 200 to 320 times differ by 4 %.
  constexpr int64_t kLeast = 256;
  if (!MultipliesSddmmTiles() || (dtype == DType::kFloat32 && heads > kMostSplitHeads)) return DeviceSddmmTiles();
  return Make(SddmmTiles::Cut(pattern, kLeast));
}

size_t SddmmWorkspaceBytes(DType dtype, int head_dim, int heads, int64_t tokens) {
  if (dtype != DType::kFloat32 || heads > kMostSplitHeads) return 0;
  return SplitBytes({.queries = {}, .keys = {}, .values = {}, .tokens = tokens, .heads = heads, .head_dim = head_dim});
}

void SddmmByTiles(const SddmmArgs& args, const DeviceAttentionPattern& pattern, const DeviceSddmmTiles& tiles,
                  std::span<std::byte> workspace, cudaStream_t queue) {
  if (tiles.work_count() == 0) return Sddmm(args, pattern, queue);
  SampleParams params{.queries = args.a,
                      .keys = args.b,
                      .largest = nullptr,
                      .tokens = static_cast<int>(pattern.tokens()),
                      .heads = args.heads,
                      .work = tiles.work(),
                      .key_blocks = tiles.key_blocks(),
                      .list_offsets = tiles.list_offsets(),
                      .lists = tiles.lists(),
                      .bases = tiles.bases(),
                      .output = args.output,
                      .value_stride = pattern.value_stride()};
  if (args.dtype == DType::kFloat32) {
    const SplitOperands split = Split(OperandsOf(args, pattern.tokens()), workspace, queue);
    params.keys = split.keys;
    params.largest = split.largest;
  }
  WithTileOf(args.dtype, args.head_dim, [&](auto tile) {
    using C = decltype(tile);
    AllowSharedMemory(SampleTiles<C>, C::kSharedBytes);
    SampleTiles<C><<<LaunchGrid(tiles.work_count(), args.heads), kThreads, C::kSharedBytes, queue>>>(params);
  });
  if (tiles.has_rest()) SampleRows(args, pattern, tiles.rest(), queue);
}

}  // namespace swizzle::cuda

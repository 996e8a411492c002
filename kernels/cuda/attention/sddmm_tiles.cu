#include "kernels/cuda/attention/attention_tile.cuh"
#include "kernels/cuda/attention/sddmm_tiles.h"
#include "kernels/cuda/runtime/launch_grid.h"
#include "kernels/cuda/runtime/shared_memory.h"

namespace swizzle::cuda {
namespace {

// A warp has a group of queries in registers and goes with the others through the tiles' keys. Its scores, of 16 keys
// at once, go to shared memory by key: [keys][queries], rows being so far apart that the eight keys of a store lie in
// different banks.
template <typename T, int head_dim>
struct TileOf : Config<T, head_dim, SddmmTiles::kGroupQueries / 8, SddmmTiles::kGroups, SddmmTiles::kKeys, 2> {
  static constexpr int kScorePitch = sizeof(T) * (SddmmTiles::kGroupQueries + 8);
  static constexpr int kScoreBytes = SddmmTiles::kKeys * kScorePitch;
  static constexpr int kSampleBytes = 2 * TileOf::kMatrixBytes + SddmmTiles::kGroups * kScoreBytes;
};

struct SampleParams {
  TileParams operands;
  const SddmmTiles::Work* work;
  const uint32_t* key_blocks;
  const uint32_t* list_offsets;
  const uint16_t* lists;
  const uint32_t* bases;
  void* output;
  int64_t value_stride;
};

template <typename C>
__device__ void LoadKeys(const TileParams& p, int first_key, uint32_t to) {
  constexpr int kRowsAtOnce = C::kThreads / C::kPieces;
  const int piece = threadIdx.x % C::kPieces;
  const auto* head = static_cast<const __half*>(p.keys.data) + blockIdx.y * p.keys.head_stride + piece * 8;
#pragma unroll 4
  for (int key = threadIdx.x / C::kPieces; key < C::kKeyBlock; key += kRowsAtOnce) {
    const bool real = first_key + key < p.tokens;
    const int64_t token = real ? first_key + key : 0;
    CopyAsync(to + key * C::kRowBytes + (piece ^ (Swizzle(key) & (C::kPieces - 1))) * 16,
              head + token * p.keys.token_stride, real);
  }
}

// All scores of the warp's queries and a tile's keys.
template <typename C>
__device__ void ScoreTile(uint32_t keys, const Group<C>& group, char* to) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
#pragma unroll 1
  for (int key = 0; key < C::kKeyBlock; key += 16) {
    float scores[C::kOctetGroups][4];
    Scores<C>(PieceAddress<C>(keys, key + lane % 16, lane / 16), group, scores);
#pragma unroll
    for (int j = 0; j < C::kOctetGroups; ++j) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float x = scores[j][2 * half], y = scores[j][2 * half + 1];
        char* pair = to + (key + 8 * half + g) * C::kScorePitch +
                     (8 * j + 2 * t) * static_cast<int>(sizeof(typename C::Element));
        if constexpr (C::kHalf) {
          *reinterpret_cast<uint32_t*>(pair) = PackHalves(x, y);
        } else {
          *reinterpret_cast<float2*>(pair) = make_float2(x, y);
        }
      }
    }
  }
}

// Entries of a list that a lane reads ahead, every 32nd.
struct Entries {
  static constexpr int kCount = 4, kOfWarp = 32 * kCount;
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

// Writes a list's scores to their places. `base` is that of the warp's query of this lane's number.
template <typename C>
__device__ void SampleTile(const char* scores, const uint16_t* list, int count, uint32_t base, Entries entries,
                           const Inverses& inverses, typename C::Element* output) {
  using T = typename C::Element;
  for (int first = 0; first < count; first += Entries::kOfWarp) {
    Entries next;
    next.Load(list, first + Entries::kOfWarp, count);
#pragma unroll
    for (int i = 0; i < Entries::kCount; ++i) {
      const int at = first + 32 * i + threadIdx.x % 32;
      const uint32_t entry = entries.entries[i], query = entry / SddmmTiles::kKeys, key = entry % SddmmTiles::kKeys;
      const uint32_t place = __shfl_sync(0xFFFFFFFFu, base, query) + at;
      const T score = *reinterpret_cast<const T*>(scores + key * C::kScorePitch + query * sizeof(T));
      if (at < count) output[place] = Unscaled(score, inverses.a, inverses.b);
    }
    entries = next;
  }
}

template <typename C>
__global__ void __launch_bounds__(C::kThreads) SampleTiles(const __grid_constant__ SampleParams p) {
  extern __shared__ __align__(128) char shared[];
  const int warp = threadIdx.x / 32;
  const SddmmTiles::Work work = p.work[blockIdx.x];
  const uint32_t stages = SharedAddress(shared);
  char* const scores = shared + 2 * C::kMatrixBytes + warp * C::kScoreBytes;
  auto* const output = static_cast<typename C::Element*>(p.output) + blockIdx.y * p.value_stride;
  LoadKeys<C>(p.operands, p.key_blocks[work.first_tile] * C::kKeyBlock, stages);
  CommitCopies();
  Inverses inverses;
  if constexpr (!C::kHalf) {
    inverses = {FitOf(p.operands.largest[blockIdx.y]).inverse,
                FitOf(p.operands.largest[p.operands.heads + blockIdx.y]).inverse};
  }
  Group<C> group;
  LoadQueries<C>(p.operands, work.query_block * SddmmTiles::kQueries + warp * C::kGroup, group);
  for (uint32_t i = 0; i < work.tiles; ++i) {
    const uint32_t tile = work.first_tile + i, at = tile * SddmmTiles::kGroups + warp;
    const uint32_t begin = p.list_offsets[at];
    const int count = static_cast<int>(p.list_offsets[at + 1] - begin);
    const uint32_t base = p.bases[tile * SddmmTiles::kQueries + threadIdx.x];
    Entries entries;
    entries.Load(p.lists + begin, 0, count);
    WaitForCopies<0>();
    __syncthreads();  // the copies of all threads are there, and nobody reads the other stage any more
    if (i + 1 < work.tiles) {
      LoadKeys<C>(p.operands, p.key_blocks[tile + 1] * C::kKeyBlock, stages + (i + 1) % 2 * C::kMatrixBytes);
    }
    CommitCopies();
    if (count == 0) continue;
    ScoreTile<C>(stages + i % 2 * C::kMatrixBytes, group, scores);
    __syncwarp();
    SampleTile<C>(scores, p.lists + begin, count, base, entries, inverses, output);
    __syncwarp();
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
  if (dtype == DType::kFloat16) return WithTileOf<__half>(head_dim, visit);
  WithTileOf<float>(head_dim, visit);
}

constexpr int kMostSplitHeads = 341;

Operands OperandsOf(const SddmmArgs& args, int64_t tokens) {
  return {args.a, args.b, {}, tokens, args.heads, args.head_dim};
}

}  // namespace

StatusOr<DeviceSddmmTiles> DeviceSddmmTiles::MakeBest(const AttentionPattern& pattern, DType dtype, int head_dim,
                                                      int heads) {
  // Of 8,192. What is best differs little between 200 and 320 in FP16, and between 256 and 550 in FP32.
  const int64_t least = dtype == DType::kFloat16 ? 200 : 550;
  size_t shared = 0;
  WithTileOf(dtype, head_dim, [&](auto tile) { shared = decltype(tile)::kSampleBytes; });
  if (shared > MostSharedMemory() || (dtype == DType::kFloat32 && heads > kMostSplitHeads)) return DeviceSddmmTiles();
  return Make(SddmmTiles::Cut(pattern, least));
}

size_t SddmmWorkspaceBytes(DType dtype, int head_dim, int heads, int64_t tokens) {
  if (dtype == DType::kFloat16 || heads > kMostSplitHeads) return 0;
  return SplitBytes({.queries = {}, .keys = {}, .values = {}, .tokens = tokens, .heads = heads, .head_dim = head_dim});
}

void SddmmByTiles(const SddmmArgs& args, const DeviceAttentionPattern& pattern, const DeviceSddmmTiles& tiles,
                  std::span<std::byte> workspace, cudaStream_t queue) {
  if (tiles.work_count() == 0) return Sddmm(args, pattern, queue);
  SampleParams params{.operands = {.queries = args.a,
                                   .keys = args.b,
                                   .values = {},
                                   .largest = nullptr,
                                   .output = {},
                                   .tile_offsets = nullptr,
                                   .entries = nullptr,
                                   .headers = nullptr,
                                   .lists = nullptr,
                                   .order = nullptr,
                                   .tokens = static_cast<int>(pattern.tokens()),
                                   .heads = args.heads,
                                   .scale = 1},
                      .work = tiles.work(),
                      .key_blocks = tiles.key_blocks(),
                      .list_offsets = tiles.list_offsets(),
                      .lists = tiles.lists(),
                      .bases = tiles.bases(),
                      .output = args.output,
                      .value_stride = pattern.value_stride()};
  if (args.dtype == DType::kFloat32) {
    const SplitOperands split = Split(OperandsOf(args, pattern.tokens()), workspace, queue);
    params.operands.keys = split.keys;
    params.operands.largest = split.largest;
  }
  WithTileOf(args.dtype, args.head_dim, [&](auto tile) {
    using C = decltype(tile);
    AllowSharedMemory(SampleTiles<C>, C::kSampleBytes);
    SampleTiles<C><<<LaunchGrid(tiles.work_count(), args.heads), C::kThreads, C::kSampleBytes, queue>>>(params);
  });
  if (tiles.has_rest()) SampleRows(args, pattern, tiles.rest(), queue);
}

}  // namespace swizzle::cuda

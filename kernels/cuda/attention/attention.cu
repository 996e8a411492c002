#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/attention/attention_operands.cuh"
#include "kernels/cuda/attention/attention_pattern.h"
#include "kernels/cuda/runtime/elements.cuh"
#include "kernels/cuda/runtime/instantiate.h"
#include "kernels/cuda/runtime/shared_memory.h"
#include "kernels/format/attention_pattern.h"

namespace swizzle::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kGroups = 8;  // of queries: neighbouring half warps take neighbouring queries
constexpr int kLanes = 16;  // of a group: they share the keys of a tile, and then the channels of values
constexpr int kKeys = 64;   // of a tile
constexpr int kPad = 4;     // keeps rows in shared memory on 16 bytes, and columns of them out of one bank
static_assert(kGroups * kLanes == kThreads && kKeys == 4 * kLanes);

// kSize bounds the channels of a head; each thread has kRows queries.
template <int kSize, int kRows>
struct Tiles {
  static constexpr int kQueries = kGroups * kRows;
  static constexpr int kQueryPitch = kQueries + kPad;
  static constexpr int kKeyPitch = kKeys + kPad;
  static constexpr int kValuePitch = kSize + kPad;
  static constexpr int kKeyFloats = kSize * kKeyPitch;
  static constexpr int kPowerFloats = kKeys * kQueryPitch;
  static constexpr int kFloats =
      kSize * kQueryPitch + (kKeyFloats > kPowerFloats ? kKeyFloats : kPowerFloats) + kKeys * kValuePitch + kKeys;

  float* queries;  // [channel][query]
  float* keys;     // [channel][key]
  float* powers;   // [key][query]; takes the place of keys
  float* values;   // [key][channel]
  float* bias;     // [key], in units of log(2)

  __device__ explicit Tiles(float* shared)
      : queries(shared),
        keys(queries + kSize * kQueryPitch),
        powers(keys),
        values(keys + (kKeyFloats > kPowerFloats ? kKeyFloats : kPowerFloats)),
        bias(values + kKeys * kValuePitch) {}
};

// A matrix in memory that becomes a tile: (outer, inner) at from + outer * outer_stride + inner * inner_stride, one
// stride being 1. Beyond the counts it is zero, whatever memory holds.
template <typename T>
struct Source {
  const T* from;
  int64_t outer_stride, inner_stride;
  int outer_count, inner_count;
  bool packs;  // four neighbours at a multiple of four from `from` may be read at once, though some lie outside

  __device__ float At(int outer, int inner) const {
    const bool inside = outer < outer_count && inner < inner_count;
    return inside ? ToFloat(from[outer * outer_stride + inner * inner_stride]) : 0.0f;
  }
  // (outer, inner) and its three neighbours in memory.
  __device__ void Four(int outer, int inner, float (&values)[4]) const {
    const bool outer_near = outer_stride == 1;
#pragma unroll
    for (int j = 0; j < 4; ++j) values[j] = 0;
    if (outer >= outer_count || inner >= inner_count) return;
    LoadPack<4>(from + outer * outer_stride + inner * inner_stride, values);
    const int left = outer_near ? outer_count - outer : inner_count - inner;
#pragma unroll
    for (int j = 1; j < 4; ++j) values[j] = j < left ? values[j] : 0.0f;
  }
};

// to[outer * pitch + inner] = the source, whose inner neighbours are neighbours in memory.
template <int kOuter, int kInner, typename T>
__device__ void LoadStraight(const Source<T>& source, float* to, int pitch) {
  if (source.packs) {
#pragma unroll 8
    for (int i = threadIdx.x; i < kOuter * (kInner / 4); i += kThreads) {
      const int outer = i / (kInner / 4), inner = i % (kInner / 4) * 4;
      float values[4];
      source.Four(outer, inner, values);
      StorePack<4>(values, to + outer * pitch + inner);
    }
    return;
  }
#pragma unroll 8
  for (int i = threadIdx.x; i < kOuter * kInner; i += kThreads) {
    to[i / kInner * pitch + i % kInner] = source.At(i / kInner, i % kInner);
  }
}

// The same where outer neighbours are neighbours in memory: a thread turns four by four, or four by one.
template <int kOuter, int kInner, typename T>
__device__ void LoadTurned(const Source<T>& source, float* to, int pitch) {
  if (source.packs) {
    // Eight lanes write two rows of the tile by four packs, which are all the banks.
    constexpr int kPairs = kOuter / 8;
#pragma unroll 2
    for (int i = threadIdx.x; i < kOuter * kInner / 16; i += kThreads) {
      const int outer = 4 * (i % 2 + i / 8 % kPairs * 2), inner = 4 * (i / 2 % 4 + i / 8 / kPairs * 4);
      float values[4][4];
#pragma unroll
      for (int j = 0; j < 4; ++j) source.Four(outer, inner + j, values[j]);
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const float turned[4] = {values[0][k], values[1][k], values[2][k], values[3][k]};
        StorePack<4>(turned, to + (outer + k) * pitch + inner);
      }
    }
    return;
  }
#pragma unroll 2
  for (int i = threadIdx.x; i < kOuter * (kInner / 4); i += kThreads) {
    const int outer = i % kOuter, inner = i / kOuter * 4;
    float values[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) values[j] = source.At(outer, inner + j);
    StorePack<4>(values, to + outer * pitch + inner);
  }
}

template <int kOuter, int kInner, typename T>
__device__ void LoadTile(const Source<T>& source, float* to, int pitch) {
  if (source.outer_stride == 1) {
    LoadTurned<kOuter, kInner>(source, to, pitch);
  } else {
    LoadStraight<kOuter, kInner>(source, to, pitch);
  }
}

// sums[r][2i + j] += rows[k][r] * columns[k][32i + j] over k, for j < 2, `rows` and `columns` being where the thread's
// begin.
template <int kDepth, int kRows, int kColumns, int kRowPitch, int kColumnPitch>
__device__ void MultiplyAdd(const float* rows, const float* columns, float (&sums)[kRows][kColumns]) {
  constexpr int kRowPack = kRows < 4 ? kRows : 4;
#pragma unroll 4
  for (int k = 0; k < kDepth; ++k) {
    float a[kRows], b[kColumns];
#pragma unroll
    for (int r = 0; r < kRows; r += kRowPack) {
      const auto pack = *reinterpret_cast<const Pack<float, kRowPack>*>(rows + k * kRowPitch + r);
#pragma unroll
      for (int j = 0; j < kRowPack; ++j) a[r + j] = pack.values[j];
    }
#pragma unroll
    for (int i = 0; i < kColumns; i += 2) {
      const auto pair = *reinterpret_cast<const Pack<float, 2>*>(columns + k * kColumnPitch + kLanes * i);
      b[i] = pair.values[0];
      b[i + 1] = pair.values[1];
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int i = 0; i < kColumns; ++i) sums[r][i] = fmaf(a[r], b[i], sums[r][i]);
    }
  }
}

// Where a thread's i-th column of a tile lies: it has two neighbours of every 32.
__device__ int ColumnOf(int i, int lane) { return ((i & ~1) * kLanes) + 2 * lane + (i & 1); }

// What a thread knows of its queries so far; equal in all lanes of a group but for the sums.
template <int kSize, int kRows>
struct Running {
  float sums[kRows][kSize / kLanes];  // of values times powers, of the thread's channels
  float largest[kRows];               // score
  float totals[kRows];                // of powers

  __device__ Running() {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      largest[r] = -INFINITY;
      totals[r] = 0;
#pragma unroll
      for (int i = 0; i < kSize / kLanes; ++i) sums[r][i] = 0;
    }
  }

  // Turns scores of a tile's keys into powers of two relative to the largest score so far.
  __device__ void Exponentiate(float (&scores)[kRows][4]) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      float tile_largest = fmaxf(fmaxf(scores[r][0], scores[r][1]), fmaxf(scores[r][2], scores[r][3]));
      tile_largest = fmaxf(largest[r], MaxOfLanes<kLanes>(tile_largest));
      const float reference = tile_largest == -INFINITY ? 0.0f : tile_largest;  // nothing but masked keys
      const float growth = exp2f(largest[r] - reference);
      largest[r] = tile_largest;
      float total = 0;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        scores[r][i] = exp2f(scores[r][i] - reference);
        total += scores[r][i];
      }
      totals[r] = totals[r] * growth + SumOfLanes<kLanes>(total);
#pragma unroll
      for (int i = 0; i < kSize / kLanes; ++i) sums[r][i] *= growth;
    }
  }
};

// What pairs of a block's query and a key of a tile add.
template <typename T>
struct TileBiases {
  const AttentionOperands<T>& op;
  PairBiases of;
  int head, begin, query, key;  // the sequence's first token, and those of the block and the tile

  __device__ float At(int i, int j) const {
    if (of.data != nullptr) return of.At(head, query - begin + i, key - begin + j);
    return op.places.of_queries == nullptr ? 0.0f : op.places.At(head, query + i, key + j);
  }
};

// powers = 2^(scores) of one tile of keys, for the next sum. `keys` of them belong to the sequence.
template <int kSize, int kRows, typename T>
__device__ void ScoreTile(const Tiles<kSize, kRows>& tiles, float scale, int keys, const TilePattern& pattern,
                          const TileBiases<T>& biases, Running<kSize, kRows>& running) {
  using Shape = Tiles<kSize, kRows>;
  const int group = threadIdx.x / kLanes, lane = threadIdx.x % kLanes;
  float scores[kRows][4] = {};
  MultiplyAdd<kSize, kRows, 4, Shape::kQueryPitch, Shape::kKeyPitch>(tiles.queries + group * kRows,
                                                                     tiles.keys + 2 * lane, scores);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int key = ColumnOf(i, lane);
    const float bias = tiles.bias[key];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const uint32_t word = pattern.Word(group * kRows + r, i / 2);
      const bool allowed = key < keys && (word >> (key % 32) & 1) != 0;
      scores[r][i] = allowed ? fmaf(scores[r][i], scale, bias + biases.At(group * kRows + r, key)) : -INFINITY;
    }
  }
  running.Exponentiate(scores);
  __syncthreads();  // powers take the place of keys
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int key = ColumnOf(i, lane);
#pragma unroll
    for (int r = 0; r < kRows; ++r) tiles.powers[key * Shape::kQueryPitch + group * kRows + r] = scores[r][i];
  }
  __syncwarp();  // a group's powers are read by its own lanes alone
}

// output = sums / totals, turned in shared memory so that neighbours in memory are written together.
template <int kSize, int kRows, typename T>
__device__ void WriteOutput(const AttentionOperands<T>& op, const AttentionWork& work,
                            const Running<kSize, kRows>& running, float* shared) {
  constexpr int kQueries = kGroups * kRows, kPitch = kQueries + 1;
  const int group = threadIdx.x / kLanes, lane = threadIdx.x % kLanes;
  __syncthreads();  // the tiles are still read
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const float scale = running.totals[r] == 0 ? 0.0f : 1 / running.totals[r];
#pragma unroll
    for (int i = 0; i < kSize / kLanes; ++i) {
      const int channel = ColumnOf(i, lane);
      shared[channel * kPitch + group * kRows + r] = running.sums[r][i] * scale;
    }
  }
  __syncthreads();
  const int queries = min(kQueries, work.end - work.first);
  T* to = op.output + blockIdx.y * op.vo_size * op.out.channel + work.first * op.out.token;
  for (int i = threadIdx.x; i < kSize * kQueries; i += kThreads) {
    const bool channels_near = op.out.channel == 1;
    const int channel = channels_near ? i % kSize : i / kQueries, query = channels_near ? i / kSize : i % kQueries;
    if (channel >= op.vo_size || query >= queries) continue;
    to[channel * op.out.channel + query * op.out.token] = FromFloat<T>(shared[channel * kPitch + query]);
  }
}

// Whether four neighbours in memory, of channels or of tokens from the sequence's first on, may be read at once.
template <typename T>
__device__ bool PacksFit(const T* from, const TokenStrides& strides, int size, int begin) {
  if (strides.channel != 1) return begin % 4 == 0;
  return size % 4 == 0 && strides.token % 4 == 0 && reinterpret_cast<uintptr_t>(from) % (4 * sizeof(T)) == 0;
}

template <int kSize, int kRows, typename T>
__global__ void __launch_bounds__(kThreads) AttendTile(const __grid_constant__ AttentionOperands<T> op) {
  using Shape = Tiles<kSize, kRows>;
  extern __shared__ float4 shared[];
  const Shape tiles(reinterpret_cast<float*>(shared));
  const AttentionWork work = FindAttentionWork(op, Shape::kQueries);
  if (work.first >= work.end) return;
  const int64_t query_head = int64_t{blockIdx.y} * op.qk_size * op.query.channel;
  const int shared_head = op.KeyHead(static_cast<int>(blockIdx.y));
  const int64_t key_head = int64_t{shared_head} * op.qk_size * op.key.channel;
  const int64_t value_head = int64_t{shared_head} * op.vo_size * op.value.channel;
  const bool query_packs = PacksFit(op.queries, op.query, op.qk_size, work.begin);
  const bool key_packs = PacksFit(op.keys, op.key, op.qk_size, work.begin);
  const bool value_packs = PacksFit(op.values, op.value, op.vo_size, work.begin);
  Running<kSize, kRows> running;
  if (!work.spare) {
    const Source<T> queries{op.queries + query_head + work.first * op.query.token,
                            op.query.channel,
                            op.query.token,
                            op.qk_size,
                            work.end - work.first,
                            query_packs};
    LoadTile<kSize, Shape::kQueries>(queries, tiles.queries, Shape::kQueryPitch);
  }
  const int group = threadIdx.x / kLanes, lane = threadIdx.x % kLanes;
  const KeyRange range(op, work, work.begin, Shape::kQueries, kKeys);
  const PairBiases pairs = op.pair_biases.At(work.begin);
  for (int first = range.first; first < range.end; first += kKeys) {
    const int keys = work.end - first;
    const TilePattern pattern(op, work, first);
    if (!pattern.Any(Shape::kQueries, kKeys / 32)) continue;  // the last tile has been read, too
    const Source<T> key_source{
        op.keys + key_head + first * op.key.token, op.key.channel, op.key.token, op.qk_size, keys, key_packs};
    LoadTile<kSize, kKeys>(key_source, tiles.keys, Shape::kKeyPitch);
    const Source<T> value_source{op.values + value_head + first * op.value.token,
                                 op.value.token,
                                 op.value.channel,
                                 keys,
                                 op.vo_size,
                                 value_packs};
    LoadTile<kKeys, kSize>(value_source, tiles.values, Shape::kValuePitch);
    if (threadIdx.x < kKeys) {
      const bool biased = op.key_bias != nullptr && static_cast<int>(threadIdx.x) < keys;
      tiles.bias[threadIdx.x] = biased ? op.key_bias[first + threadIdx.x] * kLog2E : 0.0f;
    }
    __syncthreads();
    const TileBiases<T> biases{op, pairs, static_cast<int>(blockIdx.y), work.begin, work.first, first};
    ScoreTile(tiles, op.scale, keys, pattern, biases, running);
    MultiplyAdd<kKeys, kRows, kSize / kLanes, Shape::kQueryPitch, Shape::kValuePitch>(
        tiles.powers + group * kRows, tiles.values + 2 * lane, running.sums);
  }
  WriteOutput(op, work, running, reinterpret_cast<float*>(shared));
}

template <int kSize, int kRows, typename T>
void Launch(const AttentionOperands<T>& op, int heads, Stream& stream) {
  using Shape = Tiles<kSize, kRows>;
  constexpr int kBytes = Shape::kFloats * static_cast<int>(sizeof(float));
  static_assert(kSize * (Shape::kQueries + 1) <= Shape::kFloats, "the output is turned in the same memory");
  auto* kernel = AttendTile<kSize, kRows, T>;
  AllowSharedMemory(kernel, kBytes);
  kernel<<<AttentionGrid(op, Shape::kQueries, heads), kThreads, kBytes, QueueOf(stream)>>>(op);
}

// Large tiles read keys less often; small ones fill more of the device.
template <int kSize, typename T>
void LaunchSize(const AttentionOperands<T>& op, int heads, Stream& stream) {
  constexpr int kLarge = 8, kSmall = 2;
  const int64_t large_tiles = CeilDiv(op.tokens, kGroups * kLarge) * heads;
  if (kSize > 128 || large_tiles < MultiprocessorsOf(stream)) {
    Launch<kSize, kSmall>(op, heads, stream);
  } else {
    Launch<kSize, kSize <= 128 ? kLarge : kSmall>(op, heads, stream);
  }
}

constexpr int64_t kMostChannels = 256;

}  // namespace

bool AcceptsAttention(const Problem& problem) {
  const int64_t heads = problem.attention().heads;
  return heads <= LaunchGrid::kMostDown && QueryChannels(problem) / heads <= kMostChannels &&
         problem.output.channels / heads <= kMostChannels;
}

bool AcceptsMaskedAttention(const Problem& problem) {
  constexpr int64_t kMostTokens = int64_t{1} << 15;
  return AcceptsAttention(problem) && problem.attention().length <= kMostTokens;
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareMaskedAttention(const Weight& weight, const Problem&) {
  SWIZZLE_ASSIGN_OR_RETURN(const auto pattern, weight.matrix.In<AttentionPattern>());
  return DeviceAttentionBits::Make(*pattern);
}

template <Layout kLayout, DType kDType>
void Attend(const KernelArgs& args, Stream& stream) {
  AttendHeads<kLayout, kDType>(args, stream, [&](const auto& op, int heads) {
    const int size = std::max(op.qk_size, op.vo_size);
    if (size <= 32) return LaunchSize<32>(op, heads, stream);
    if (size <= 64) return LaunchSize<64>(op, heads, stream);
    if (size <= 96) return LaunchSize<96>(op, heads, stream);
    if (size <= 128) return LaunchSize<128>(op, heads, stream);
    LaunchSize<256>(op, heads, stream);
  });
}

SWIZZLE_INSTANTIATE(Attend);

}  // namespace swizzle::cuda

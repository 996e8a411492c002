#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/attention/attention_mma.h"
#include "kernels/cuda/attention/attention_operands.cuh"
#include "kernels/cuda/attention/attention_token_tiles.cuh"
#include "kernels/cuda/runtime/dependent_launch.cuh"
#include "kernels/cuda/runtime/shared_memory.h"
#include "kernels/cuda/tensor_core/pipeline.cuh"

namespace swizzle::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kWarpQueries = 16;
constexpr int kQueries = kThreads / 32 * kWarpQueries;
constexpr int kStages = 2;  // tiles of keys and values in shared memory
constexpr int kMostChannels = 128;

// kSize bounds the channels of a head, and is a multiple of 32.
template <typename Element, int kSize>
struct Shape {
  using T = Element;
  static constexpr bool kHalf = sizeof(T) == 2;
  static constexpr int kKeys = kSize * sizeof(T) > 256 ? 32 : 64;  // of a tile
  static constexpr int kPieceElements = kPieceBytes / sizeof(T);
  static constexpr int kPieces = kSize / kPieceElements;
  static constexpr int kSteps = kPieces / 2;  // of one matrix instruction each, along a head's channels
  static constexpr int kOctets = kKeys / 8, kChannelOctets = kSize / 8;
  static constexpr int kPitch = (kPieces + 1) * kPieceBytes;  // eight rows of a column lie in all banks
  static constexpr int kMatrixBytes = kKeys * kPitch;
  static constexpr int kStageBytes = 2 * kMatrixBytes;  // keys, then values
  static constexpr int kSharedBytes = kStages * kStageBytes;
};

// A tile's rows [0, rows) of a head's `size` channels to shared memory; what is beyond them is zero there.
template <typename S>
__device__ void CopyRows(const typename S::T* from, int64_t token_stride, int size, int rows, uint32_t to) {
  constexpr int kStep = kThreads / S::kPieces;  // rows that the block copies at once
  const int first = static_cast<int>(threadIdx.x) / S::kPieces, piece = static_cast<int>(threadIdx.x) % S::kPieces;
  if (piece * S::kPieceElements >= size) rows = 0;
  const auto* source = from + first * token_stride + piece * S::kPieceElements;
  to += first * S::kPitch + piece * kPieceBytes;
#pragma unroll
  for (int row = 0; row < S::kKeys; row += kStep) {
    const bool real = first + row < rows;
    CopyAsync(to + row * S::kPitch, real ? source + row * token_stride : from, real);
  }
}

// The warp's queries, of which `rows` are real; `from` is the first one's head.
template <typename S>
__device__ void LoadQueries(const typename S::T* from, int64_t token_stride, int size, int rows, Group<S>& group) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
  for (int step = 0; step < S::kSteps; ++step) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = g + i % 2 * 8, piece = 2 * step + i / 2;
      const bool real = row < rows && piece * S::kPieceElements < size;
      const auto* at = reinterpret_cast<const uint32_t*>(from + row * token_stride + piece * S::kPieceElements) + t;
      group.queries[step][i] = real ? Operand<typename S::T>(*at) : 0;
    }
  }
}

// Scales scores, adds biases and takes out what the queries do not attend to. `first` is the tile's first key, of which
// `keys` belong to the sequence; `query` is the warp's first in the block.
template <typename S>
__device__ void Mask(const AttentionOperands<typename S::T>& op, const AttentionWork& work, int first, int head,
                     const TilePattern& pattern, int query, float (&scores)[S::kOctets][4]) {
  const int keys = work.end - first;
  const bool pairs = op.AddsToPairs();
  if (keys >= S::kKeys && op.key_bias == nullptr && pattern.words == nullptr && !pairs) {
#pragma unroll
    for (auto& octet : scores) {
#pragma unroll
      for (float& score : octet) score *= op.scale;
    }
    return;
  }
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
  for (int j = 0; j < S::kOctets; ++j) {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const int key = 8 * j + 2 * t + e;
      const float bias = op.key_bias != nullptr && key < keys ? op.key_bias[first + key] * kLog2E : 0.0f;
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        float& score = scores[j][2 * r + e];
        score = key < keys ? fmaf(score, op.scale, bias) : -INFINITY;
      }
    }
  }
  if (pairs) AddToPairs<S>(op, work, head, work.first + query, first, scores);
  if (pattern.words == nullptr) return;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
#pragma unroll
    for (int part = 0; part < S::kKeys / 32; ++part) {
      const uint32_t word = pattern.Word(query + g + 8 * r, part) >> (2 * t);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          if ((word >> (8 * j + e) & 1) == 0) scores[4 * part + j][2 * r + e] = -INFINITY;
        }
      }
    }
  }
}

// sums += weights by values in TF32: key 2t of an octet is number t, and key 2t + 1 number t + 4.
template <typename S>
__device__ void AddSingleValues(const char* values, int vo_size, const float (&weights)[S::kOctets][4],
                                Group<S>& group) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
  for (int j = 0; j < S::kOctets; ++j) {
    const float in_order[4] = {weights[j][0], weights[j][2], weights[j][1], weights[j][3]};
    uint32_t a[4], rest[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      a[i] = RoundToTf32(in_order[i]);
      rest[i] = RoundToTf32(in_order[i] - __uint_as_float(a[i]));
    }
    const char* row = values + (8 * j + 2 * t) * S::kPitch + g * static_cast<int>(sizeof(float));
#pragma unroll
    for (int octet = 0; octet < S::kChannelOctets; ++octet) {
      if (8 * octet >= vo_size) break;
      const char* at = row + 2 * octet * kPieceBytes;
      const uint32_t b0 = RoundToTf32(*reinterpret_cast<const float*>(at));
      const uint32_t b1 = RoundToTf32(*reinterpret_cast<const float*>(at + S::kPitch));
      Mma<Tf32>(group.sums[octet], rest, b0, b1);
      Mma<Tf32>(group.sums[octet], a, b0, b1);
    }
  }
}

template <typename S>
__device__ void AttendStage(const AttentionOperands<typename S::T>& op, const AttentionWork& work, int head, int first,
                            const char* stage, Group<S>& group) {
  float scores[S::kOctets][4] = {};
  Scores<S>(SharedAddress(stage), op.qk_size, group, scores);
  const int query = static_cast<int>(threadIdx.x) / 32 * kWarpQueries;
  Mask<S>(op, work, first, head, TilePattern(op, work, first), query, scores);
  Weigh<S>(group, scores);
  if constexpr (S::kHalf) {
    AddHalfValues<S>(SharedAddress(stage + S::kMatrixBytes), op.vo_size, scores, group);
  } else {
    AddSingleValues<S>(stage + S::kMatrixBytes, op.vo_size, scores, group);
  }
}

// `to` is the warp's first query's head, of which `rows` are real.
template <typename S>
__device__ void WriteOutput(typename S::T* to, int64_t token_stride, int size, int rows, const Group<S>& group) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const float total = SumOfLanes<4>(group.totals[r]);
    const float scale = total == 0 ? 0.0f : 1 / total;
    const int row = g + 8 * r;
    if (row >= rows) continue;
#pragma unroll
    for (int octet = 0; octet < S::kChannelOctets; ++octet) {
      const int channel = 8 * octet + 2 * t;
      const float pair[2] = {group.sums[octet][2 * r] * scale, group.sums[octet][2 * r + 1] * scale};
      if (channel < size) StorePack<2>(pair, to + row * token_stride + channel);
    }
  }
}

template <typename S>
__device__ void AttendTile(const AttentionOperands<typename S::T>& op, const AttentionWork& work, int head,
                           char* shared) {
  const int64_t query_head = int64_t{head} * op.qk_size, key_head = int64_t{op.KeyHead(head)} * op.qk_size;
  const int64_t value_head = int64_t{op.KeyHead(head)} * op.vo_size, out_head = int64_t{head} * op.vo_size;
  // The next tile from this key on that any query attends to; the threads are in step where there is one.
  const KeyRange range(op, work, work.begin, kQueries, S::kKeys);
  const auto tile_from = [&](int first) {
    while (first < range.end && !TilePattern(op, work, first).Any(kQueries, S::kKeys / 32)) first += S::kKeys;
    return first;
  };
  const auto copy = [&](int first, char* stage) {
    const int keys = work.end - first;
    CopyRows<S>(op.keys + first * op.key.token + key_head, op.key.token, op.qk_size, keys, SharedAddress(stage));
    CopyRows<S>(op.values + first * op.value.token + value_head, op.value.token, op.vo_size, keys,
                SharedAddress(stage + S::kMatrixBytes));
  };
  int tile = tile_from(range.first);
  if (tile < range.end) copy(tile, shared);
  CommitCopies();
  const int query = work.first + static_cast<int>(threadIdx.x) / 32 * kWarpQueries;
  const int rows = work.spare ? 0 : work.end - query;
  Group<S> group;
  LoadQueries(op.queries + query * op.query.token + query_head, op.query.token, op.qk_size, rows, group);
  for (int stage = 0; tile < range.end; stage = NextStage<kStages>(stage)) {
    const int next = tile_from(tile + S::kKeys);
    if (next < range.end) copy(next, shared + NextStage<kStages>(stage) * S::kStageBytes);
    CommitCopies();
    WaitForCopies<kStages - 1>();
    __syncthreads();
    AttendStage<S>(op, work, head, tile, shared + stage * S::kStageBytes, group);
    tile = next;
  }
  WriteOutput<S>(op.output + query * op.out.token + out_head, op.out.token, op.vo_size, work.end - query, group);
}

template <typename S>
__global__ void __launch_bounds__(kThreads)
    AttendTiles(const __grid_constant__ AttentionOperands<typename S::T> op, const int heads) {
  extern __shared__ __align__(16) char shared[];
  LetNextStart();
  AttentionWork work;
  int tile = static_cast<int>(blockIdx.x) / heads;
  bool found = FindAttentionTile<kQueries, 1>(op, tile, work);
  WaitForResults();
  while (found) {
    AttendTile<S>(op, work, static_cast<int>(blockIdx.x) % heads, shared);
    tile += static_cast<int>(gridDim.x) / heads;
    found = FindAttentionTile<kQueries, 1>(op, tile, work);
  }
}

template <typename S>
void Launch(const AttentionOperands<typename S::T>& op, int heads, Stream& stream) {
  AllowSharedMemory(AttendTiles<S>, S::kSharedBytes);
  LaunchDependent(AttendTiles<S>, AttentionGridInTurn(op, kQueries, heads), kThreads, S::kSharedBytes, QueueOf(stream),
                  op, heads);
}

}  // namespace

bool AcceptsAttentionMma(const Problem& problem) {
  const int64_t heads = problem.attention().heads;
  const auto fits = [&](int64_t channels) {
    const int64_t size = channels / heads;
    return size <= kMostChannels && size * static_cast<int64_t>(ElementBytes(problem.to.dtype)) % kPieceBytes == 0;
  };
  return fits(QueryChannels(problem)) && fits(problem.output.channels) && AcceptsMaskedAttention(problem);
}

template <DType kDType>
void AttendMma(const KernelArgs& args, Stream& stream) {
  using T = Element<kDType>;
  AttendHeads<Layout::kNhwc, kDType>(args, stream, [&](const AttentionOperands<T>& op, int heads) {
    const int size = std::max(op.qk_size, op.vo_size);
    if (size <= 32) return Launch<Shape<T, 32>>(op, heads, stream);
    if (size <= 64) return Launch<Shape<T, 64>>(op, heads, stream);
    Launch<Shape<T, kMostChannels>>(op, heads, stream);
  });
}

template void AttendMma<DType::kFloat32>(const KernelArgs&, Stream&);
template void AttendMma<DType::kFloat16>(const KernelArgs&, Stream&);
template void AttendMma<DType::kBFloat16>(const KernelArgs&, Stream&);

}  // namespace swizzle::cuda

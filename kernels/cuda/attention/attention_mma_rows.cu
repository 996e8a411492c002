#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/attention/attention_mma_rows.h"
#include "kernels/cuda/attention/attention_operands.cuh"
#include "kernels/cuda/attention/attention_warp.cuh"
#include "kernels/cuda/runtime/dependent_launch.cuh"
#include "kernels/cuda/runtime/shared_memory.h"
#include "kernels/cuda/tensor_core/pipeline.cuh"

namespace swizzle::cuda {
namespace {

constexpr int kKeys = 64;  // at a time
constexpr int kWarpQueries = 16;
constexpr int kStages = 2;
constexpr int kStepChannels = 16;  // of a head, of one product
constexpr int kPieceBytes = 16, kPieceTokens = 8;

// Of a channel of so many tokens in shared memory: no bank conflicts.
template <int kTokens>
constexpr int kPitchOf = (kTokens / kPieceTokens + 1) * kPieceBytes;
constexpr int kPitch = kPitchOf<kKeys>;

// kSize bounds the channels of a head; a block has kBlockQueries.
template <typename Element, int kSize, int kBlockQueries>
struct Shape {
  using T = Element;
  static constexpr bool kInTurn = kSize <= 32;  // see AttendRowsInTurn
  static constexpr int kQueries = kBlockQueries, kThreads = kQueries / kWarpQueries * 32;
  static constexpr int kQueryPitch = kPitchOf<kQueries>;
  static constexpr int kSteps = kSize / kStepChannels;
  static constexpr int kOctets = kKeys / 8, kChannelOctets = kSize / 8;
  static constexpr int kMatrixBytes = kSize * kPitch, kQueryBytes = kSize * kQueryPitch;
  static constexpr int kStageBytes = 2 * kMatrixBytes;                      // keys, then values
  static constexpr int kSharedBytes = kQueryBytes + kStages * kStageBytes;  // queries first, the output last
};

// `size` channels of kTokens to shared memory; tokens past the row's end are zero there.
template <int kTokens, int kThreads, typename T>
__device__ void CopyChannels(const T* from, int64_t channel_stride, int size, int64_t first, uint32_t to) {
  constexpr int kPieces = kTokens / kPieceTokens;
  const int piece = threadIdx.x % kPieces;
  const int64_t token = first + piece * kPieceTokens;
  const bool real = token < channel_stride;
  for (int channel = threadIdx.x / kPieces; channel < size; channel += kThreads / kPieces) {
    CopyAsync(to + channel * kPitchOf<kTokens> + piece * kPieceBytes,
              from + (real ? channel * channel_stride + token : 0), real);
  }
}

template <typename S>
__device__ void LoadQueries(uint32_t queries, int size, Group<S>& group) {
  const int lane = threadIdx.x % 32, token = threadIdx.x / 32 * kWarpQueries;
  // Matrices: octets of tokens alternate, then those of channels.
  const uint32_t row = queries + (lane / 16 * 8 + lane % 8) * S::kQueryPitch + (token + lane / 8 % 2 * 8) * 2;
#pragma unroll
  for (int step = 0; step < S::kSteps; ++step) {
    if (step * kStepChannels >= size) break;
    LoadTransposed(group.queries[step], row + step * kStepChannels * S::kQueryPitch);
  }
}

// scores[j] = queries by keys 8j to 8j + 7 of the tile.
template <typename S>
__device__ void Scores(uint32_t keys, int size, const Group<S>& group, float (&scores)[S::kOctets][4]) {
  const int lane = threadIdx.x % 32;
  // Matrices: octets of channels alternate, then those of keys.
  const uint32_t row = keys + lane % 16 * kPitch + lane / 16 * kPieceBytes;
#pragma unroll
  for (int step = 0; step < S::kSteps; ++step) {
    if (step * kStepChannels >= size) break;
#pragma unroll
    for (int j = 0; j < S::kOctets; j += 2) {
      uint32_t b[4];
      LoadTransposed(b, row + step * kStepChannels * kPitch + j * kPieceBytes);
      Multiply<typename S::T>(scores[j], group.queries[step], b[0], b[1]);
      Multiply<typename S::T>(scores[j + 1], group.queries[step], b[2], b[3]);
    }
  }
}

// Scales scores, adds biases and takes out keys of other sequences.
template <typename S>
__device__ void Mask(const AttentionOperands<typename S::T>& op, const AttentionWork& work, int head, int first,
                     const InSequence& inside, float (&scores)[S::kOctets][4]) {
  const bool pairs = op.AddsToPairs();
  if (inside.Covers(kKeys) && op.key_bias == nullptr && !pairs) {
#pragma unroll
    for (auto& octet : scores) {
#pragma unroll
      for (float& score : octet) score *= op.scale;
    }
    return;
  }
  const int t = threadIdx.x % 4;
#pragma unroll
  for (int j = 0; j < S::kOctets; ++j) {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const int key = 8 * j + 2 * t + e;
      const bool real = inside.Has(key);
      const float bias = op.key_bias != nullptr && real ? op.key_bias[first + key] * kLog2E : 0.0f;
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        float& score = scores[j][2 * r + e];
        score = real ? fmaf(score, op.scale, bias) : -INFINITY;
      }
    }
  }
  if (!pairs) return;
  const int query = work.first + static_cast<int>(threadIdx.x) / 32 * kWarpQueries;
  AddToPairs<S>(op, work, head, query, first, scores);
}

// A pair of values of keys `key` and the next, without those of other sequences.
__device__ uint32_t InsideOnly(uint32_t pair, int key, const InSequence& inside) {
  return (inside.Has(key) ? pair & 0xFFFFu : 0) | (inside.Has(key + 1) ? pair & 0xFFFF0000u : 0);
}

// sums += weights by values.
template <typename S>
__device__ void AddValues(uint32_t values, int size, const InSequence& inside, const float (&weights)[S::kOctets][4],
                          Group<S>& group) {
  using T = typename S::T;
  const int lane = threadIdx.x % 32;
  const bool all = inside.Covers(kKeys);
  // Matrices: octets of keys alternate, then those of channels.
  const uint32_t row = values + (lane / 16 * 8 + lane % 8) * kPitch + lane / 8 % 2 * kPieceBytes;
#pragma unroll
  for (int j = 0; j < S::kOctets; j += 2) {
    const uint32_t a[4] = {PackPair<T>(weights[j][0], weights[j][1]), PackPair<T>(weights[j][2], weights[j][3]),
                           PackPair<T>(weights[j + 1][0], weights[j + 1][1]),
                           PackPair<T>(weights[j + 1][2], weights[j + 1][3])};
    const int key = 8 * j + lane % 4 * 2;
#pragma unroll
    for (int octet = 0; octet < S::kChannelOctets; octet += 2) {
      if (octet * 8 >= size) break;
      uint32_t b[4];
      LoadMatrices(b, row + octet * 8 * kPitch + j * kPieceBytes);
      if (!all) {
#pragma unroll
        for (int i = 0; i < 4; ++i) b[i] = InsideOnly(b[i], key + i % 2 * 8, inside);
      }
      Multiply<T>(group.sums[octet], a, b[0], b[1]);
      Multiply<T>(group.sums[octet + 1], a, b[2], b[3]);
    }
  }
}

// Scales scores that need nothing else, and makes weights of them as Weigh does, in fewer instructions.
template <typename S>
__device__ void ScaleAndWeigh(Group<S>& group, float scale, float (&scores)[S::kOctets][4]) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float largest = -INFINITY, total = 0;
#pragma unroll
    for (int j = 0; j < S::kOctets; ++j) largest = fmaxf(largest, fmaxf(scores[j][2 * r], scores[j][2 * r + 1]));
    largest = fmaxf(group.largest[r], MaxOfLanes<4>(largest) * scale);
    const float growth = PowerOfTwo(group.largest[r] - largest);
    group.largest[r] = largest;
#pragma unroll
    for (auto& sum : group.sums) {
      sum[2 * r] *= growth;
      sum[2 * r + 1] *= growth;
    }
#pragma unroll
    for (int j = 0; j < S::kOctets; ++j) {
#pragma unroll
      for (int e = 2 * r; e < 2 * r + 2; ++e) {
        scores[j][e] = PowerOfTwo(fmaf(scores[j][e], scale, -largest));
        total += scores[j][e];
      }
    }
    group.totals[r] = fmaf(group.totals[r], growth, total);
  }
}

template <typename S>
__device__ void AttendStage(const AttentionOperands<typename S::T>& op, const AttentionWork& work, int head, int first,
                            uint32_t stage, Group<S>& group) {
  float scores[S::kOctets][4] = {};
  const InSequence inside(work, first);
  Scores<S>(stage, op.qk_size, group, scores);
  const bool biased = op.key_bias != nullptr || op.AddsToPairs();
  if (S::kInTurn && inside.Covers(kKeys) && !biased && op.scale > 0) {
    ScaleAndWeigh<S>(group, op.scale, scores);
  } else {
    Mask<S>(op, work, head, first, inside, scores);
    Weigh<S>(group, scores);
  }
  AddValues<S>(stage + S::kMatrixBytes, op.vo_size, inside, scores, group);
}

// The warp's tokens of the output, channel by channel, to where its queries were.
template <typename S>
__device__ void PutOutput(char* output, int size, const Group<S>& group) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4, token = threadIdx.x / 32 * kWarpQueries;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const float total = SumOfLanes<4>(group.totals[r]);
    const float scale = total == 0 ? 0.0f : 1 / total;
#pragma unroll
    for (int octet = 0; octet < S::kChannelOctets; ++octet) {
      if (octet * 8 >= size) break;
      const uint32_t pair = TransposeInWarp(
          PackPair<typename S::T>(group.sums[octet][2 * r] * scale, group.sums[octet][2 * r + 1] * scale));
      *reinterpret_cast<uint32_t*>(output + (8 * octet + g) * S::kQueryPitch + (token + 8 * r + 2 * t) * 2) = pair;
    }
  }
}

// What of a tile belongs to the sequence, from shared memory.
template <typename S, typename T>
__device__ void StoreOutput(const char* output, int size, const InSequence& inside, T* to, int64_t channel_stride) {
  constexpr int kPieces = S::kQueries / kPieceTokens;
  const int piece = threadIdx.x % kPieces, token = piece * kPieceTokens;
  const bool whole = inside.begin <= token && token + kPieceTokens <= inside.end;
  for (int channel = threadIdx.x / kPieces; channel < size; channel += S::kThreads / kPieces) {
    const char* const from = output + channel * S::kQueryPitch + piece * kPieceBytes;
    T* const row = to + channel * channel_stride + token;
    if (whole) {
      *reinterpret_cast<uint4*>(row) = *reinterpret_cast<const uint4*>(from);
      continue;
    }
    for (int i = 0; i < kPieceTokens; ++i) {
      if (inside.Has(token + i)) row[i] = reinterpret_cast<const T*>(from)[i];
    }
  }
}

// The block's tile of queries, of the sequence that blocks find as in attention.h.
template <int kQueries, typename T>
__device__ AttentionWork FindTile(const AttentionOperands<T>& op) {
  AttentionWork work = FindAttentionWork(op, kQueries);
  work.first -= work.begin - work.begin / kQueries * kQueries;
  return work;
}

// Stores the warp's tokens of the output from registers.
template <typename S>
__device__ void StoreFromRegisters(const Group<S>& group, int size, const InSequence& inside, typename S::T* to,
                                   int64_t channel_stride) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const float total = SumOfLanes<4>(group.totals[r]);
    const float scale = total == 0 ? 0.0f : 1 / total;
    const int token = threadIdx.x / 32 * kWarpQueries + 8 * r + 2 * t;
#pragma unroll
    for (int octet = 0; octet < S::kChannelOctets; ++octet) {
      if (octet * 8 >= size) break;
      const uint32_t pair = TransposeInWarp(
          PackPair<typename S::T>(group.sums[octet][2 * r] * scale, group.sums[octet][2 * r + 1] * scale));
      auto* const row = reinterpret_cast<uint16_t*>(to + (8 * octet + g) * channel_stride + token);
      if (inside.Has(token) && inside.Has(token + 1)) {
        *reinterpret_cast<uint32_t*>(row) = pair;
        continue;
      }
      if (inside.Has(token)) row[0] = static_cast<uint16_t>(pair);
      if (inside.Has(token + 1)) row[1] = static_cast<uint16_t>(pair >> 16);
    }
  }
}

// What all keys of the tile's sequence add to a head's queries. All threads of the block call it.
template <typename S>
__device__ void AttendKeys(const AttentionOperands<typename S::T>& op, const AttentionWork& work, int head,
                           char* shared, Group<S>& group) {
  const int64_t query_head = int64_t{head} * op.qk_size, key_head = int64_t{op.KeyHead(head)} * op.qk_size;
  const int64_t value_head = int64_t{op.KeyHead(head)} * op.vo_size;
  const auto copy = [&](int first, char* stage) {
    CopyChannels<kKeys, S::kThreads>(op.keys + key_head * op.key.channel, op.key.channel, op.qk_size, first,
                                     SharedAddress(stage));
    CopyChannels<kKeys, S::kThreads>(op.values + value_head * op.value.channel, op.value.channel, op.vo_size, first,
                                     SharedAddress(stage + S::kMatrixBytes));
  };
  char* const stages = shared + S::kQueryBytes;
  const KeyRange range(op, work, work.begin / kKeys * kKeys, S::kQueries, kKeys);
  int tile = range.first;
  if (tile < range.end) {
    CopyChannels<S::kQueries, S::kThreads>(op.queries + query_head * op.query.channel, op.query.channel, op.qk_size,
                                           work.first, SharedAddress(shared));
    copy(tile, stages);
  }
  CommitCopies();
  bool queries_loaded = false;
  for (int stage = 0; tile < range.end; stage = NextStage<kStages>(stage), tile += kKeys) {
    if (tile + kKeys < range.end) copy(tile + kKeys, stages + NextStage<kStages>(stage) * S::kStageBytes);
    CommitCopies();
    WaitForCopies<kStages - 1>();
    __syncthreads();
    if (!queries_loaded) LoadQueries<S>(SharedAddress(shared), op.qk_size, group);
    queries_loaded = true;
    AttendStage<S>(op, work, head, tile, SharedAddress(stages + stage * S::kStageBytes), group);
    __syncthreads();  // the next copies go where this one's tile is
  }
}

template <typename S>
__global__ void __launch_bounds__(S::kThreads) AttendRows(const __grid_constant__ AttentionOperands<typename S::T> op) {
  extern __shared__ __align__(16) char shared[];
  LetNextStart();
  const AttentionWork work = FindTile<S::kQueries>(op);
  WaitForResults();
  if (work.first >= work.end) return;
  Group<S> group;
  AttendKeys<S>(op, work, blockIdx.y, shared, group);
  PutOutput<S>(shared, op.vo_size, group);
  __syncthreads();
  StoreOutput<S>(shared, op.vo_size, InSequence(work, work.first),
                 op.output + int64_t{blockIdx.y} * op.vo_size * op.out.channel + work.first, op.out.channel);
}

// For small heads, whose tiles take no longer than finding that there is none (AttentionGridInTurn).
constexpr int kWarpsInTurn = 24;  // of a multiprocessor
template <typename S>
__global__ void __launch_bounds__(S::kThreads, kWarpsInTurn * 32 / S::kThreads)
    AttendRowsInTurn(const __grid_constant__ AttentionOperands<typename S::T> op, const int heads) {
  extern __shared__ __align__(16) char shared[];
  LetNextStart();
  const int head = static_cast<int>(blockIdx.x) % heads;
  AttentionWork work;
  int tile = static_cast<int>(blockIdx.x) / heads;
  bool found = FindAttentionTile<S::kQueries, S::kQueries>(op, tile, work);
  WaitForResults();
  while (found) {
    Group<S> group;
    AttendKeys<S>(op, work, head, shared, group);
    StoreFromRegisters<S>(group, op.vo_size, InSequence(work, work.first),
                          op.output + int64_t{head} * op.vo_size * op.out.channel + work.first, op.out.channel);
    found = FindNextAttentionTile<S::kQueries, S::kQueries>(op, static_cast<int>(gridDim.x) / heads, tile, work);
  }
}

template <typename S>
void Launch(const AttentionOperands<typename S::T>& op, int heads, Stream& stream) {
  if constexpr (S::kInTurn) {
    AllowSharedMemory(AttendRowsInTurn<S>, S::kSharedBytes);
    LaunchDependent(AttendRowsInTurn<S>, AttentionGridInTurn(op, S::kQueries, heads), S::kThreads, S::kSharedBytes,
                    QueueOf(stream), op, heads);
  } else {
    AllowSharedMemory(AttendRows<S>, S::kSharedBytes);
    LaunchDependent(AttendRows<S>, AttentionGrid(op, S::kQueries, heads), S::kThreads, S::kSharedBytes, QueueOf(stream),
                    op);
  }
}

// Longer sequences in tiles of twice as many queries, whose keys are read half as often: small heads where these fill
// the device and sequences fill tiles. Of the largest heads such tiles would fit Hopper alone.
template <typename T, int kSize>
void LaunchTiles(const AttentionOperands<T>& op, int heads, Stream& stream) {
  constexpr int kShort = 64, kLong = kSize <= 64 ? 128 : 64;
  const bool fills = int64_t{op.tokens} * heads >= int64_t{kLong} * MultiprocessorsOf(stream);
  const bool is_long = kSize <= 32 ? op.tokens >= kLong * op.sequences && fills : op.tokens > kShort * op.sequences;
  if (is_long) return Launch<Shape<T, kSize, kLong>>(op, heads, stream);
  Launch<Shape<T, kSize, kShort>>(op, heads, stream);
}

}  // namespace

bool AcceptsAttentionMmaRows(const Problem& problem) {
  const int64_t heads = problem.attention().heads;
  const auto fits = [&](int64_t channels) {
    const int64_t size = channels / heads;
    return size <= 128 && size % kStepChannels == 0;
  };
  return fits(QueryChannels(problem)) && fits(problem.output.channels) && AcceptsAttention(problem);
}

template <DType kDType>
void AttendMmaRows(const KernelArgs& args, Stream& stream) {
  using T = Element<kDType>;
  AttendHeads<Layout::kRows, kDType>(args, stream, [&](const AttentionOperands<T>& op, int heads) {
    const int size = std::max(op.qk_size, op.vo_size);
    if (size <= 32) return LaunchTiles<T, 32>(op, heads, stream);
    if (size <= 64) return LaunchTiles<T, 64>(op, heads, stream);
    LaunchTiles<T, 128>(op, heads, stream);
  });
}

template void AttendMmaRows<DType::kFloat16>(const KernelArgs&, Stream&);
template void AttendMmaRows<DType::kBFloat16>(const KernelArgs&, Stream&);

}  // namespace swizzle::cuda

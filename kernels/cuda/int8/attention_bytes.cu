#include <algorithm>
#include <type_traits>

#include "kernels/base/check.h"
#include "kernels/cuda/int8/attention_bytes.h"
#include "kernels/cuda/int8/spmm_bytes.cuh"
#include "kernels/cuda/runtime/elements.cuh"

namespace swizzle::cuda {
namespace {

constexpr int kWarps = 4, kThreads = kWarps * kByteWarp, kRows = BytePanels::kRows;
constexpr int kPieceNumbers = 64;     // of a row, that four lanes read at once
constexpr int64_t kBusyWarps = 4096;  // that fill a large device
constexpr int64_t kAlignment = 256;
constexpr int kDigitBytes = BytePanels::StepBytes(8);

struct SddmmArgs {
  const BytePanel* panels;
  const uint16_t* columns;
  WholeHeads q, k;
  int64_t slots, tokens, channels;
  int32_t panel_count, parts, heads, head_dim;
};

// How a lane holds its part of a row.
template <int kBits, int kPieces>
struct RowOfDepth {
  static constexpr int kDigits = kBits == 16 ? 2 : 1;
  static constexpr int kWords = kBits == 4 ? 2 : 4;
  static constexpr int kPowers = 2 * kDigits - 1;
  Pack<uint32_t, kWords> words[kDigits][kPieces];

  // `number`: of the row's first element.
  __device__ void Load(const WholeHeads& from, int64_t number) {
    const int t = threadIdx.x % 4;
    const int64_t byte = kBits == 4 ? number / 2 : number;
#pragma unroll
    for (int digit = 0; digit < kDigits; ++digit) {
      const auto* const of =
          reinterpret_cast<const Pack<uint32_t, kWords>*>((digit == 0 ? from.low : from.high) + byte);
#pragma unroll
      for (int piece = 0; piece < kPieces; ++piece) words[digit][piece] = of[piece * 4 + t];
    }
  }
};

// Adds products of 16 keys, rows g and g + 8 of which are here, with the queries.
template <int kBits, int kPieces, int kKeyDigit, int kQueryDigit>
__device__ void MultiplyKeys(const RowOfDepth<kBits, kPieces>& first, const RowOfDepth<kBits, kPieces>& second,
                             const RowOfDepth<kBits, kPieces>& queries, int32_t (&sums)[4]) {
  constexpr int kLast = RowOfDepth<kBits, kPieces>::kDigits - 1;
  using Key = std::conditional_t<kKeyDigit == kLast, int8_t, uint8_t>;
  using Query = std::conditional_t<kQueryDigit == kLast, int8_t, uint8_t>;
#pragma unroll
  for (int piece = 0; piece < kPieces; ++piece) {
    const auto& a = first.words[kKeyDigit][piece].values;
    const auto& b = second.words[kKeyDigit][piece].values;
    const auto& q = queries.words[kQueryDigit][piece].values;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if constexpr (kBits == 4) {  // as the upper halves of bytes
        constexpr uint32_t kUpper = 0xF0F0F0F0u;
        const uint32_t keys[4] = {a[i] << 4 & kUpper, b[i] << 4 & kUpper, a[i] & kUpper, b[i] & kUpper};
        Mma<Key, Query>(sums, keys, q[i] << 4 & kUpper, q[i] & kUpper);
      } else {
        const uint32_t keys[4] = {a[2 * i], b[2 * i], a[2 * i + 1], b[2 * i + 1]};
        Mma<Key, Query>(sums, keys, q[2 * i], q[2 * i + 1]);
      }
    }
  }
}

// Both have QueryScale and KeyScale of a token of a head, and Store(at, sums of two queries, scales of both).
struct StoreScores {
  __half* scores;
  const float *query_scales, *key_scales;
  float scale;
  __device__ float QueryScale(int64_t token) const { return __ldg(query_scales + token) * scale; }
  __device__ float KeyScale(int64_t token) const { return __ldg(key_scales + token); }
  __device__ void Store(int64_t at, int32_t x, int32_t y, float x_scale, float y_scale) const {
    *reinterpret_cast<__half2*>(scores + at) = __floats2half2_rn(x * x_scale, y * y_scale);
  }
};
struct StoreWhole {
  int32_t* sums;
  __device__ float QueryScale(int64_t) const { return 1; }
  __device__ float KeyScale(int64_t) const { return 1; }
  __device__ void Store(int64_t at, int32_t x, int32_t y, float, float) const {
    *reinterpret_cast<int2*>(sums + at) = make_int2(x, y);
  }
};

// A panel each warp or, of few panels, every so many-th step of one; blockIdx.y is the head.
template <int kBits, int kPieces, typename Output>
__global__ void __launch_bounds__(kThreads)
    SampleProducts(const __grid_constant__ SddmmArgs args, const __grid_constant__ Output output) {
  using Row = RowOfDepth<kBits, kPieces>;
  const int lane = threadIdx.x % kByteWarp, g = lane / 4, t = lane % 4;
  const int at = static_cast<int>(blockIdx.x) * kWarps + threadIdx.x / kByteWarp;
  if (at / args.parts >= args.panel_count) return;
  const BytePanel panel = args.panels[at / args.parts];
  const uint32_t part = at % args.parts;
  if (part >= panel.steps) return;
  const int head = blockIdx.y % args.heads, sequence = blockIdx.y / args.heads;
  const auto number = [&](int64_t token) {
    return (sequence * args.tokens + token) * args.channels + head * args.head_dim;
  };
  const auto of_head = [&](int64_t token) { return (sequence * args.tokens + token) * args.heads + head; };
  const auto query = [&](int i) { return min(static_cast<int64_t>(panel.row) + i, args.tokens - 1); };
  Row queries;
  queries.Load(args.q, number(query(g)));
  const float query_scales[2] = {output.QueryScale(of_head(query(2 * t))),
                                 output.QueryScale(of_head(query(2 * t + 1)))};
  // Slots g, g + 8, g + 16 and g + 24: their columns lie two apart.
  const int64_t first = int64_t{panel.step + part} * kStepColumns;
  const uint16_t* columns = args.columns + first + g % 4 * 8 + g / 4;
  int64_t place = (int64_t{blockIdx.y} * args.slots + first + g) * kRows + 2 * t;
  for (uint32_t step = part; step < panel.steps; step += args.parts) {
    Row keys[4];
    float key_scales[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int64_t key = __ldg(columns + 2 * i);
      keys[i].Load(args.k, number(key));
      key_scales[i] = output.KeyScale(of_head(key));
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      int32_t sums[Row::kPowers][4] = {};
      MultiplyKeys<kBits, kPieces, 0, 0>(keys[2 * half], keys[2 * half + 1], queries, sums[0]);
      if constexpr (Row::kDigits == 2) {
        MultiplyKeys<kBits, kPieces, 0, 1>(keys[2 * half], keys[2 * half + 1], queries, sums[1]);
        MultiplyKeys<kBits, kPieces, 1, 0>(keys[2 * half], keys[2 * half + 1], queries, sums[1]);
        MultiplyKeys<kBits, kPieces, 1, 1>(keys[2 * half], keys[2 * half + 1], queries, sums[2]);
      }
      uint32_t joined[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        joined[i] = static_cast<uint32_t>(kBits == 4 ? sums[0][i] >> 8 : sums[0][i]);
#pragma unroll
        for (int power = 1; power < Row::kPowers; ++power) {
          joined[i] += static_cast<uint32_t>(sums[power][i]) << 8 * power;
        }
      }
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const float key_scale = key_scales[2 * half + i];
        output.Store(place + (half * 16 + i * 8) * kRows, static_cast<int32_t>(joined[2 * i]),
                     static_cast<int32_t>(joined[2 * i + 1]), query_scales[0] * key_scale, query_scales[1] * key_scale);
      }
    }
    columns += kStepColumns * args.parts;
    place += int64_t{kStepColumns} * kRows * args.parts;
  }
}

template <int kBits, typename Output>
void QueueSampled(const KeyPanels& pattern, const HeadCounts& counts, const WholeHeads& q, const WholeHeads& k,
                  const Output& output, cudaStream_t queue) {
  const BytePanels& panels = pattern.panels();
  const int64_t warps = panels.count() * counts.sequences * counts.heads;
  if (warps == 0) return;
  const int64_t steps = std::max<int64_t>(1, CeilDiv(panels.steps(), panels.count()));  // of a panel
  const auto parts = static_cast<int32_t>(std::clamp<int64_t>(kBusyWarps / warps, 1, steps));
  const SddmmArgs args = {.panels = panels.panels(),
                          .columns = panels.columns(),
                          .q = q,
                          .k = k,
                          .slots = pattern.slots(),
                          .tokens = pattern.tokens(),
                          .channels = counts.channels(),
                          .panel_count = static_cast<int32_t>(panels.count()),
                          .parts = parts,
                          .heads = counts.heads,
                          .head_dim = counts.head_dim};
  const LaunchGrid grid(CeilDiv<int64_t>(panels.count() * parts, kWarps), int64_t{counts.sequences} * counts.heads);
  if (counts.head_dim == kPieceNumbers) {
    SampleProducts<kBits, 1, Output><<<grid, kThreads, 0, queue>>>(args, output);
  } else if (counts.head_dim == 2 * kPieceNumbers) {
    SampleProducts<kBits, 2, Output><<<grid, kThreads, 0, queue>>>(args, output);
  } else {
    SWIZZLE_CHECK(counts.head_dim == 4 * kPieceNumbers && (std::is_same_v<Output, StoreWhole>));
    if constexpr (std::is_same_v<Output, StoreWhole>) {
      SampleProducts<kBits, 4, Output><<<grid, kThreads, 0, queue>>>(args, output);
    }
  }
}

// Of queries, keys and values, one for each blockIdx.y.
struct QuantiseArgs {
  const __half* from[3];
  uint8_t* to[3];
  float* scales[3];  // of each token of a head
  int64_t count;
};
// kLanes neighbours have a token's numbers of a head.
template <int kBits, int kLanes>
__global__ void __launch_bounds__(kThreads) QuantiseHeads(const __grid_constant__ QuantiseArgs args) {
  constexpr int kAtOnce = kPieceNumbers / 8, kInByte = 8 / kBits, kMost = (1 << (kBits - 1)) - 1;
  const int of = blockIdx.y;
  const int64_t i = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * kAtOnce;
  const bool inside = i < args.count;
  float values[kAtOnce] = {};
  if (inside) LoadPack(args.from[of] + i, values);
  float most = 0;
#pragma unroll
  for (const float value : values) most = fmaxf(most, fabsf(value));
  most = MaxOfLanes<kLanes>(most);
  const float scale = most > 0 ? most / kMost : 1, inverse = 1 / scale;
  if (!inside) return;
  Pack<uint8_t, kAtOnce / kInByte> bytes = {};
#pragma unroll
  for (int j = 0; j < kAtOnce; ++j) {
    const int number = min(max(__float2int_rn(values[j] * inverse), -kMost), kMost);
    bytes.values[j / kInByte] |= static_cast<uint8_t>((number & ((1 << kBits) - 1)) << kBits * (j % kInByte));
  }
  if (threadIdx.x % kLanes == 0) args.scales[of][i / (kLanes * kAtOnce)] = scale;
  *reinterpret_cast<Pack<uint8_t, kAtOnce / kInByte>*>(args.to[of] + i / kInByte) = bytes;
}

template <int kBits>
void QueueQuantise(const QuantiseArgs& args, int head_dim, cudaStream_t queue) {
  const LaunchGrid grid(CeilDiv<int64_t>(args.count / 8, kThreads), 3);
  if (head_dim == kPieceNumbers) {
    QuantiseHeads<kBits, 8><<<grid, kThreads, 0, queue>>>(args);
  } else {
    QuantiseHeads<kBits, 16><<<grid, kThreads, 0, queue>>>(args);
  }
}

struct ShareArgs {
  const BytePanel* panels;
  const uint16_t* columns;
  const uint8_t* masks;
  const __half* scores;
  const float* value_scales;  // of each token of a head
  uint8_t* shares;
  float* factors;  // of each query of a head, what its sums are to be multiplied by
  int64_t slots, queries, tokens;
  int32_t panel_count, heads;
};

// A lane's share of its slot for a row, to where weights lie in a step (BytePanels::PlaceInStep).
template <int kBits>
__device__ void StoreShare(uint8_t* step, int row, uint32_t share) {
  const int lane = threadIdx.x % kByteWarp, of_word = lane % 16 / 8 * 2 + lane % 2, thread = row * 4 + lane % 8 / 2;
  if constexpr (kBits == 4) {
    const uint32_t upper = __shfl_down_sync(0xffffffffu, share, kByteWarp / 2);
    if (lane < kByteWarp / 2) step[thread * 4 + of_word] = static_cast<uint8_t>(share | upper << 4);
  } else {
    const int place = thread * 8 + lane / 16 * 4 + of_word;
    step[place] = static_cast<uint8_t>(share);
    if constexpr (kBits == 16) step[kDigitBytes + place] = static_cast<uint8_t>(share >> 8);
  }
}

// Scores of a panel become shares, a warp each; a lane has a slot of every step. blockIdx.y is the head. Shares, times
// the scales of their values, count in steps of 1/255 of the query's largest one (of 8 bits); outputs are divided by
// the sum of shares as they were rounded.
template <int kBits>
__global__ void __launch_bounds__(kThreads) ShareKeys(const __grid_constant__ ShareArgs args) {
  constexpr float kLargestShare = (1 << kBits) - 1;
  const int lane = threadIdx.x % kByteWarp;
  const int at = static_cast<int>(blockIdx.x) * kWarps + threadIdx.x / kByteWarp;
  if (at >= args.panel_count) return;
  const BytePanel panel = args.panels[at];
  const int64_t first = int64_t{panel.step} * kStepColumns + lane, head = int64_t{blockIdx.y} * args.slots;
  const uint16_t* const columns = args.columns - lane + lane % 4 * 8 + lane / 4;
  const float* const value_scales =
      args.value_scales + blockIdx.y / args.heads * args.tokens * args.heads + blockIdx.y % args.heads;
  const auto for_each = [&](const auto& visit) {
    for (uint32_t step = 0; step < panel.steps; ++step) {
      const int64_t slot = first + int64_t{step} * kStepColumns;
      float values[kRows];
      LoadPack(args.scores + (head + slot) * kRows, values);
      const float scale = __ldg(value_scales + int64_t{__ldg(columns + slot)} * args.heads), log = __logf(scale);
#pragma unroll
      for (float& value : values) value += log;
      visit(values, 1 / scale, args.masks[slot], head + slot - lane);
    }
  };
  float most[kRows], sums[kRows] = {};
#pragma unroll
  for (float& value : most) value = -INFINITY;
  for_each([&](const float(&values)[kRows], float, uint32_t mask, int64_t) {
#pragma unroll
    for (int i = 0; i < kRows; ++i) most[i] = fmaxf(most[i], mask >> i & 1 ? values[i] : -INFINITY);
  });
#pragma unroll
  for (float& value : most) value = MaxOfLanes(value);
  for_each([&](const float(&values)[kRows], float of_value, uint32_t mask, int64_t step_begin) {
    uint8_t* const to = args.shares + step_begin * kRows * kBits / 8;
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const float share = mask >> i & 1 ? rintf(__expf(values[i] - most[i]) * kLargestShare) : 0;
      sums[i] += share * of_value;
      StoreShare<kBits>(to, i, static_cast<uint32_t>(share));
    }
  });
  float* const factors = args.factors + blockIdx.y * args.queries + panel.row;
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const float sum = SumOfLanes(sums[i]);
    if (lane == i) factors[i] = sum > 0 ? 1 / sum : 0;
  }
}

// Products of shares with values. Sums of shares of 16 bits may not fit 32.
template <int kShareBits, int kBits, int kTile>
struct ShareWidths : ByteWidths<kShareBits, kBits, true, kTile> {
  static constexpr bool kHeads = true;
  using Sum = std::conditional_t<(kShareBits > 8), float, int32_t>;
  template <int>
  using WeightDigit = uint8_t;
};

struct StoreScaled {
  __half* y;
  const float* factors;
  int64_t queries;

  __device__ StoreScaled OfHead(int head, int64_t y_offset) const {
    return {y + y_offset, factors + head * queries, queries};
  }
  template <typename Sum, int kCount>
  __device__ void Store(int row, int64_t at, const Sum (&sums)[kCount]) const {
    const float factor = factors[row];
#pragma unroll
    for (int i = 0; i < kCount; i += 2) {
      *reinterpret_cast<__half2*>(y + at + i) = __floats2half2_rn(sums[i] * factor, sums[i + 1] * factor);
    }
  }
};

// Where a launch keeps what is between its kernels.
struct Workspace {
  int64_t bytes, queries, scales, scales_bytes, scores, shares, factors, end;
  Workspace(int64_t tokens, int64_t slots, const HeadCounts& counts, AttentionBits bits) {
    const int64_t numbers = counts.sequences * tokens * counts.channels();
    const int64_t heads = int64_t{counts.sequences} * counts.heads, values = heads * slots * kRows;
    bytes = RoundUp(numbers * bits.operands / 8, kAlignment);
    scales = 3 * bytes;
    scales_bytes = RoundUp(numbers / counts.head_dim * int64_t{sizeof(float)}, kAlignment);
    scores = scales + 3 * scales_bytes;
    shares = scores + RoundUp(values * int64_t{sizeof(__half)}, kAlignment);
    factors = shares + RoundUp(values * bits.shares / 8, kAlignment);
    queries = RoundUp(tokens, int64_t{kRows});
    end = factors + heads * queries * int64_t{sizeof(float)};
  }
};

template <int kShareBits, int kBits>
void QueueAttention(const KeyPanels& pattern, const ByteAttention& attention, cudaStream_t queue) {
  const HeadCounts& counts = attention.counts;
  const Workspace lies(pattern.tokens(), pattern.slots(), counts, {kShareBits, kBits});
  auto* const base = static_cast<uint8_t*>(attention.workspace);
  auto* const scores = reinterpret_cast<__half*>(base + lies.scores);
  uint8_t* const shares = base + lies.shares;
  auto* const factors = reinterpret_cast<float*>(base + lies.factors);
  const int64_t tokens = pattern.tokens(), channels = counts.channels(), numbers = counts.sequences * tokens * channels;
  const int64_t heads = int64_t{counts.sequences} * counts.heads;
  const auto bytes_of = [&](int i) { return base + i * lies.bytes; };
  const auto scales_of = [&](int i) { return reinterpret_cast<float*>(base + lies.scales + i * lies.scales_bytes); };
  const QuantiseArgs quantise = {.from = {attention.q, attention.k, attention.v},
                                 .to = {bytes_of(0), bytes_of(1), bytes_of(2)},
                                 .scales = {scales_of(0), scales_of(1), scales_of(2)},
                                 .count = numbers};
  QueueQuantise<kBits>(quantise, counts.head_dim, queue);
  QueueSampled<kBits>(pattern, counts, {bytes_of(0), nullptr}, {bytes_of(1), nullptr},
                      StoreScores{scores, scales_of(0), scales_of(1), attention.scale}, queue);
  const BytePanels& panels = pattern.panels();
  const ShareArgs share = {.panels = panels.panels(),
                           .columns = panels.columns(),
                           .masks = pattern.masks(),
                           .scores = scores,
                           .value_scales = scales_of(2),
                           .shares = shares,
                           .factors = factors,
                           .slots = pattern.slots(),
                           .queries = lies.queries,
                           .tokens = tokens,
                           .panel_count = static_cast<int32_t>(panels.count()),
                           .heads = counts.heads};
  ShareKeys<kShareBits><<<LaunchGrid(CeilDiv<int64_t>(panels.count(), kWarps), heads), kThreads, 0, queue>>>(share);
  const int64_t of_head = counts.head_dim, of_sequence = tokens * channels;
  const int64_t weights = pattern.head_values() * kShareBits / 8;
  const ByteArgs args = {.x = {bytes_of(2), nullptr},
                         .pitch = channels * kBits / 8,
                         .panels = panels.panels(),
                         .columns = panels.columns(),
                         .weights = shares,
                         .rows = static_cast<int32_t>(tokens),
                         .cols = static_cast<int32_t>(tokens),
                         .chunks = counts.head_dim * kBits / 8 / kChunkBytes,
                         .panel_count = static_cast<int32_t>(panels.count()),
                         .tiles = 0,
                         .stride = channels,
                         .heads = counts.heads,
                         .all_heads = static_cast<int32_t>(heads),
                         .x_strides = {of_head * kBits / 8, of_sequence * kBits / 8},
                         .weight_strides = {weights, counts.heads * weights},
                         .y_strides = {of_head, of_sequence}};
  const StoreScaled output = {attention.output, factors, lies.queries};
  if (args.chunks <= 4) return QueueGather<ShareWidths<kShareBits, kBits, 4>, StoreScaled>(args, output, queue);
  QueueGather<ShareWidths<kShareBits, kBits, 8>, StoreScaled>(args, output, queue);
}

}  // namespace

void QueueSddmmBytes(const KeyPanels& pattern, const HeadCounts& counts, int bits, const WholeHeads& q,
                     const WholeHeads& k, int32_t* sums, cudaStream_t queue) {
  const StoreWhole output = {sums};
  if (bits == 4) return QueueSampled<4>(pattern, counts, q, k, output, queue);
  if (bits == 8) return QueueSampled<8>(pattern, counts, q, k, output, queue);
  QueueSampled<16>(pattern, counts, q, k, output, queue);
}

size_t ByteAttentionWorkspaceBytes(int64_t tokens, int64_t slots, const HeadCounts& counts, AttentionBits bits) {
  return static_cast<size_t>(Workspace(tokens, slots, counts, bits).end);
}

void QueueByteAttention(const KeyPanels& pattern, const ByteAttention& attention, cudaStream_t queue) {
  const AttentionBits bits = attention.bits;
  if (bits.shares == 16) return QueueAttention<16, 8>(pattern, attention, queue);
  if (bits.operands == 8) return QueueAttention<8, 8>(pattern, attention, queue);
  if (bits.shares == 8) return QueueAttention<8, 4>(pattern, attention, queue);
  QueueAttention<4, 4>(pattern, attention, queue);
}

}  // namespace swizzle::cuda

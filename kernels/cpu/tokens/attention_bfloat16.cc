#include "kernels/cpu/tokens/attention_bfloat16.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/base/integers.h"
#include "kernels/cpu/runtime/cpu_stream.h"
#include "kernels/cpu/simd/bfloat16_pairs-inl.h"
#include "kernels/cpu/simd/widened.h"
#include "kernels/cpu/tokens/attention_operands.h"
#include "kernels/cpu/tokens/attention_work.h"

namespace swizzle::cpu {
namespace {

constexpr int64_t kKeyPairs = kKeyBlock / 2;

// A thread's part of the workspace. Keys and values are in blocks of kKeyBlock, the sequence's first key in the first.
class Scratch {
 public:
  explicit Scratch(const Problem& problem)
      : channel_pairs_(CeilDiv(QueryChannels(problem) / problem.attention().heads, 2)),
        value_channels_(problem.output.channels / problem.attention().heads),
        blocks_(CeilDiv(problem.input.batch, kKeyBlock)) {}

  size_t bytes() const { return (sums_offset() + value_channels_ * kQueryBlock) * sizeof(uint32_t); }
  void Place(std::byte* memory) { memory_ = reinterpret_cast<uint32_t*>(memory); }

  uint32_t* keys(int64_t block) const { return memory_ + block * channel_pairs_ * kKeyBlock; }  // [channel pairs][keys]
  uint32_t* values(int64_t block) const {                                                       // [channels][key pairs]
    return memory_ + keys_size() + block * value_channels_ * kKeyPairs;
  }
  uint32_t* queries() const { return memory_ + queries_offset(); }                   // [channel pairs][queries]
  uint32_t* powers() const { return memory_ + powers_offset(); }                     // [key pairs][queries]
  float* sums() const { return reinterpret_cast<float*>(memory_ + sums_offset()); }  // [channels][queries]
  int64_t channel_pairs() const { return channel_pairs_; }
  int64_t value_channels() const { return value_channels_; }

 private:
  int64_t keys_size() const { return blocks_ * channel_pairs_ * kKeyBlock; }
  int64_t queries_offset() const { return keys_size() + blocks_ * value_channels_ * kKeyPairs; }
  int64_t powers_offset() const { return queries_offset() + channel_pairs_ * kQueryBlock; }
  int64_t sums_offset() const { return powers_offset() + kKeyPairs * kQueryBlock; }

  int64_t channel_pairs_, value_channels_, blocks_;
  uint32_t* memory_ = nullptr;
};

struct Call : AttentionOperands {
  explicit Call(const KernelArgs& args)
      : AttentionOperands(args), head_channels(QueryChannels(*args.problem) / args.problem->attention().heads) {}
  int64_t head_channels;  // of queries and keys
};

}  // namespace

size_t AttentionBfloat16WorkspaceBytes(const Problem& problem) {
  const size_t scratch = problem.threads * Scratch(problem).bytes();
  return IsBfloat16(problem.to) ? WidenedBytes(problem) + scratch : scratch;
}

}  // namespace swizzle::cpu

SWIZZLE_BEFORE_BF16
namespace swizzle::cpu {
namespace {

// A tile of sums is at most kMaxRows broadcasts, an even number, by kMaxVectors vectors of queries.
constexpr int kMaxRows = 6, kMaxVectors = 4;
static_assert(kMaxVectors * kLanes == kQueryBlock && kMaxRows % 2 == 0 && kKeyBlock % 2 == 0);
constexpr float kLeast = std::numeric_limits<float>::lowest();
constexpr float kLog2E = 1.44269504f;
// How far scores may lie above their reference before that is raised, in units of log(2).
constexpr float kSlack = 16.0f;

// Some neighbouring tokens in lanes.
struct TokenVector {
  int64_t offset;  // of the first one's channel 0
  int64_t channel_stride;
  int64_t index;  // among those asked for
  __mmask16 lanes;
};

// Calls visit(TokenVector) for tokens [first, last) of a matrix in kPanels.
template <typename Visit>
SWIZZLE_INLINE void ForEachVector(const TokenMatrix& matrix, int64_t first, int64_t last, const Visit& visit) {
  for (int64_t token = first; token < last;) {
    const TokenRun run = matrix.RunAt(token);
    const int64_t count = std::min(run.tokens, last - token);
    for (int64_t i = 0; i < count; i += kLanes) {
      visit(TokenVector{run.offset + i, run.channel_stride, token - first + i, FirstLanes(count - i)});
    }
    token += count;
  }
}

// Some channels of tokens [first, last) of a matrix.
struct HeadTokens {
  const float* data;
  const TokenMatrix& matrix;
  int64_t channel, channels;
  int64_t first, last;
};

// to[pair * width + i]: two channels, times `factor`, of token i. Beside an odd last channel stands zero.
void PackChannelPairs(const HeadTokens& tokens, float factor, uint32_t* to, int64_t width) {
  ForEachVector(tokens.matrix, tokens.first, tokens.last, [&](const TokenVector& vector) {
    const float* from = tokens.data + vector.offset + tokens.channel * vector.channel_stride;
    const auto load = [&](int64_t channel) {
      if (channel >= tokens.channels) return _mm512_setzero_ps();
      return _mm512_mul_ps(_mm512_maskz_loadu_ps(vector.lanes, from + channel * vector.channel_stride),
                           _mm512_set1_ps(factor));
    };
    for (int64_t channel = 0; channel < tokens.channels; channel += 2) {
      const PairVector pairs = Paired(load(channel), load(channel + 1));
      _mm512_mask_storeu_epi32(to + channel / 2 * width + vector.index, vector.lanes, pairs);
    }
  });
}

// to[channel * kKeyPairs + pair]: a channel of two keys. Beside an odd last key stands zero.
void PackKeyPairs(const HeadTokens& tokens, uint32_t* to) {
  auto* const halves = reinterpret_cast<uint16_t*>(to);
  ForEachVector(tokens.matrix, tokens.first, tokens.last, [&](const TokenVector& vector) {
    const float* from = tokens.data + vector.offset + tokens.channel * vector.channel_stride;
    for (int64_t channel = 0; channel < tokens.channels; ++channel, from += vector.channel_stride) {
      const auto rounded = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(vector.lanes, from)));
      _mm256_mask_storeu_epi16(halves + channel * kKeyBlock + vector.index, vector.lanes, rounded);
    }
  });
  const int64_t count = tokens.last - tokens.first;
  for (int64_t channel = 0; count % 2 != 0 && channel < tokens.channels; ++channel) {
    halves[channel * kKeyBlock + count] = 0;
  }
}

void PackKeysAndValues(const Call& call, const QueryBlock& block, const Scratch& scratch) {
  const int64_t key_channel = call.first_key_channel + call.KeyHead(block.head) * call.head_channels;
  const int64_t value_channel = call.first_value_channel + call.KeyHead(block.head) * scratch.value_channels();
  for (int64_t first = block.first_key, i = 0; first < block.last_key; first += kKeyBlock, ++i) {
    const int64_t last = std::min(first + kKeyBlock, block.last_key);
    PackChannelPairs({call.keys, call.key_matrix, key_channel, call.head_channels, first, last}, 1.0f, scratch.keys(i),
                     kKeyBlock);
    PackKeyPairs({call.values, call.value_matrix, value_channel, scratch.value_channels(), first, last},
                 scratch.values(i));
  }
}

// The state of a block of queries, in rows of its width.
struct BlockState {
  int64_t channel_pairs;
  const uint32_t* queries;
  uint32_t* powers;  // [key pairs of a block]: 2^(score - reference)
  float* sums;       // [value channels]: of values times powers
  float* totals;     // of powers
  float* references;
  float* growth;  // what the sums, which go by older references, are to be multiplied by
};

// Some keys of a block.
struct ScoredKeys {
  const uint32_t* keys;  // [channel pairs][kKeyBlock]
  const float* bias;     // or null
  float scale;           // of products, not negative
};

// Raises the references to whole numbers not below `largest` where that is more, and brings totals and powers up to
// `end` in line: by powers of two, which leave what was rounded as it is.
template <int kVectors>
HWY_NOINLINE void RaiseReferences(const __m512 (&largest)[kVectors], const BlockState& state, const uint32_t* end) {
  const __m512i upper_half = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
  for (int64_t at = 0; at < kVectors * kLanes; at += kLanes) {
    const __m512 before = _mm512_load_ps(state.references + at);
    const __m512 whole = _mm512_roundscale_ps(largest[at / kLanes], _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
    const __m512 after = _mm512_max_ps(before, whole);
    const __m512 growth = PowerOfTwo(_mm512_sub_ps(before, after));
    _mm512_store_ps(state.references + at, after);
    _mm512_store_ps(state.growth + at, _mm512_mul_ps(_mm512_load_ps(state.growth + at), growth));
    _mm512_store_ps(state.totals + at, _mm512_mul_ps(_mm512_load_ps(state.totals + at), growth));
    for (uint32_t* powers = state.powers + at; powers < end; powers += kVectors * kLanes) {
      const __m512i pairs = _mm512_load_si512(powers);
      const __m512 first = _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16));
      const __m512 second = _mm512_castsi512_ps(_mm512_and_si512(pairs, upper_half));
      _mm512_store_si512(powers, Paired(_mm512_mul_ps(first, growth), _mm512_mul_ps(second, growth)));
    }
  }
}

// powers[r / 2] = pairs of 2^(keys[r] * queries * scale + bias - reference), added to the totals; beside an odd last
// one stands zero. `powers` follow all earlier ones.
template <int kRows, int kVectors>
void ScoreTile(const ScoredKeys& keys, const BlockState& state, uint32_t* powers) {
  Tile<kRows, kVectors> tile;
  tile.SetZero();
  tile.MultiplyAdd(keys.keys, 1, kKeyBlock, state.channel_pairs, state.queries);
  __m512 scale = _mm512_set1_ps(keys.scale);
  if (keys.bias != nullptr) {
    HWY_UNROLL(8)
    for (int r = 0; r < kRows; ++r) {
      const __m512 bias = _mm512_set1_ps(keys.bias[r] * kLog2E);
      HWY_UNROLL(8)
      for (int j = 0; j < kVectors; ++j) tile.sums[r][j] = _mm512_fmadd_ps(tile.sums[r][j], scale, bias);
    }
    scale = _mm512_set1_ps(1.0f);
  }
  __m512 largest[kVectors];
  __m512 excess = _mm512_set1_ps(kLeast);
  HWY_UNROLL(8)
  for (int j = 0; j < kVectors; ++j) {
    largest[j] = tile.sums[0][j];
    HWY_UNROLL(8)
    for (int r = 1; r < kRows; ++r) largest[j] = _mm512_max_ps(largest[j], tile.sums[r][j]);
    largest[j] = _mm512_mul_ps(largest[j], scale);
    const __m512 above = _mm512_sub_ps(largest[j], _mm512_load_ps(state.references + j * kLanes));
    excess = _mm512_max_ps(excess, above);
  }
  const bool all_low = _mm512_cmp_ps_mask(excess, _mm512_set1_ps(kSlack), _CMP_LE_OQ) == 0xffff;
  if (HWY_UNLIKELY(!all_low)) RaiseReferences(largest, state, powers);
  HWY_UNROLL(8)
  for (int j = 0; j < kVectors; ++j) {
    const __m512 reference = _mm512_load_ps(state.references + j * kLanes);
    __m512 total = _mm512_load_ps(state.totals + j * kLanes);
    const auto power = [&](int r) {
      return r < kRows ? PowerOfTwo(_mm512_fmsub_ps(tile.sums[r < kRows ? r : 0][j], scale, reference))
                       : _mm512_setzero_ps();
    };
    HWY_UNROLL(8)
    for (int r = 0; r < kRows; r += 2) {
      const PairVector pair = Paired(power(r), power(r + 1));
      total = AddProducts(total, pair, Broadcast(0x3f803f80));  // ones
      _mm512_store_si512(powers + (r / 2 * kVectors + j) * kLanes, pair);
    }
    _mm512_store_ps(state.totals + j * kLanes, total);
  }
}

// Some channels of a block's values.
struct SummedValues {
  const uint32_t* values;  // [channels][kKeyPairs]
  int64_t key_pairs;
  bool first;  // nothing has been summed so far
};

// sums[r] = sums[r] * growth + values[r] * powers
template <int kRows, int kVectors>
void ValueTile(const SummedValues& values, const BlockState& state, float* sums) {
  Tile<kRows, kVectors> tile;
  if (values.first) {
    tile.SetZero();
  } else {
    HWY_UNROLL(8)
    for (int j = 0; j < kVectors; ++j) {
      const __m512 growth = _mm512_load_ps(state.growth + j * kLanes);
      HWY_UNROLL(8)
      for (int r = 0; r < kRows; ++r) {
        tile.sums[r][j] = _mm512_mul_ps(_mm512_load_ps(sums + (r * kVectors + j) * kLanes), growth);
      }
    }
  }
  tile.MultiplyAdd(values.values, kKeyPairs, 1, values.key_pairs, state.powers);
  HWY_UNROLL(8)
  for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(8)
    for (int j = 0; j < kVectors; ++j) _mm512_store_ps(sums + (r * kVectors + j) * kLanes, tile.sums[r][j]);
  }
}

template <int kVectors>
using ScoreFunction = decltype(&ScoreTile<1, kVectors>);
template <int kVectors>
using ValueFunction = decltype(&ValueTile<1, kVectors>);

template <int kVectors>
constexpr ScoreFunction<kVectors> kScoreTiles[kMaxRows] = {ScoreTile<1, kVectors>, ScoreTile<2, kVectors>,
                                                           ScoreTile<3, kVectors>, ScoreTile<4, kVectors>,
                                                           ScoreTile<5, kVectors>, ScoreTile<6, kVectors>};
template <int kVectors>
constexpr ValueFunction<kVectors> kValueTiles[kMaxRows] = {ValueTile<1, kVectors>, ValueTile<2, kVectors>,
                                                           ValueTile<3, kVectors>, ValueTile<4, kVectors>,
                                                           ValueTile<5, kVectors>, ValueTile<6, kVectors>};

// Cuts `count` into as few parts of at most `most` as there can be, nearly equal, and calls visit(first, last).
template <typename Visit>
SWIZZLE_INLINE void ForEachPart(int64_t count, int64_t most, const Visit& visit) {
  const int64_t parts = CeilDiv(count, most);
  for (int64_t i = 0; i < parts; ++i) visit(count * i / parts, count * (i + 1) / parts);
}

template <int kVectors>
void AttendKeys(const ScoredKeys& all, int64_t key_count, SummedValues values, int64_t value_channels,
                const BlockState& state) {
  constexpr int64_t kWidth = kVectors * kLanes;
  std::fill(state.growth, state.growth + kWidth, 1.0f);
  ForEachPart(values.key_pairs, kMaxRows / 2, [&](int64_t first_pair, int64_t last_pair) {
    const int64_t first = 2 * first_pair, last = std::min(2 * last_pair, key_count);
    const ScoredKeys keys = {all.keys + first, all.bias == nullptr ? nullptr : all.bias + first, all.scale};
    kScoreTiles<kVectors>[last - first - 1](keys, state, state.powers + first_pair * kWidth);
  });
  const uint32_t* const all_values = values.values;
  ForEachPart(value_channels, kMaxRows, [&](int64_t first, int64_t last) {
    values.values = all_values + first * kKeyPairs;
    kValueTiles<kVectors>[last - first - 1](values, state, state.sums + first * kWidth);
  });
}

// output = sums / totals; 0 for a query that no key was left to, whose total is 0.
template <int kVectors>
void WriteOutput(const Call& call, const QueryBlock& block, int64_t channels, const BlockState& state) {
  constexpr int64_t kWidth = kVectors * kLanes;
  alignas(64) float inverses[kWidth];
  for (int64_t at = 0; at < kWidth; at += kLanes) {
    const __m512 total = _mm512_load_ps(state.totals + at);
    const __mmask16 is_any = _mm512_cmp_ps_mask(total, _mm512_setzero_ps(), _CMP_NEQ_UQ);
    _mm512_store_ps(inverses + at, _mm512_maskz_div_ps(is_any, _mm512_set1_ps(1.0f), total));
  }
  ForEachVector(call.output_matrix, block.first_query, block.last_query, [&](const TokenVector& vector) {
    const __m512 inverse = _mm512_maskz_loadu_ps(vector.lanes, inverses + vector.index);
    const float* sums = state.sums + vector.index;
    float* to = call.output + vector.offset + block.head * channels * vector.channel_stride;
    for (int64_t channel = 0; channel < channels; ++channel, sums += kWidth, to += vector.channel_stride) {
      const __m512 sum = _mm512_maskz_loadu_ps(vector.lanes, sums);
      _mm512_mask_storeu_ps(to, vector.lanes, _mm512_mul_ps(sum, inverse));
    }
  });
}

// REQUIRES: the keys and values of the block's sequence and head are packed.
template <int kVectors>
void AttendBlock(const Call& call, const QueryBlock& block, const Scratch& scratch) {
  constexpr int64_t kWidth = kVectors * kLanes;
  alignas(64) float totals[kWidth], references[kWidth], growth[kWidth];
  std::fill(totals, totals + kWidth, 0.0f);
  std::fill(references, references + kWidth, kLeast);
  const BlockState state{.channel_pairs = scratch.channel_pairs(),
                         .queries = scratch.queries(),
                         .powers = scratch.powers(),
                         .sums = scratch.sums(),
                         .totals = totals,
                         .references = references,
                         .growth = growth};
  if (block.last_query - block.first_query < kWidth) {
    std::fill(scratch.queries(), scratch.queries() + scratch.channel_pairs() * kWidth, 0);
  }
  PackChannelPairs({call.queries, call.query_matrix, block.head * call.head_channels, call.head_channels,
                    block.first_query, block.last_query},
                   call.scale < 0 ? -1.0f : 1.0f, scratch.queries(), kWidth);
  for (int64_t first = block.first_key, i = 0; first < block.last_key; first += kKeyBlock, ++i) {
    const int64_t count = std::min(kKeyBlock, block.last_key - first);
    const ScoredKeys keys = {scratch.keys(i), call.bias == nullptr ? nullptr : call.bias + first,
                             std::abs(call.scale) * kLog2E};
    AttendKeys<kVectors>(keys, count, {scratch.values(i), CeilDiv(count, 2), i == 0}, scratch.value_channels(), state);
  }
  WriteOutput<kVectors>(call, block, scratch.value_channels(), state);
}

// In as many vectors as the block's queries need.
template <int kVectors = kMaxVectors>
void Attend(const Call& call, const QueryBlock& block, const Scratch& scratch) {
  if constexpr (kVectors > 1) {
    if (block.last_query - block.first_query <= (kVectors - 1) * kLanes) {
      return Attend<kVectors - 1>(call, block, scratch);
    }
  }
  AttendBlock<kVectors>(call, block, scratch);
}

}  // namespace

void AttentionBfloat16(const KernelArgs& args, Stream& stream) {
  if (IsBfloat16(args.problem->to)) return RunWidened(args, stream, AttentionBfloat16);
  const Call call(args);
  const AttentionWork work(*args.sequences, args.problem->attention(), kLanes, kQueryBlock);
  const int64_t slots = stream.threads();
  CpuStream::From(stream).ParallelFor(slots, [&](int64_t slot) {
    Scratch scratch(*args.problem);
    scratch.Place(args.workspace.data() + static_cast<size_t>(slot) * scratch.bytes());
    int64_t packed_key = -1, packed_head = -1;
    work.ForEachBlock(slot, slots, [&](const QueryBlock& block) {
      const int64_t head = call.KeyHead(block.head);
      if (block.first_key != packed_key || head != packed_head) PackKeysAndValues(call, block, scratch);
      packed_key = block.first_key, packed_head = head;
      Attend(call, block, scratch);
    });
  });
}

}  // namespace swizzle::cpu
SWIZZLE_AFTER_BF16

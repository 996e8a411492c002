#include "kernels/cpu/tokens/attention.h"

#include "kernels/base/integers.h"
#include "kernels/cpu/simd/transpose.h"
#include "kernels/cpu/simd/widened.h"
#include "kernels/cpu/tokens/attention_bits.h"
#include "kernels/cpu/tokens/attention_work.h"
#include "kernels/cpu/tokens/token_layout.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/tokens/attention.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "kernels/cpu/runtime/cpu_stream.h"
#include "kernels/cpu/simd/elements-inl.h"

HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {
namespace {

// A tile of sums is at most kMaxRows broadcasts by kMaxVectors vectors of queries, which leaves registers for operands.
constexpr int kMaxRows = 6;
constexpr int kMaxVectors = HWY_TARGET == HWY_AVX3 ? 4 : 2;
static_assert(kMaxVectors * kLanes <= kQueryBlock);
constexpr float kLeast = std::numeric_limits<float>::lowest();
// Scores are kept in units of log(2), so that their exponentials are powers of two.
constexpr float kLog2E = 1.44269504f;
// How far scores may lie above their reference before that is raised: any reference near the maximum does as well.
constexpr float kSlack = 16.0f;

// 2^x for x <= kSlack, to 3e-7 relative; 0 from -127 down, where FP32 runs out, and any number below 2^-125 near there.
HWY_INLINE FloatVector PowerOfTwo(FloatVector x) {
  const FloatTag d;
  const hn::RebindToUnsigned<FloatTag> bits;
  const FloatVector bounded = hn::Max(hn::Set(d, -127.0f), x);
  // Adding 3 * 2^22 rounds to a whole number and leaves it in the lowest bits.
  const FloatVector magic = hn::Set(d, 12582912.0f);
  const FloatVector power = hn::Add(bounded, magic);
  const FloatVector rest = hn::Sub(bounded, hn::Sub(power, magic));
  // The least relative error over half a step either way, by a fit of our own: 1.1e-7.
  FloatVector result = hn::Set(d, 0.00132647273f);
  result = hn::MulAdd(result, rest, hn::Set(d, 0.00967151299f));
  result = hn::MulAdd(result, rest, hn::Set(d, 0.0555073358f));
  result = hn::MulAdd(result, rest, hn::Set(d, 0.240222424f));
  result = hn::MulAdd(result, rest, hn::Set(d, 0.693147004f));
  result = hn::MulAdd(result, rest, hn::Set(d, 1.0f));
  return hn::BitCast(d, hn::Add(hn::BitCast(bits, result), hn::ShiftLeft<23>(hn::BitCast(bits, power))));
}

// A matrix whose elements are broadcast: (row, depth) at data + row * row_stride + depth * depth_stride.
struct Broadcasts {
  const float* data;
  int64_t row_stride;
  int64_t depth_stride;
  int64_t depth;
};

template <int kRows, int kVectors>
struct Tile {
  static constexpr int64_t kWidth = kVectors * kLanes;
  FloatVector sums[kRows][kVectors];

  HWY_INLINE void SetZero() {
    SWIZZLE_UNROLL for (int r = 0; r < kRows; ++r) {
      SWIZZLE_UNROLL for (int j = 0; j < kVectors; ++j) sums[r][j] = hn::Zero(FloatTag());
    }
  }

  // sums[r] += a(r, k) * b[k], b being rows of kWidth queries.
  HWY_INLINE void MultiplyAdd(const Broadcasts& a, const float* b) {
    const FloatTag d;
    const float* rows[kRows];
    SWIZZLE_UNROLL for (int r = 0; r < kRows; ++r) rows[r] = a.data + r * a.row_stride;
    int64_t offset = 0;
    for (int64_t k = 0; k < a.depth; ++k, b += kWidth, offset += a.depth_stride) {
      FloatVector queries[kVectors];
      SWIZZLE_UNROLL for (int j = 0; j < kVectors; ++j) queries[j] = hn::Load(d, b + j * kLanes);
      SWIZZLE_UNROLL for (int r = 0; r < kRows; ++r) {
        const FloatVector row = hn::Set(d, rows[r][offset]);
        SWIZZLE_UNROLL for (int j = 0; j < kVectors; ++j) sums[r][j] = hn::MulAdd(row, queries[j], sums[r][j]);
      }
    }
  }

  HWY_INLINE void Store(float* to) const {
    SWIZZLE_UNROLL for (int r = 0; r < kRows; ++r) {
      SWIZZLE_UNROLL for (int j = 0; j < kVectors; ++j) hn::Store(sums[r][j], FloatTag(), to + r * kWidth + j * kLanes);
    }
  }
};

// Some keys of a block, neighbours in memory.
struct Piece {
  Broadcasts keys;          // rows: keys, depth: channels
  Broadcasts values;        // rows: channels, depth: keys
  const float* bias;        // of the keys, or null
  const uint64_t* allowed;  // for each key, which of the block's queries attend to it; null: all
  int64_t count;
};

// The state of a block of queries, in rows of its width.
struct BlockState {
  const float* queries;  // [head channels]
  float scale;           // of the products with keys, positive
  float* powers;         // [keys of a block]: 2^(score - reference)
  float* sums;           // [value channels]: of values times powers
  float* totals;         // of powers
  float* references;
  float* growth;  // what the sums, which go by older references, are to be multiplied by
};

// What a block of keys is to its block of queries.
struct BlockPlace {
  bool first;             // nothing has been summed so far
  float* output;          // where the sums, complete, go: rows of a panel, one a channel; null: they stay
  int64_t output_stride;  // floats from one row to the next
};

// Raises the references to `largest` where that is more, and brings totals and powers up to `end` in line.
template <int kVectors>
HWY_NOINLINE void RaiseReferences(const FloatVector (&largest)[kVectors], const BlockState& state, const float* end) {
  constexpr int64_t kWidth = kVectors * kLanes;
  const FloatTag d;
  for (int64_t j = 0; j < kVectors; ++j) {
    const int64_t at = j * kLanes;
    const FloatVector before = hn::Load(d, state.references + at);
    const FloatVector after = hn::Max(before, largest[j]);
    const FloatVector growth = PowerOfTwo(hn::Sub(before, after));
    hn::Store(after, d, state.references + at);
    hn::Store(hn::Mul(hn::Load(d, state.growth + at), growth), d, state.growth + at);
    hn::Store(hn::Mul(hn::Load(d, state.totals + at), growth), d, state.totals + at);
    for (float* powers = state.powers + at; powers < end; powers += kWidth) {
      hn::Store(hn::Mul(hn::Load(d, powers), growth), d, powers);
    }
  }
}

// Scores that the pattern lacks become -infinity.
template <int kRows, int kVectors>
HWY_INLINE void LeaveOut(const uint64_t* allowed, FloatVector (&scores)[kRows][kVectors]) {
  const FloatTag d;
  const FloatVector nothing = hn::Set(d, -std::numeric_limits<float>::infinity());
  SWIZZLE_UNROLL for (int r = 0; r < kRows; ++r) {
    SWIZZLE_UNROLL for (int j = 0; j < kVectors; ++j) {
      const uint64_t bits = allowed[r] >> (j * kLanes);
      const FloatMask mask = hn::LoadMaskBits(d, reinterpret_cast<const uint8_t*>(&bits));
      scores[r][j] = hn::IfThenElse(mask, scores[r][j], nothing);
    }
  }
}

// powers[r] = 2^((keys[r] * queries + bias[r]) * scale - reference), added to the totals. `powers` follow all earlier
// ones.
template <int kRows, int kVectors>
void ScoreTile(const Broadcasts& keys, const float* bias, const uint64_t* allowed, const BlockState& state,
               float* powers) {
  const FloatTag d;
  Tile<kRows, kVectors> tile;
  tile.SetZero();
  tile.MultiplyAdd(keys, state.queries);
  if (bias != nullptr) {
    SWIZZLE_UNROLL for (int r = 0; r < kRows; ++r) {
      const FloatVector row = hn::Set(d, bias[r] * kLog2E);
      SWIZZLE_UNROLL for (int j = 0; j < kVectors; ++j) tile.sums[r][j] = hn::Add(tile.sums[r][j], row);
    }
  }
  if (allowed != nullptr) LeaveOut<kRows, kVectors>(allowed, tile.sums);
  const FloatVector scale = hn::Set(d, state.scale);
  FloatVector largest[kVectors];
  FloatVector excess = hn::Set(d, kLeast);
  SWIZZLE_UNROLL for (int j = 0; j < kVectors; ++j) {
    largest[j] = tile.sums[0][j];
    SWIZZLE_UNROLL for (int r = 1; r < kRows; ++r) largest[j] = hn::Max(largest[j], tile.sums[r][j]);
    largest[j] = hn::Mul(largest[j], scale);
    excess = hn::Max(excess, hn::Sub(largest[j], hn::Load(d, state.references + j * kLanes)));
  }
  if (HWY_UNLIKELY(!hn::AllTrue(d, hn::Le(excess, hn::Set(d, kSlack))))) RaiseReferences(largest, state, powers);
  SWIZZLE_UNROLL for (int j = 0; j < kVectors; ++j) {
    const FloatVector reference = hn::Load(d, state.references + j * kLanes);
    FloatVector total = hn::Load(d, state.totals + j * kLanes);
    SWIZZLE_UNROLL for (int r = 0; r < kRows; ++r) {
      const FloatVector power = PowerOfTwo(hn::MulSub(tile.sums[r][j], scale, reference));
      total = hn::Add(total, power);
      hn::Store(power, d, powers + (r * kVectors + j) * kLanes);
    }
    hn::Store(total, d, state.totals + j * kLanes);
  }
}

// 1 / totals; 0 for a query that no key was left to, whose total is 0.
template <int kVectors>
HWY_INLINE void InvertTotals(const BlockState& state, FloatVector (&inverse)[kVectors]) {
  const FloatTag d;
  SWIZZLE_UNROLL for (int j = 0; j < kVectors; ++j) {
    const FloatVector total = hn::Load(d, state.totals + j * kLanes);
    inverse[j] = hn::IfThenZeroElse(hn::Eq(total, hn::Zero(d)), hn::Div(hn::Set(d, 1.0f), total));
  }
}

// sums[r] = sums[r] * growth + value channel r * powers, over all pieces of a block; divided by the totals into the
// output where that is their place.
template <int kRows, int kVectors>
void ValueTile(std::span<const Piece> pieces, int64_t channel, const BlockState& state, const BlockPlace& place) {
  constexpr int64_t kWidth = kVectors * kLanes;
  const FloatTag d;
  Tile<kRows, kVectors> tile;
  float* sums = state.sums + channel * kWidth;
  if (place.first) {
    tile.SetZero();
  } else {
    SWIZZLE_UNROLL for (int j = 0; j < kVectors; ++j) {
      const FloatVector growth = hn::Load(d, state.growth + j * kLanes);
      SWIZZLE_UNROLL for (int r = 0; r < kRows; ++r) {
        tile.sums[r][j] = hn::Mul(hn::Load(d, sums + r * kWidth + j * kLanes), growth);
      }
    }
  }
  const float* powers = state.powers;
  for (const Piece& piece : pieces) {
    Broadcasts values = piece.values;
    values.data += channel * values.row_stride;
    tile.MultiplyAdd(values, powers);
    powers += piece.count * kWidth;
  }
  if (place.output == nullptr) return tile.Store(sums);
  FloatVector inverse[kVectors];
  InvertTotals<kVectors>(state, inverse);
  SWIZZLE_UNROLL for (int r = 0; r < kRows; ++r) {
    float* const to = place.output + (channel + r) * place.output_stride;
    SWIZZLE_UNROLL for (int j = 0; j < kVectors; ++j) {
      hn::StoreU(hn::Mul(tile.sums[r][j], inverse[j]), d, to + j * kLanes);
    }
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

// Cuts `rows` into as few tiles as there can be, of nearly equal heights, and calls visit(first row, height).
template <typename Visit>
HWY_INLINE void ForEachTile(int64_t rows, const Visit& visit) {
  const int64_t tiles = CeilDiv(rows, kMaxRows);
  for (int64_t i = 0; i < tiles; ++i) {
    const int64_t first = rows * i / tiles;
    visit(first, rows * (i + 1) / tiles - first);
  }
}

// One block of keys, in pieces.
template <int kVectors>
void AttendKeys(std::span<const Piece> pieces, const AttentionScratch& sizes, const BlockState& state,
                const BlockPlace& place) {
  constexpr int64_t kWidth = kVectors * kLanes;
  std::fill(state.growth, state.growth + kWidth, 1.0f);
  float* powers = state.powers;
  for (const Piece& piece : pieces) {
    ForEachTile(piece.count, [&](int64_t first, int64_t rows) {
      Broadcasts keys = piece.keys;
      keys.data += first * keys.row_stride;
      const float* bias = piece.bias == nullptr ? nullptr : piece.bias + first;
      const uint64_t* allowed = piece.allowed == nullptr ? nullptr : piece.allowed + first;
      kScoreTiles<kVectors>[rows - 1](keys, bias, allowed, state, powers + first * kWidth);
    });
    powers += piece.count * kWidth;
  }
  ForEachTile(sizes.value_channels,
              [&](int64_t first, int64_t rows) { kValueTiles<kVectors>[rows - 1](pieces, first, state, place); });
}

// Everything that the blocks of one problem share.
struct AttentionCall {
  explicit AttentionCall(const KernelArgs& args)
      : sizes(*args.problem),
        queries(args.Input<float>(0)),
        keys(args.problem->attention().packed ? queries : args.Input<float>(1)),
        values(args.problem->attention().packed ? queries : args.Input<float>(2)),
        output(args.Output<float>()),
        bias(args.sequences->key_bias.empty() ? nullptr : args.sequences->key_bias.data()),
        pattern(args.problem->op == Op::kSparseAttention ? static_cast<const AttentionBits*>(args.weight) : nullptr),
        scale(args.problem->attention().scale),
        first_key_channel(args.problem->attention().packed ? KeyChannels(*args.problem) : 0),
        first_value_channel(2 * first_key_channel),
        key_matrix(args.problem->input.batch, args.problem->input.channels, args.problem->from.layout),
        output_matrix(args.problem->output.batch, args.problem->output.channels, args.problem->to.layout),
        value_matrix(args.problem->attention().packed ? key_matrix : output_matrix) {}

  AttentionScratch sizes;
  const float* queries;
  const float* keys;
  const float* values;
  float* output;
  const float* bias;
  const AttentionBits* pattern;  // or null
  float scale;
  int64_t first_key_channel, first_value_channel;  // of the operands that keys and values are in
  TokenMatrix key_matrix;                          // of queries and keys
  TokenMatrix output_matrix;
  TokenMatrix value_matrix;
};

// The most pieces of a block of keys: panels are at least one unit wide.
constexpr int64_t kMaxPieces = kKeyBlock / kPositionUnit + 2;

// Some keys [first, last), and which of a block's queries attend to each; null: all.
struct Keys {
  int64_t first, last;
  const uint64_t* allowed;
};

// Without those at either end that no query of the block attends to; `allowed` takes a number a key.
Keys WithoutEnds(const AttentionBits& pattern, const QueryBlock& block, Keys keys, uint64_t* allowed) {
  const int64_t queries = block.last_query - block.first_query;
  const uint64_t real = queries >= 64 ? ~uint64_t{0} : (uint64_t{1} << queries) - 1;
  for (int64_t key = keys.first; key < keys.last; ++key) {
    const uint64_t bits = pattern.At(key - block.first_key, block.first_query - block.first_key);
    allowed[key - keys.first] = bits & real;
  }
  keys.allowed = allowed;
  while (keys.first < keys.last && *keys.allowed == 0) ++keys.first, ++keys.allowed;
  while (keys.first < keys.last && keys.allowed[keys.last - keys.first - 1] == 0) --keys.last;
  return keys;
}

// Fills `pieces` with keys; returns how many there are.
int64_t CutKeys(const AttentionCall& call, int64_t head, const Keys& cut, Piece* pieces) {
  int64_t count = 0;
  const int64_t first = cut.first, last = cut.last;
  const int64_t key_channel = call.first_key_channel + head * call.sizes.head_channels;
  const int64_t value_channel = call.first_value_channel + head * call.sizes.value_channels;
  for (int64_t key = first; key < last; ++count) {
    const TokenRun k = call.key_matrix.RunAt(key), v = call.value_matrix.RunAt(key);
    const int64_t keys = std::min(k.tokens, last - key);
    const float* key_data = call.keys + k.offset + key_channel * k.channel_stride;
    const float* value_data = call.values + v.offset + value_channel * v.channel_stride;
    pieces[count] = {{key_data, k.token_stride, k.channel_stride, call.sizes.head_channels},
                     {value_data, v.channel_stride, v.token_stride, keys},
                     call.bias == nullptr ? nullptr : call.bias + key,
                     cut.allowed == nullptr ? nullptr : cut.allowed + key - first,
                     keys};
    key += keys;
  }
  return count;
}

// to[i] = from[i] * factors[i] for `rows` rows of `count` floats.
void ScaleRows(const float* from, int64_t from_stride, const float* factors, int64_t rows, int64_t count, float* to,
               int64_t to_stride) {
  for (int64_t row = 0; row < rows; ++row, from += from_stride, to += to_stride) {
    for (int64_t i = 0; i < count; i += kLanes) {
      const int64_t lanes = std::min(kLanes, count - i);
      StoreSome(hn::Mul(LoadSome(from + i, lanes), LoadSome(factors + i, lanes)), to + i, lanes);
    }
  }
}

// packed[channel][query] = query * scale, in units of log(2); lanes beyond the block's last query are zero.
template <int kVectors>
void PackQueries(const AttentionCall& call, const QueryBlock& block, float* packed) {
  constexpr int64_t kWidth = kVectors * kLanes;
  HWY_ALIGN float scale[kWidth];
  std::fill(scale, scale + kWidth, call.scale * kLog2E);
  const int64_t channels = call.sizes.head_channels;
  if (block.last_query - block.first_query < kWidth) std::fill(packed, packed + channels * kWidth, 0.0f);
  for (int64_t query = block.first_query; query < block.last_query;) {
    const TokenRun run = call.key_matrix.RunAt(query);
    const int64_t count = std::min(run.tokens, block.last_query - query);
    const float* from = call.queries + run.offset + block.head * channels * run.channel_stride;
    float* to = packed + query - block.first_query;
    if (run.token_stride == 1) {
      ScaleRows(from, run.channel_stride, scale, channels, count, to, kWidth);
    } else {
      Transpose(from, run.token_stride, to, kWidth, count, channels);
      ScaleRows(to, kWidth, scale, channels, count, to, kWidth);
    }
    query += count;
  }
}

// output = sums / totals, transposed where channels are neighbours.
template <int kVectors>
void WriteOutput(const AttentionCall& call, const QueryBlock& block, const BlockState& state) {
  constexpr int64_t kWidth = kVectors * kLanes;
  FloatVector inverses[kVectors];
  InvertTotals<kVectors>(state, inverses);
  HWY_ALIGN float inverse[kWidth];
  SWIZZLE_UNROLL for (int j = 0; j < kVectors; ++j) hn::Store(inverses[j], FloatTag(), inverse + j * kLanes);
  const int64_t channels = call.sizes.value_channels;
  for (int64_t query = block.first_query; query < block.last_query;) {
    const TokenRun run = call.output_matrix.RunAt(query);
    const int64_t count = std::min(run.tokens, block.last_query - query);
    const int64_t first = query - block.first_query;
    float* sums = state.sums + first;
    float* to = call.output + run.offset + block.head * channels * run.channel_stride;
    if (run.token_stride == 1) {
      ScaleRows(sums, kWidth, inverse + first, channels, count, to, run.channel_stride);
    } else {
      ScaleRows(sums, kWidth, inverse + first, channels, count, sums, kWidth);
      Transpose(sums, kWidth, to, run.token_stride, channels, count);
    }
    query += count;
  }
}

// Where the sums of a block of whole vectors may go at once: its queries are neighbours in the output's rows.
BlockPlace OutputPlace(const AttentionCall& call, const QueryBlock& block, int64_t width) {
  const TokenRun run = call.output_matrix.RunAt(block.first_query);
  const bool whole = block.last_query - block.first_query == width && run.tokens >= width;
  if (!whole || run.token_stride != 1 || call.pattern != nullptr) return {false, nullptr, 0};
  const int64_t channel = block.head * call.sizes.value_channels;
  return {false, call.output + run.offset + channel * run.channel_stride, run.channel_stride};
}

// The queries of a block of `width` where they lie as they are needed; null if they don't.
const float* QueriesInPlace(const AttentionCall& call, const QueryBlock& block, int64_t width) {
  const TokenRun run = call.key_matrix.RunAt(block.first_query);
  const bool whole = block.last_query - block.first_query == width && run.offset % kLanes == 0;
  if (!whole || run.token_stride != 1 || run.channel_stride != width || run.tokens < width) return nullptr;
  // Biases are added to scaled products, and the largest product has the largest score where the scale is positive.
  if (call.bias != nullptr || call.scale <= 0) return nullptr;
  return call.queries + run.offset + block.head * call.sizes.head_channels * width;
}

template <int kVectors>
void AttendBlock(const AttentionCall& call, const QueryBlock& block, float* scratch) {
  constexpr int64_t kWidth = kVectors * kLanes;
  HWY_ALIGN float totals[kWidth], references[kWidth], growth[kWidth];
  std::fill(totals, totals + kWidth, 0.0f);
  std::fill(references, references + kWidth, kLeast);
  const float* const in_place = QueriesInPlace(call, block, kWidth);
  const BlockState state{.queries = in_place == nullptr ? scratch : in_place,
                         .scale = in_place == nullptr ? 1.0f : call.scale * kLog2E,
                         .powers = scratch + call.sizes.powers_offset(),
                         .sums = scratch + call.sizes.sums_offset(),
                         .totals = totals,
                         .references = references,
                         .growth = growth};
  if (in_place == nullptr) PackQueries<kVectors>(call, block, scratch);
  const BlockPlace output = OutputPlace(call, block, kWidth);
  // A pattern may leave blocks of keys out, the first and the last among them.
  if (call.pattern != nullptr) std::fill(state.sums, state.sums + call.sizes.value_channels * kWidth, 0.0f);
  for (int64_t key = block.first_key; key < block.last_key; key += kKeyBlock) {
    Piece pieces[kMaxPieces];
    Keys keys{key, std::min(key + kKeyBlock, block.last_key), nullptr};
    uint64_t allowed[kKeyBlock];
    if (call.pattern != nullptr) keys = WithoutEnds(*call.pattern, block, keys, allowed);
    const int64_t count = CutKeys(call, block.head, keys, pieces);
    if (count == 0) continue;
    BlockPlace place = key + kKeyBlock >= block.last_key ? output : BlockPlace{false, nullptr, 0};
    place.first = call.pattern == nullptr && key == block.first_key;
    AttendKeys<kVectors>({pieces, static_cast<size_t>(count)}, call.sizes, state, place);
  }
  if (output.output == nullptr) WriteOutput<kVectors>(call, block, state);
}

// In as many vectors as the block's queries need.
template <int kVectors = kMaxVectors>
void Attend(const AttentionCall& call, const QueryBlock& block, float* scratch) {
  if constexpr (kVectors > 1) {
    if (block.last_query - block.first_query <= (kVectors - 1) * kLanes) {
      return Attend<kVectors - 1>(call, block, scratch);
    }
  }
  AttendBlock<kVectors>(call, block, scratch);
}

}  // namespace

void Attention(const KernelArgs& args, Stream& stream) {
  if (IsBfloat16(args.problem->to)) return RunWidened(args, stream, Attention);
  const AttentionCall call(args);
  const AttentionWork work(*args.sequences, args.problem->attention().heads, kLanes, kMaxVectors * kLanes);
  const int64_t slots = stream.threads();
  CpuStream::From(stream).ParallelFor(slots, [&](int64_t slot) {
    float* scratch = reinterpret_cast<float*>(args.workspace.data()) + slot * call.sizes.floats();
    work.ForEachBlock(slot, slots, [&](const QueryBlock& block) { Attend(call, block, scratch); });
  });
}

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace swizzle::cpu {

size_t AttentionWorkspaceBytes(const Problem& problem) {
  const size_t scratch = problem.threads * AttentionScratch(problem).floats() * sizeof(float);
  return IsBfloat16(problem.to) ? WidenedBytes(problem) + scratch : scratch;
}

}  // namespace swizzle::cpu
#endif  // HWY_ONCE

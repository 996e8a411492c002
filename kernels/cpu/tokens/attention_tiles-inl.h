// A block of queries against a block of keys: scores in tiles of registers, their powers, and the sums of values times
// powers, which go by a reference that later blocks may raise. Compiled per target, into what runs attention.
#if defined(SWIZZLE_KERNELS_CPU_TOKENS_ATTENTION_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWIZZLE_KERNELS_CPU_TOKENS_ATTENTION_TILES_INL_H_
#undef SWIZZLE_KERNELS_CPU_TOKENS_ATTENTION_TILES_INL_H_
#else
#define SWIZZLE_KERNELS_CPU_TOKENS_ATTENTION_TILES_INL_H_
#endif

#include <algorithm>
#include <limits>
#include <span>

#include "kernels/base/integers.h"
#include "kernels/cpu/simd/elements-inl.h"
#include "kernels/cpu/simd/exponential-inl.h"
#include "kernels/cpu/tokens/attention_work.h"

HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {
namespace {  // of each source file that includes this

// A tile of sums is at most kMaxRows broadcasts by kMaxVectors vectors of queries, which leaves registers for operands.
inline constexpr int kMaxRows = 6;
inline constexpr int kMaxVectors = HWY_TARGET == HWY_AVX3 ? 4 : 2;
static_assert(kMaxVectors * kLanes <= kQueryBlock);
inline constexpr float kLeast = std::numeric_limits<float>::lowest();
// How far scores may lie above their reference before that is raised: any reference near the maximum does as well. They
// are kept in units of log(2), so that their exponentials are powers of two.
inline constexpr float kSlack = 16.0f;

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

  // sums[r] += a(r, k) * b[k], b being rows of kWidth queries, or of places, which may lie farther apart.
  HWY_INLINE void MultiplyAdd(const Broadcasts& a, const float* b, int64_t b_stride = kWidth) {
    const FloatTag d;
    const float* rows[kRows];
    SWIZZLE_UNROLL for (int r = 0; r < kRows; ++r) rows[r] = a.data + r * a.row_stride;
    int64_t offset = 0;
    for (int64_t k = 0; k < a.depth; ++k, b += b_stride, offset += a.depth_stride) {
      FloatVector queries[kVectors];
      SWIZZLE_UNROLL for (int j = 0; j < kVectors; ++j) queries[j] = hn::LoadU(d, b + j * kLanes);
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
  const float* pair_bias = nullptr;  // for each key, those of the block's queries, times kLog2E; or null
};

// What is added to the scores of some keys, or leaves them out; each as in Piece.
struct KeyRules {
  const float* bias;
  const uint64_t* allowed;
  const float* pair_bias;
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

// powers[r] = 2^((keys[r] * queries + biases) * scale - reference), added to the totals. `powers` follow all earlier
// ones.
template <int kRows, int kVectors>
void ScoreTile(const Broadcasts& keys, const KeyRules& rules, const BlockState& state, float* powers) {
  const FloatTag d;
  Tile<kRows, kVectors> tile;
  tile.SetZero();
  tile.MultiplyAdd(keys, state.queries);
  if (rules.bias != nullptr) {
    SWIZZLE_UNROLL for (int r = 0; r < kRows; ++r) {
      const FloatVector row = hn::Set(d, rules.bias[r] * kLog2E);
      SWIZZLE_UNROLL for (int j = 0; j < kVectors; ++j) tile.sums[r][j] = hn::Add(tile.sums[r][j], row);
    }
  }
  if (rules.pair_bias != nullptr) {
    SWIZZLE_UNROLL for (int r = 0; r < kRows; ++r) {
      SWIZZLE_UNROLL for (int j = 0; j < kVectors; ++j) {
        const FloatVector pairs = hn::Load(d, rules.pair_bias + (r * kVectors + j) * kLanes);
        tile.sums[r][j] = hn::Add(tile.sums[r][j], pairs);
      }
    }
  }
  if (rules.allowed != nullptr) LeaveOut<kRows, kVectors>(rules.allowed, tile.sums);
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
      const KeyRules rules = {piece.bias == nullptr ? nullptr : piece.bias + first,
                              piece.allowed == nullptr ? nullptr : piece.allowed + first,
                              piece.pair_bias == nullptr ? nullptr : piece.pair_bias + first * kWidth};
      kScoreTiles<kVectors>[rows - 1](keys, rules, state, powers + first * kWidth);
    });
    powers += piece.count * kWidth;
  }
  ForEachTile(sizes.value_channels,
              [&](int64_t first, int64_t rows) { kValueTiles<kVectors>[rows - 1](pieces, first, state, place); });
}

}  // namespace
}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

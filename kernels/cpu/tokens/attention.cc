#include "kernels/cpu/tokens/attention.h"

#include "kernels/base/integers.h"
#include "kernels/cpu/simd/transpose.h"
#include "kernels/cpu/simd/widened.h"
#include "kernels/cpu/tokens/attention_biases.h"
#include "kernels/cpu/tokens/attention_bits.h"
#include "kernels/cpu/tokens/attention_operands.h"
#include "kernels/cpu/tokens/attention_places.h"
#include "kernels/cpu/tokens/attention_work.h"
#include "kernels/cpu/tokens/token_layout.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/tokens/attention.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "kernels/cpu/runtime/cpu_stream.h"
#include "kernels/cpu/simd/elements-inl.h"
#include "kernels/cpu/tokens/attention_tiles-inl.h"
#include "kernels/cpu/tokens/place_products-inl.h"

HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {
namespace {

// Everything that the blocks of one problem share.
struct AttentionCall : AttentionOperands {
  explicit AttentionCall(const KernelArgs& args)
      : AttentionOperands(args),
        sizes(*args.problem),
        pattern(args.problem->op == Op::kSparseAttention ? static_cast<const AttentionBits*>(args.weight) : nullptr),
        biases(args.problem->op == Op::kBiasedAttention ? static_cast<const AttentionBiases*>(args.weight) : nullptr),
        places(args.problem->op == Op::kDisentangledAttention ? static_cast<const AttentionPlaces*>(args.weight)
                                                              : nullptr) {}

  AttentionScratch sizes;
  const AttentionBits* pattern;   // or null
  const AttentionBiases* biases;  // of pairs, or null
  const AttentionPlaces* places;  // whose vectors queries and keys meet, or null
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
  const int64_t key_channel = call.first_key_channel + call.KeyHead(head) * call.sizes.head_channels;
  const int64_t value_channel = call.first_value_channel + call.KeyHead(head) * call.sizes.value_channels;
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
    const TokenRun run = call.query_matrix.RunAt(query);
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
  const TokenRun run = call.query_matrix.RunAt(block.first_query);
  const bool whole = block.last_query - block.first_query == width && run.offset % kLanes == 0;
  if (!whole || run.token_stride != 1 || run.channel_stride != width || run.tokens < width) return nullptr;
  // Biases are added to scaled products, and the largest product has the largest score where the scale is positive.
  if (call.bias != nullptr || call.biases != nullptr || call.places != nullptr || call.scale <= 0) return nullptr;
  return call.queries + run.offset + block.head * call.sizes.head_channels * width;
}

// The keys of its sequence that lie near enough for a query of the block.
Keys KeysInReach(const AttentionCall& call, const QueryBlock& block) {
  Keys keys{block.first_key, block.last_key, nullptr};
  if (call.biases == nullptr) return keys;
  const DistanceRange& distances = call.biases->distances();
  keys.first = std::max(keys.first, block.first_query + distances.least);
  keys.last = std::min(keys.last, block.last_query + distances.greatest);
  keys.last = std::max(keys.first, keys.last);
  return keys;
}

// Adds to pieces of keys from `first` on the biases of pairs, which it puts into `to`, rows of `width`.
void AddPairBiases(const AttentionCall& call, const QueryBlock& block, int64_t first, std::span<Piece> pieces,
                   int64_t width, float* to) {
  const int64_t query = block.first_query - block.first_key, queries = block.last_query - block.first_query;
  int64_t key = first - block.first_key;
  for (Piece& piece : pieces) {
    piece.pair_bias = to;
    for (int64_t i = 0; i < piece.count; ++i, ++key, to += width) {
      call.biases->Fill(block.first_key, block.head, key, query, queries, to);
      std::fill(to + queries, to + width, 0.0f);
    }
  }
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
  const Keys in_reach = KeysInReach(call, block);
  if (in_reach.first == in_reach.last) std::fill(state.sums, state.sums + call.sizes.value_channels * kWidth, 0.0f);
  for (int64_t key = in_reach.first; key < in_reach.last; key += kKeyBlock) {
    Piece pieces[kMaxPieces];
    Keys keys{key, std::min(key + kKeyBlock, in_reach.last), nullptr};
    uint64_t allowed[kKeyBlock];
    if (call.pattern != nullptr) keys = WithoutEnds(*call.pattern, block, keys, allowed);
    const int64_t count = CutKeys(call, block.head, keys, pieces);
    if (count == 0) continue;
    const std::span<Piece> block_pieces(pieces, static_cast<size_t>(count));
    if (call.biases != nullptr) {
      AddPairBiases(call, block, key, block_pieces, kWidth, scratch + call.sizes.pair_biases_offset());
    } else if (call.places != nullptr) {
      const PlaceBlock places = {*call.places, block.head,          key - block.first_query,
                                 scratch,      call.scale * kLog2E, scratch + call.sizes.places_offset()};
      AddPlaceProducts<kVectors>(places, call.sizes.head_channels, block_pieces,
                                 scratch + call.sizes.pair_biases_offset());
    }
    BlockPlace place = key + kKeyBlock >= in_reach.last ? output : BlockPlace{false, nullptr, 0};
    place.first = call.pattern == nullptr && key == in_reach.first;
    AttendKeys<kVectors>(block_pieces, call.sizes, state, place);
  }
  if (output.output == nullptr || in_reach.first == in_reach.last) WriteOutput<kVectors>(call, block, state);
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
  const AttentionWork work(*args.sequences, args.problem->attention(), kLanes, kMaxVectors * kLanes);
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

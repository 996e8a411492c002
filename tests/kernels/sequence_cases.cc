#include "tests/kernels/sequence_cases.h"

#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

#include "kernels/operator/pair_biases.h"

namespace swizzle {
namespace {

// Sequences that share vectors and panels, fill them, and go beyond blocks of queries and keys.
const std::vector<std::vector<int32_t>> kLengths = {
    {1}, {2}, {16}, {17, 1, 15}, {63, 64, 65}, {5, 1, 2, 128, 16, 17}, {200, 15, 400, 5}, {1, 1, 1, 1, 1, 1, 1, 1},
};

KernelCase SequenceCase(Op op, const std::vector<int32_t>& lengths, int64_t channels, size_t turn) {
  const int64_t tokens = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  const bool reduces = TraitsOf(op).Has(OpTraits::kReducesTokens);
  KernelCase made;
  made.problem.SetOp(op);
  made.problem.input = {tokens, channels};
  made.problem.output = {reduces ? static_cast<int64_t>(lengths.size()) : tokens, channels};
  made.problem.threads = 1 + static_cast<int>(turn % 2);
  made.lengths = lengths;
  return made;
}

std::vector<KernelCase> EmbeddingCases() {
  std::vector<KernelCase> cases;
  for (const auto& lengths : kLengths) {
    for (bool by_position : {false, true}) {
      const size_t turn = cases.size();
      KernelCase made = SequenceCase(Op::kEmbedding, lengths, std::vector<int64_t>{1, 17, 384}[turn % 3], turn / 2);
      made.problem.input.channels = 1;
      made.problem.lookup() = {by_position, by_position ? static_cast<int64_t>(turn) : 0};
      made.table_rows = by_position ? 500 + static_cast<int64_t>(turn) : 1 + static_cast<int64_t>(turn) * 7;
      cases.push_back(made);
    }
  }
  return cases;
}

std::vector<KernelCase> LayerNormCases() {
  std::vector<KernelCase> cases;
  for (int64_t channels : {1, 3, 16, 100, 384, 1000}) {
    for (const auto& lengths : kLengths) {
      const size_t turn = cases.size();
      KernelCase made = SequenceCase(Op::kLayerNorm, lengths, channels, turn);
      made.problem.normalisation() = {turn % 3 == 0 ? 1e-5f : 1e-12f, turn % 4 != 3};
      made.bias = turn / 2 % 2 == 0;
      made.mean = turn % 5 == 0 ? 1000 : 0;
      if (channels == 1) made.problem.normalisation().epsilon = 1e-3f;  // zero variance
      cases.push_back(made);
    }
  }
  // Heads that are normalised apart.
  for (const auto& [groups, size] : std::vector<std::pair<int32_t, int64_t>>{{2, 3}, {12, 64}, {3, 16}, {5, 130}}) {
    for (const auto& lengths : kLengths) {
      KernelCase made = SequenceCase(Op::kLayerNorm, lengths, groups * size, cases.size());
      made.problem.normalisation() = {1e-5f, cases.size() % 3 == 0, groups};
      made.bias = cases.size() % 2 == 0;
      cases.push_back(made);
    }
  }
  // The last two are of so many positions that CUDA's rows take several at once.
  for (const Extent& planes : {Extent{1, 24, 7, 5}, Extent{3, 100, 1, 17}, Extent{2, 384, 9, 8}, Extent{3, 24, 75, 73},
                               Extent{1, 40, 128, 129}}) {
    KernelCase made = SequenceCase(Op::kLayerNorm, {static_cast<int32_t>(planes.batch)}, planes.channels, cases.size());
    made.problem.input = made.problem.output = planes;
    made.problem.normalisation() = {1e-5f, true};
    made.bias = true;
    cases.push_back(made);
  }
  return cases;
}

// Heads, and channels of each: of queries and keys, and of values; heads of queries that share one of both.
struct Heads {
  int32_t count;
  int64_t size, value_size;
  int32_t group_size = 1;
};

std::vector<KernelCase> AttentionCases() {
  constexpr Heads kHeads[] = {{1, 8, 8},      {2, 32, 32},    {12, 32, 32},     {2, 64, 64},  {2, 20, 20},
                              {1, 3, 40},     {2, 33, 7},     {12, 1, 1},       {2, 96, 48},  {1, 128, 128},
                              {8, 64, 64, 4}, {6, 32, 32, 3}, {4, 128, 128, 2}, {3, 8, 8, 3}, {4, 20, 12, 2},
                              {6, 3, 40, 2},  {4, 64, 32, 4}};
  constexpr Masked kMasked[] = {Masked::kNothing, Masked::kSomeKeys, Masked::kSomeKeysWholly, Masked::kAllKeys,
                                Masked::kNothing};
  std::vector<KernelCase> cases;
  for (const Heads& heads : kHeads) {
    for (const auto& lengths : kLengths) {
      const size_t turn = cases.size();
      KernelCase made = SequenceCase(Op::kAttention, lengths, heads.count * heads.size, turn + turn / 8);
      made.problem.output.channels = heads.count * heads.value_size;
      // Far apart where sums are short enough to keep their places: one key then outweighs all that came before it.
      const float far_apart = heads.size <= 20 ? 8.0f : 1.0f;
      made.problem.attention() = {heads.count, turn % 3 == 0 ? 2.0f : turn % 3 == 1 ? far_apart : 0.2f};
      made.problem.attention().group_size = heads.group_size;
      made.masked = kMasked[turn % std::size(kMasked)];
      cases.push_back(made);
    }
  }
  // Whole panels of queries and whole blocks of keys, one and two of them.
  cases.push_back(SequenceCase(Op::kAttention, {64, 128, 192}, 64, 0));
  cases.back().problem.output.channels = 64;
  cases.back().problem.attention() = {2, 0.2f};
  // So much that GPUs give a block more queries, a last one and none left over; keys masked, or not.
  for (const int32_t group_size : {1, 9}) {
    for (const int64_t size : {64, 32}) {
      cases.push_back(SequenceCase(Op::kAttention, {257, 264}, 36 * size, 0));
      cases.back().problem.attention() = {36, 0.2f};
      cases.back().problem.attention().group_size = group_size;
      cases.back().masked = size == 64 ? Masked::kNothing : Masked::kSomeKeys;
    }
  }
  // More sequences than a warp looks at once, and scores that count the other way round.
  cases.push_back(SequenceCase(Op::kAttention, std::vector<int32_t>(70, 9), 2 * 64, 0));
  cases.back().problem.attention() = {2, -0.2f};
  return cases;
}

// Without the keys of every third query.
AttentionPattern WithEmptyRows(const AttentionPattern& pattern) {
  AttentionPattern thinned;
  thinned.tokens = pattern.tokens;
  thinned.row_offsets = {0};
  for (int64_t query = 0; query < pattern.tokens; ++query) {
    const auto keys = pattern.Keys(query);
    if (query % 3 != 1) thinned.col_indices.insert(thinned.col_indices.end(), keys.begin(), keys.end());
    thinned.row_offsets.push_back(static_cast<uint32_t>(thinned.col_indices.size()));
  }
  return thinned;
}

// Bands, blocks, causal ones, drawn ones and ones with queries that have no keys.
std::vector<AttentionPattern> Patterns(int64_t tokens) {
  return {AttentionPattern::FromBand(tokens, tokens, true), AttentionPattern::FromBand(tokens, 1 + tokens / 8, false),
          AttentionPattern::FromBandAndRandom(tokens, 1 + tokens / 16, 0.1, 7),
          AttentionPattern::FromBlocks(tokens, 32, {{0, 0}, {1, 1}, {2, 0}, {3, 3}, {6, 1}}),
          WithEmptyRows(AttentionPattern::FromBand(tokens, 3, true))};
}

std::vector<KernelCase> SparseAttentionCases() {
  constexpr Heads kHeads[] = {{2, 64, 64}, {1, 32, 32}, {3, 128, 128},  {2, 20, 20},
                              {1, 3, 40},  {2, 33, 7},  {4, 32, 32, 2}, {6, 20, 12, 3}};
  constexpr float kScales[] = {0.5f, 1.0f, 2.0f};
  const std::vector<std::vector<int32_t>> lengths = {{1}, {16}, {63, 63}, {64}, {100, 100, 100}, {129}, {321, 321}};
  std::vector<KernelCase> cases;
  for (const Heads& heads : kHeads) {
    for (const auto& sequences : lengths) {
      for (AttentionPattern& pattern : Patterns(sequences[0])) {
        const size_t turn = cases.size();
        KernelCase made = SequenceCase(Op::kSparseAttention, sequences, heads.count * heads.size, turn + turn / 5);
        made.problem.output.channels = heads.count * heads.value_size;
        const float scale = kScales[turn % std::size(kScales)] / std::sqrt(static_cast<float>(heads.size));
        made.problem.attention() = {heads.count, scale, pattern.tokens, pattern.nnz()};
        made.problem.attention().group_size = heads.group_size;
        made.pattern = std::move(pattern);
        cases.push_back(std::move(made));
      }
    }
  }
  return cases;
}

// By distances that reach further than the sequences and not as far, all heads causal, near keys alone, and by pairs.
std::vector<KernelCase> BiasedAttentionCases() {
  constexpr Heads kHeads[] = {{2, 64, 64}, {12, 32, 32}, {1, 128, 128},  {2, 20, 20},    {1, 3, 40},
                              {2, 33, 7},  {3, 8, 8},    {4, 64, 64, 2}, {6, 32, 32, 6}, {4, 20, 12, 2}};
  constexpr int64_t kReaches[] = {0, 1, 5, 64, 500};
  constexpr PairRule kRules[] = {PairRule::kDrawn, PairRule::kCausal, PairRule::kNear};
  constexpr Masked kMasked[] = {Masked::kNothing, Masked::kSomeKeys, Masked::kSomeKeysWholly, Masked::kAllKeys};
  std::vector<KernelCase> cases;
  const auto add = [&](const Heads& heads, const std::vector<int32_t>& lengths) -> KernelCase& {
    const size_t turn = cases.size();
    KernelCase made = SequenceCase(Op::kBiasedAttention, lengths, heads.count * heads.size, turn + turn / 8);
    made.problem.output.channels = heads.count * heads.value_size;
    made.problem.attention().heads = heads.count;
    made.problem.attention().group_size = heads.group_size;
    made.problem.attention().scale = turn % 3 == 0 ? 1.0f : turn % 3 == 1 ? 0.2f : -0.2f;
    made.masked = kMasked[turn % std::size(kMasked)];
    return cases.emplace_back(std::move(made));
  };
  for (const Heads& heads : kHeads) {
    for (const auto& lengths : kLengths) {
      KernelCase& made = add(heads, lengths);
      const size_t turn = cases.size();
      made.pair_rule = kRules[turn % std::size(kRules)];
      const int64_t reach = kReaches[turn / 2 % std::size(kReaches)];
      made.problem.attention().reach = made.pair_rule == PairRule::kDrawn ? reach : reach + 1;
      // Scores of queries all of whose near keys are masked by -10000 would be left few bits.
      const bool rounds = made.pair_rule != PairRule::kDrawn && made.masked != Masked::kNothing;
      if (rounds) made.masked = Masked::kSomeKeysWholly;
    }
    for (const auto& lengths : std::vector<std::vector<int32_t>>{{1}, {17, 17, 17}, {49, 49}, {197}, {64, 64}}) {
      add(heads, lengths).problem.attention().length = lengths[0];
    }
  }
  // Windows that fill tiles, end inside them and are of several, one and several sequences, biases alike and not.
  struct Windows {
    int64_t length, count;
    int32_t sequences;
  };
  for (const Heads& heads : kHeads) {
    for (const Windows& windows :
         {Windows{49, 4, 2}, {16, 9, 1}, {64, 2, 3}, {7, 5, 2}, {70, 2, 1}, {1, 6, 2}, {130, 3, 2}}) {
      const auto length = static_cast<int32_t>(windows.length * windows.count);
      KernelCase& made = add(heads, std::vector<int32_t>(static_cast<size_t>(windows.sequences), length));
      made.problem.attention().length = windows.length;
      made.problem.attention().windows = windows.count;
      made.window_kinds = std::min<int64_t>(windows.count, 1 + static_cast<int64_t>(cases.size() % 3));
    }
  }
  // So much that GPUs give a block more queries, near keys being far fewer than all.
  for (const PairRule rule : kRules) {
    for (const int64_t size : {64, 32}) {
      KernelCase& made = add({36, size, size}, {257, 300, 9});
      made.pair_rule = rule;
      made.masked = Masked::kNothing;
      made.problem.attention().reach = 17;
    }
  }
  return cases;
}

// Places of more distances than the sequences have and of fewer, one each and of several.
std::vector<KernelCase> DisentangledAttentionCases() {
  constexpr Heads kHeads[] = {{2, 64, 64}, {12, 32, 32}, {1, 128, 128}, {2, 20, 20}, {1, 3, 40}, {2, 33, 7}, {3, 8, 8}};
  constexpr int64_t kPlaces[] = {1, 2, 9, 64, 300, 512};
  constexpr Masked kMasked[] = {Masked::kNothing, Masked::kSomeKeysWholly, Masked::kAllKeys};
  std::vector<KernelCase> cases;
  for (const Heads& heads : kHeads) {
    for (const auto& lengths : kLengths) {
      const size_t turn = cases.size();
      const int64_t channels = heads.count * heads.size;
      KernelCase made = SequenceCase(Op::kDisentangledAttention, lengths, channels, turn + turn / 8);
      made.problem.output.channels = heads.count * heads.value_size;
      made.problem.attention() = {.heads = heads.count,
                                  .scale = turn % 3 == 2 ? -0.2f : 0.3f,
                                  .places = kPlaces[turn / 2 % std::size(kPlaces)]};
      made.masked = kMasked[turn % std::size(kMasked)];
      cases.push_back(std::move(made));
    }
  }
  return cases;
}

// All channels of a head and some, in all channels and with others behind them.
std::vector<KernelCase> RotaryCases() {
  constexpr Rotation kRotations[] = {{1, 2, 1},   {2, 32, 16}, {24, 32, 16}, {3, 64, 16},
                                     {2, 20, 10}, {5, 7, 3},   {2, 128, 64}, {2, 100, 50}};
  std::vector<KernelCase> cases;
  for (const Rotation& rotation : kRotations) {
    for (const auto& lengths : kLengths) {
      const size_t turn = cases.size();
      const int64_t turned = int64_t{rotation.heads} * rotation.size;
      const int64_t behind = turn / 2 % 3 == 0 ? 0 : turn / 2 % 3 == 1 ? turned / 2 : 5;
      KernelCase made = SequenceCase(Op::kRotary, lengths, turned + behind, turn);
      made.problem.rotation() = rotation;
      made.table_rows = 500;
      cases.push_back(made);
    }
  }
  return cases;
}

std::vector<KernelCase> PermuteTokensCases() {
  std::vector<KernelCase> cases;
  for (const int64_t channels : {1, 3, 16, 40, 96, 200}) {
    for (const int32_t length : {1, 16, 49, 130}) {
      for (const size_t sequences : {1, 3}) {
        cases.push_back(SequenceCase(Op::kPermuteTokens, std::vector<int32_t>(sequences, length), channels,
                                     cases.size() + cases.size() / 8));
        cases.back().table_rows = length;
      }
    }
  }
  return cases;
}

// Planes alone, and behind tokens that have no position.
std::vector<KernelCase> PlaneTokensCases() {
  std::vector<KernelCase> cases;
  for (const int64_t channels : {1, 3, 16, 40, 96}) {
    for (const Extent& planes : {Extent{1, 1, 1, 1}, Extent{3, 1, 4, 4}, Extent{2, 1, 14, 14}, Extent{4, 1, 1, 67}}) {
      for (const int32_t before : {0, 1, 5, 16}) {
        const int64_t length = before + planes.plane();
        KernelCase made = SequenceCase(Op::kPlaneTokens, {}, channels, cases.size() + cases.size() / 4);
        made.problem.input = {planes.batch, channels, planes.height, planes.width};
        made.problem.output = {planes.batch * length, channels};
        made.table_rows = length;
        cases.push_back(made);
      }
    }
  }
  return cases;
}

std::vector<KernelCase> ReductionCases(Op op) {
  std::vector<KernelCase> cases;
  for (int64_t channels : {1, 17, 64}) {
    for (const auto& lengths : kLengths) {
      const size_t turn = cases.size();
      cases.push_back(SequenceCase(op, lengths, channels, turn));
      if (op == Op::kSelectToken) {
        cases.back().problem.token_choice() = {std::vector<int64_t>{0, -1, 3, -3, 500}[turn % 5]};
      }
      cases.back().masked = std::vector<Masked>{Masked::kNothing, Masked::kSomeKeys, Masked::kAllKeys}[turn % 3];
    }
  }
  return cases;
}

}  // namespace

// Of products: numbers of blocks that share the rows, up to 8 and, spread, 16, weights of few and of many columns,
// shuffled rows, tokens for few clusters and for many.
std::vector<KernelCase> NormOfProductCases() {
  constexpr std::pair<int64_t, int64_t> kSizes[] = {{384, 384}, {1536, 384}, {40, 192}, {7, 128},   {100, 320},
                                                    {300, 512}, {768, 768},  {96, 640}, {64, 1024}, {96, 896}};
  std::vector<KernelCase> cases;
  for (const auto& [inputs, outputs] : kSizes) {
    for (const auto& lengths :
         std::vector<std::vector<int32_t>>{{1}, {17, 1, 15}, {63, 64, 65}, {200, 15, 85}, {600, 500}}) {
      const size_t turn = cases.size();
      KernelCase made = SequenceCase(Op::kLayerNorm, lengths, inputs, turn);
      made.problem.output.channels = outputs;
      made.problem.normalisation() = {turn % 3 == 0 ? 1e-5f : 1e-12f, turn % 5 != 3};
      made.problem.epilogue.residual = true;
      made.bias = true;
      made.sparsity = turn % 2 == 0 ? 0.9 : 0.5;
      made.vector_rows = turn % 3 == 2 ? 128 : 64;
      made.shuffled = turn / 2 % 2 == 1;
      made.mean = turn % 4 == 1 ? 1000 : 0;
      cases.push_back(made);
    }
  }
  return cases;
}

std::vector<KernelCase> SequenceCases(Op op) {
  switch (op) {
    case Op::kEmbedding:
      return EmbeddingCases();
    case Op::kLayerNorm:
      return LayerNormCases();
    case Op::kAttention:
      return AttentionCases();
    case Op::kSparseAttention:
      return SparseAttentionCases();
    case Op::kBiasedAttention:
      return BiasedAttentionCases();
    case Op::kDisentangledAttention:
      return DisentangledAttentionCases();
    case Op::kRotary:
      return RotaryCases();
    case Op::kPermuteTokens:
      return PermuteTokensCases();
    case Op::kPlaneTokens:
      return PlaneTokensCases();
    case Op::kSelectToken:
    case Op::kMeanTokens:
      return ReductionCases(op);
    default:
      return {};
  }
}

Weight DrawPairBiases(const KernelCase& kernel_case, std::mt19937& random) {
  const Attention& attention = kernel_case.problem.attention();
  DenseMatrix biases;
  biases.rows = attention.heads;
  biases.cols = PairPlacesOf(attention).count();
  std::uniform_real_distribution<float> bias(-4.0f, 4.0f);
  for (int64_t i = 0; i < biases.rows * biases.cols; ++i) biases.values.push_back(bias(random));
  const auto leave_out = [&](int64_t column) {
    for (int64_t head = 0; head < biases.rows; ++head) {
      biases.values[head * biases.cols + column] = -std::numeric_limits<float>::infinity();
    }
  };
  if (kernel_case.pair_rule != PairRule::kDrawn) {
    for (int64_t column = attention.reach + 1; column < biases.cols; ++column) leave_out(column);
  }
  if (kernel_case.pair_rule == PairRule::kNear) leave_out(0);
  if (kernel_case.window_kinds == 1) return {std::move(biases), {}};
  DenseMatrix of_windows;
  of_windows.rows = biases.rows;
  of_windows.cols = biases.cols * attention.windows;
  for (int64_t head = 0; head < biases.rows; ++head) {
    for (int64_t window = 0; window < attention.windows; ++window) {
      const float more = static_cast<float>(window % kernel_case.window_kinds);
      for (int64_t column = 0; column < biases.cols; ++column) {
        const float drawn = biases.values[head * biases.cols + column];
        of_windows.values.push_back(column % 3 == 0 ? drawn + more : drawn);
      }
    }
  }
  return {std::move(of_windows), {}};
}

Weight DrawPlaces(const KernelCase& kernel_case, std::mt19937& random) {
  DenseMatrix places;
  places.rows = kernel_case.table_rows;
  places.cols = 1;
  places.values.resize(static_cast<size_t>(places.rows));
  std::iota(places.values.begin(), places.values.end(), 0.0f);
  std::ranges::shuffle(places.values, random);
  return {std::move(places), {}};
}

Weight DrawPlaceVectors(const KernelCase& kernel_case, std::mt19937& random) {
  const Problem& problem = kernel_case.problem;
  DenseMatrix vectors;
  vectors.rows = 2 * KeyChannels(problem) + 1;
  vectors.cols = problem.attention().places;
  std::normal_distribution<float> channel;
  for (int64_t i = 0; i < (vectors.rows - 1) * vectors.cols; ++i) vectors.values.push_back(channel(random));
  // Distances near 0 have places of their own.
  std::uniform_int_distribution<int64_t> many(1, 9);
  std::vector<float> least;
  for (int64_t distance = 0, i = 0; i < vectors.cols - vectors.cols / 2; ++i) {
    least.push_back(static_cast<float>(distance));
    distance += i < 20 ? 1 : many(random);
  }
  for (int64_t distance = 0, i = 0; i < vectors.cols / 2; ++i) {
    distance -= i < 20 ? 1 : many(random);
    least.insert(least.begin(), static_cast<float>(distance));
  }
  vectors.values.insert(vectors.values.end(), least.begin(), least.end());
  return {std::move(vectors), {}};
}

}  // namespace swizzle

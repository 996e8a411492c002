#include "tests/kernels/kernel_cases.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/operator/print.h"
#include "tests/kernels/layer_shapes.h"
#include "tests/kernels/plane_cases.h"

namespace swizzle {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The bias, and what follows the sum.
struct Tail {
  bool bias;
  Epilogue epilogue;
};

constexpr Tail kTails[] = {
    {false, {-kInfinity, kInfinity, false}},
    {true, {-kInfinity, kInfinity, false}},
    {true, {0, kInfinity, false}},
    {false, {0, 6, false}},
    {false, {-kInfinity, kInfinity, true}},
    {true, {0, kInfinity, true}},
    {true, {-0.5f, 0.75f, true}},
};
constexpr double kSparsities[] = {0, 0.5, 0.9, 1};

int64_t OutputSize(int64_t input, int64_t kernel, int64_t stride, int64_t pads, int64_t dilation) {
  return (input + pads - (kernel - 1) * dilation - 1) / stride + 1;
}

Extent OutputExtent(const LayerShape& shape) {
  const Window& window = shape.window;
  return {shape.input.batch, shape.output_channels == 0 ? shape.input.channels : shape.output_channels,
          OutputSize(shape.input.height, window.kernel_h, window.stride_h, window.pad_top + window.pad_bottom,
                     window.dilation_h),
          OutputSize(shape.input.width, window.kernel_w, window.stride_w, window.pad_left + window.pad_right,
                     window.dilation_w)};
}

std::vector<LayerShape> ShapesOf(Op op) {
  switch (op) {
    case Op::kConv:
      return ConvShapes();
    case Op::kDepthwiseConv:
      return DepthwiseShapes();
    case Op::kMaxPool:
    case Op::kAveragePool:
      return PoolShapes();
    default:
      return PlaneShapes();
  }
}

// The tails that mean something for an op: only sums have a bias and a residual, only some ops clamp.
std::vector<Tail> TailsOf(Op op) {
  if (TraitsOf(op).Has(OpTraits::kAddsResidual)) return {std::begin(kTails), std::end(kTails)};
  if (!TraitsOf(op).Has(OpTraits::kClamps)) return {kTails[0]};
  return {kTails[0], {false, {0, kInfinity, false}}, {false, {-0.25f, 0.75f, false}}};
}

KernelCase MakeCase(Op op, const LayerShape& shape, const Tail& tail, double sparsity, int threads) {
  Problem problem{{op, AttributesOf(op), tail.epilogue}, shape.input, OutputExtent(shape), threads};
  if (IsWindowed(op)) problem.window() = shape.window;
  if (op == Op::kTranspose) problem.output = {shape.input.batch, shape.input.plane(), 1, shape.input.channels};
  return {problem, tail.bias, sparsity};
}

constexpr Function kFunctions[] = {
    {FunctionKind::kSigmoid, 0, 0},
    {FunctionKind::kSilu, 0, 0},
    {FunctionKind::kHardSigmoid, 0.7f, 0.4f},
    {FunctionKind::kHardSwish, 1.0f / 6, 0.5f},
    {FunctionKind::kLeakyRelu, 0.1f, 0},
    {FunctionKind::kTanh, 0, 0},
    {FunctionKind::kGelu, 0, 0},
    {FunctionKind::kGeluTanh, 0, 0},
};
static_assert(std::size(kFunctions) == kFunctionKindCount);

// Every kind of function on every shape.
std::vector<KernelCase> FunctionCases() {
  const std::vector<Tail> tails = TailsOf(Op::kFunction);
  std::vector<KernelCase> cases;
  for (const LayerShape& shape : PlaneShapes()) {
    for (const Function& function : kFunctions) {
      const size_t turn = cases.size();
      cases.push_back(MakeCase(Op::kFunction, shape, tails[turn % tails.size()], 0, 1 + static_cast<int>(turn % 2)));
      cases.back().problem.function() = function;
    }
  }
  return cases;
}

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

// Heads, and channels of each: of queries and keys, and of values.
struct Heads {
  int32_t count;
  int64_t size, value_size;
};

std::vector<KernelCase> AttentionCases() {
  constexpr Heads kHeads[] = {{1, 8, 8},  {2, 32, 32}, {12, 32, 32}, {2, 64, 64}, {2, 20, 20},
                              {1, 3, 40}, {2, 33, 7},  {12, 1, 1},   {2, 96, 48}, {1, 128, 128}};
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
      made.masked = kMasked[turn % std::size(kMasked)];
      cases.push_back(made);
    }
  }
  // Whole panels of queries and whole blocks of keys, one and two of them.
  cases.push_back(SequenceCase(Op::kAttention, {64, 128, 192}, 64, 0));
  cases.back().problem.output.channels = 64;
  cases.back().problem.attention() = {2, 0.2f};
  // So much that GPUs give a block more queries, a last one and none left over; keys masked, or not.
  for (const int64_t size : {64, 32}) {
    cases.push_back(SequenceCase(Op::kAttention, {257, 264}, 36 * size, 0));
    cases.back().problem.attention() = {36, 0.2f};
    cases.back().masked = size == 64 ? Masked::kNothing : Masked::kSomeKeys;
  }
  // More sequences than a warp looks at once, and scores that count the other way round.
  cases.push_back(SequenceCase(Op::kAttention, std::vector<int32_t>(70, 9), 2 * 64, 0));
  cases.back().problem.attention() = {2, -0.2f};
  return cases;
}

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
  constexpr Heads kHeads[] = {{2, 64, 64}, {1, 32, 32}, {3, 128, 128}, {2, 20, 20}, {1, 3, 40}, {2, 33, 7}};
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
        made.pattern = std::move(pattern);
        cases.push_back(std::move(made));
      }
    }
  }
  return cases;
}

// By distances that reach further than the sequences and not as far, all heads causal, near keys alone, and by pairs.
std::vector<KernelCase> BiasedAttentionCases() {
  constexpr Heads kHeads[] = {{2, 64, 64}, {12, 32, 32}, {1, 128, 128}, {2, 20, 20}, {1, 3, 40}, {2, 33, 7}, {3, 8, 8}};
  constexpr int64_t kReaches[] = {0, 1, 5, 64, 500};
  constexpr PairRule kRules[] = {PairRule::kDrawn, PairRule::kCausal, PairRule::kNear};
  constexpr Masked kMasked[] = {Masked::kNothing, Masked::kSomeKeys, Masked::kSomeKeysWholly, Masked::kAllKeys};
  std::vector<KernelCase> cases;
  const auto add = [&](const Heads& heads, const std::vector<int32_t>& lengths) -> KernelCase& {
    const size_t turn = cases.size();
    KernelCase made = SequenceCase(Op::kBiasedAttention, lengths, heads.count * heads.size, turn + turn / 8);
    made.problem.output.channels = heads.count * heads.value_size;
    made.problem.attention().heads = heads.count;
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

// Convolutions in groups, whole and pruned.
void AddCasesInGroups(const std::vector<Tail>& tails, std::vector<KernelCase>& cases) {
  for (const auto& [shape, groups] : kShapesInGroups) {
    for (const bool odd : {false, true}) {
      cases.push_back(MakeCase(Op::kConv, shape, tails[cases.size() % tails.size()], odd ? 0.9 : 0, odd ? 2 : 1));
      cases.back().groups = groups;
    }
  }
}

// What the rest of a case's text does not say of sequences.
std::string SequenceText(const KernelCase& kernel_case) {
  std::string text = " lengths";
  for (int32_t length : kernel_case.lengths) text += Concat(" ", length);
  return text + Concat(" masked ", static_cast<int>(kernel_case.masked), " mean ", kernel_case.mean);
}

// Of 2:4, and first layers.
void AddCasesOfStructures(const std::vector<Tail>& tails, std::vector<KernelCase>& cases) {
  for (const LayerShape& shape : kTwoOfFourShapes) {
    const size_t turn = cases.size();
    cases.push_back(MakeCase(Op::kConv, shape, tails[turn % tails.size()], turn % 2 == 0 ? 0 : 0.3, 1));
    cases.back().two_of_four = true;
  }
  for (const LayerShape& shape : kStemShapes) {
    cases.push_back(MakeCase(Op::kConv, shape, kTails[cases.size() % 4], 0, 1));  // without a residual
  }
}

}  // namespace

void KeepTwoOfFour(DenseMatrix& matrix, std::mt19937& random) {
  constexpr int kPairs[] = {0b0011, 0b0101, 0b0110, 0b1001, 0b1010, 0b1100};
  int pair = 0;
  for (int64_t i = 0; i < matrix.rows * matrix.cols; ++i) {
    const int64_t place = i % matrix.cols % 4;
    if (place == 0) pair = kPairs[random() % std::size(kPairs)];
    if ((pair >> place & 1) == 0) matrix.values[i] = 0;
  }
}

void ShuffleRows(DenseMatrix& matrix, std::mt19937& random) {
  for (int64_t row = matrix.rows - 1; row > 0; --row) {
    const auto at = matrix.values.begin() + row * matrix.cols;
    const auto other = static_cast<int64_t>(random() % (row + 1));
    std::swap_ranges(at, at + matrix.cols, matrix.values.begin() + other * matrix.cols);
  }
}

std::string CaseText(const KernelCase& kernel_case) {
  const Problem& problem = kernel_case.problem;
  const auto extent_text = [](const Extent& extent) {
    return Concat(extent.batch, "x", extent.channels, "x", extent.height, "x", extent.width);
  };
  return Concat(OpName(problem.op), " ", extent_text(problem.input), " -> ", extent_text(problem.output),
                AttributesText(problem.attributes), kernel_case.bias ? " bias" : "",
                problem.epilogue.residual ? " residual" : "", " [", problem.epilogue.low, ",", problem.epilogue.high,
                "]", problem.epilogue.function ? AttributesText(*problem.epilogue.function) : "",
                kernel_case.lengths.empty() ? "" : SequenceText(kernel_case), " sparsity ", kernel_case.sparsity,
                kernel_case.vector_rows > 1 ? Concat(" vectors of ", kernel_case.vector_rows, " rows") : "",
                kernel_case.shuffled ? " shuffled" : "",
                kernel_case.block_channels > 1 ? Concat(" blocks of ", kernel_case.block_channels, " channels") : "",
                kernel_case.groups > 1 ? Concat(" groups ", kernel_case.groups) : "",
                kernel_case.two_of_four ? " 2:4" : "", kernel_case.wide_bytes ? " wide" : "", " threads ",
                problem.threads);
}

// Every shape meets two tails and sparsities, which move on from shape to shape; one shape of a layer with weights
// meets all of them. Convolutions are also tried with weights whose rows share zeros.
std::vector<KernelCase> KernelCases(Op op) {
  if (std::vector<KernelCase> cases = PlaneCases(op); !cases.empty()) return cases;
  switch (op) {
    case Op::kFunction:
      return FunctionCases();
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
    case Op::kSelectToken:
    case Op::kMeanTokens:
      return ReductionCases(op);
    default:
      break;
  }
  const std::vector<LayerShape> shapes = ShapesOf(op);
  const std::vector<Tail> tails = TailsOf(op);
  std::vector<KernelCase> cases;
  for (size_t i = 0; i < shapes.size(); ++i) {
    for (int j = 0; j < 2; ++j) {
      const size_t turn = 2 * i + j;
      cases.push_back(MakeCase(op, shapes[i], tails[turn % tails.size()], kSparsities[(turn + i / 2) % 4], 1 + j));
    }
  }
  if (op != Op::kConv && op != Op::kDepthwiseConv) return cases;
  for (const Tail& tail : tails) {
    for (double sparsity : kSparsities) cases.push_back(MakeCase(op, shapes[shapes.size() / 3], tail, sparsity, 2));
  }
  if (op != Op::kConv) return cases;
  for (size_t i = 1; i < shapes.size(); i += 2) {
    const int threads = i / 2 % 2 == 0 ? 1 : 2;
    cases.push_back(MakeCase(op, shapes[i], tails[i / 2 % tails.size()], i % 4 == 1 ? 0.5 : 0.9, threads));
    cases.back().vector_rows = i % 3 == 0 ? 8 : 4;
  }
  for (size_t i = 0; i < shapes.size(); i += 3) {
    cases.push_back(MakeCase(op, shapes[i], tails[i % tails.size()], i % 2 == 0 ? 0.8 : 0.6, i % 2 == 0 ? 2 : 1));
    cases.back().vector_rows = i % 4 == 3 ? 4 : static_cast<int64_t>(i % 2 + 1);
    cases.back().block_channels = i % 4 == 1 ? 1 : 4;
  }
  for (const GroupedShape& grouped : kGroupedShapes) {
    const size_t turn = cases.size();
    const bool odd = turn % 2 == 1;
    cases.push_back(MakeCase(op, grouped.shape, tails[turn % tails.size()], odd ? 0.9 : 0.5, odd ? 2 : 1));
    cases.back().vector_rows = grouped.vector_rows;
    cases.back().shuffled = turn % 3 != 0;
  }
  AddCasesInGroups(tails, cases);
  AddCasesOfStructures(tails, cases);
  return cases;
}

std::vector<KernelCase> FusedCases(Op op) {
  if (op == Op::kLayerNorm) return NormOfProductCases();
  std::vector<KernelCase> cases;
  const bool packs = op == Op::kAttention || op == Op::kBiasedAttention;
  if (op != Op::kConv && op != Op::kDepthwiseConv && !packs) return cases;
  const std::vector<KernelCase> plain = KernelCases(op);
  for (size_t i = 0; i < plain.size(); i += 2) {
    cases.push_back(plain[i]);
    Problem& problem = cases.back().problem;
    if (!packs) {
      if (op == Op::kDepthwiseConv) problem.epilogue = {};  // they end nothing else
      problem.epilogue.function = kFunctions[i / 2 % std::size(kFunctions)];
    } else {
      problem.attention().packed = true;
      problem.input.channels = 2 * problem.input.channels + problem.output.channels;
    }
  }
  if (op != Op::kConv) return cases;
  // Few of those above have weights of a structure.
  for (const Function& function : kFunctions) {
    const Tail& tail = kTails[cases.size() / 2 % std::size(kTails)];
    cases.push_back(MakeCase(op, kTwoOfFourShapes[3], tail, 0, 1));
    cases.back().two_of_four = true;
    cases.back().problem.epilogue.function = function;
    for (const GroupedShape& grouped : {kGroupedShapes[3], kGroupedShapes[4]}) {
      for (const double sparsity : {0.5, 0.9}) {  // the latter leaves most columns empty
        cases.push_back(MakeCase(op, grouped.shape, tail, sparsity, 1));
        cases.back().vector_rows = grouped.vector_rows;
        cases.back().problem.epilogue.function = function;
      }
    }
    cases.push_back(MakeCase(op, kGroupedShapes[1].shape, tail, 0.9, 1));
    cases.back().vector_rows = 8;
    cases.back().problem.epilogue.function = function;
  }
  return cases;
}

}  // namespace swizzle

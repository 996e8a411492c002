#include "kernels/format/attention_pattern.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <utility>

#include "kernels/base/integers.h"

namespace swizzle {
namespace {

constexpr int64_t kMaxUint32 = std::numeric_limits<uint32_t>::max();

// Fills rows from pairs (query, key) in rising order.
AttentionPattern FromSortedPairs(int64_t tokens, const std::vector<uint64_t>& pairs) {
  AttentionPattern pattern{.tokens = tokens, .row_offsets = std::vector<uint32_t>(tokens + 1), .col_indices = {}};
  pattern.col_indices.reserve(pairs.size());
  for (const uint64_t pair : pairs) {
    ++pattern.row_offsets[(pair >> 32) + 1];
    pattern.col_indices.push_back(static_cast<uint32_t>(pair));
  }
  std::partial_sum(pattern.row_offsets.begin(), pattern.row_offsets.end(), pattern.row_offsets.begin());
  return pattern;
}

// Pairs that are further apart than the band: their count by distance is tokens - distance.
double ExpectedBelow(int64_t tokens, int64_t width, double threshold) {
  double sum = 0;
  for (int64_t distance = width; distance < tokens; ++distance) {
    sum += static_cast<double>(tokens - distance) * -std::expm1(-threshold / static_cast<double>(distance));
  }
  return sum;
}

// The threshold below which about `count` of the draws Exp(1) * distance fall.
double ThresholdFor(int64_t tokens, int64_t width, double count) {
  double low = 0, high = 1;
  while (ExpectedBelow(tokens, width, high) < count && high < 1e30) high *= 2;
  for (int i = 0; i < 50; ++i) {
    const double middle = (low + high) / 2;
    (ExpectedBelow(tokens, width, middle) < count ? low : high) = middle;
  }
  return high;
}

struct Draw {
  float key;  // Exp(1) * distance
  uint64_t pair;
};

// All draws below `threshold`. Of the others nothing but that they are not is computed.
std::vector<Draw> DrawsBelow(int64_t tokens, int64_t width, double threshold, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<double> chance(tokens);
  for (int64_t d = width; d < tokens; ++d) chance[d] = -std::expm1(-threshold / static_cast<double>(d));
  std::vector<Draw> draws;
  for (int64_t query = width; query < tokens; ++query) {
    for (int64_t key = 0; key + width <= query; ++key) {
      const double uniform = static_cast<double>(random() >> 11) * 0x1p-53;
      if (uniform >= chance[query - key]) continue;
      draws.push_back({static_cast<float>(-std::log1p(-uniform) * static_cast<double>(query - key)),
                       static_cast<uint64_t>(query) << 32 | static_cast<uint64_t>(key)});
    }
  }
  return draws;
}

// The whole of the far pairs with the smallest draws, in rising order.
std::vector<uint64_t> DrawFarPairs(int64_t tokens, int64_t width, size_t count, uint64_t seed) {
  // A margin of many standard deviations; should it not do, a larger one will.
  double wanted = static_cast<double>(count) + 8 * std::sqrt(static_cast<double>(count)) + 8;
  std::vector<Draw> draws;
  do {
    draws = DrawsBelow(tokens, width, ThresholdFor(tokens, width, wanted), seed);
    wanted *= 1.5;
  } while (draws.size() < count);
  const auto order = [](const Draw& a, const Draw& b) { return std::pair(a.key, a.pair) < std::pair(b.key, b.pair); };
  std::nth_element(draws.begin(), draws.begin() + static_cast<int64_t>(count), draws.end(), order);
  std::vector<uint64_t> pairs(count);
  std::transform(draws.begin(), draws.begin() + static_cast<int64_t>(count), pairs.begin(),
                 [](const Draw& draw) { return draw.pair; });
  std::sort(pairs.begin(), pairs.end());
  return pairs;
}

void AppendRange(AttentionPattern& pattern, int64_t first, int64_t last) {
  for (int64_t key = first; key < last; ++key) pattern.col_indices.push_back(static_cast<uint32_t>(key));
}

void EndRow(AttentionPattern& pattern) {
  SWIZZLE_CHECK(pattern.nnz() <= kMaxUint32);
  pattern.row_offsets.push_back(static_cast<uint32_t>(pattern.nnz()));
}

// Whether every row is the band's.
bool IsBand(const AttentionPattern& pattern, int64_t width, bool causal) {
  for (int64_t query = 0; query < pattern.tokens; ++query) {
    const auto keys = pattern.Keys(query);
    const int64_t first = std::max<int64_t>(0, query - width + 1);
    const int64_t last = causal ? query : std::min(pattern.tokens - 1, query + width - 1);
    if (static_cast<int64_t>(keys.size()) != last - first + 1 || keys.front() != first || keys.back() != last)
      return false;
  }
  return true;
}

// Whether the keys are whole aligned blocks.
bool AreBlocks(std::span<const uint32_t> keys, int64_t tokens, int64_t size) {
  for (size_t i = 0; i < keys.size();) {
    const int64_t first = keys[i], length = std::min(size, tokens - first);
    if (first % size != 0 || i + length > keys.size() || keys[i + length - 1] != first + length - 1) return false;
    i += length;
  }
  return true;
}

bool IsBlocked(const AttentionPattern& pattern, int64_t size) {
  for (int64_t query = 0; query < pattern.tokens; ++query) {
    const auto keys = pattern.Keys(query);
    if (query % size == 0 && !AreBlocks(keys, pattern.tokens, size)) return false;
    if (query % size != 0 && !std::ranges::equal(keys, pattern.Keys(query - 1))) return false;
  }
  return true;
}

}  // namespace

Status AttentionPattern::Validate() const {
  if (tokens < 0 || tokens > kMaxUint32) return InvalidArgument("attention pattern of ", tokens, " tokens");
  if (static_cast<int64_t>(row_offsets.size()) != tokens + 1) {
    return InvalidArgument("attention pattern of ", tokens, " tokens has ", row_offsets.size(), " row offsets, not ",
                           tokens + 1);
  }
  if (row_offsets.front() != 0 || row_offsets.back() != nnz()) {
    return InvalidArgument("attention pattern's row offsets run from ", row_offsets.front(), " to ", row_offsets.back(),
                           "; they must run from 0 to ", nnz());
  }
  for (int64_t query = 0; query < tokens; ++query) {
    if (row_offsets[query] > row_offsets[query + 1]) {
      return InvalidArgument("attention pattern: the offset of row ", query, " is beyond the next row's");
    }
  }
  for (int64_t query = 0; query < tokens; ++query) {
    int64_t previous = -1;
    for (const int64_t key : Keys(query)) {
      if (key <= previous || key >= tokens) {
        return InvalidArgument("attention pattern, query ", query, ": key ", key, " after key ", previous,
                               "; keys must rise and be below ", tokens);
      }
      previous = key;
    }
  }
  return absl::OkStatus();
}

AttentionPattern AttentionPattern::FromBand(int64_t tokens, int64_t width, bool causal) {
  AttentionPattern pattern{.tokens = tokens, .row_offsets = {0}, .col_indices = {}};
  for (int64_t query = 0; query < tokens; ++query) {
    AppendRange(pattern, std::max<int64_t>(0, query - width + 1), causal ? query + 1 : std::min(tokens, query + width));
    EndRow(pattern);
  }
  return pattern;
}

AttentionPattern AttentionPattern::FromBandAndRandom(int64_t tokens, int64_t width, double share, uint64_t seed) {
  const int64_t rest = tokens > width ? (tokens - width) * (tokens - width + 1) / 2 : 0;
  const auto count = static_cast<size_t>(std::floor(share * static_cast<double>(rest)));
  if (count == 0) return FromBand(tokens, width, true);
  const AttentionPattern far = FromSortedPairs(tokens, DrawFarPairs(tokens, width, count, seed));
  AttentionPattern pattern{.tokens = tokens, .row_offsets = {0}, .col_indices = {}};
  for (int64_t query = 0; query < tokens; ++query) {
    const auto keys = far.Keys(query);
    pattern.col_indices.insert(pattern.col_indices.end(), keys.begin(), keys.end());
    AppendRange(pattern, std::max<int64_t>(0, query - width + 1), query + 1);
    EndRow(pattern);
  }
  return pattern;
}

AttentionPattern AttentionPattern::FromBlocks(int64_t tokens, int64_t size, std::vector<Block> blocks) {
  const auto place = [](const Block& block) { return std::pair(block.query_block, block.key_block); };
  std::ranges::sort(blocks, {}, place);
  const auto same = [&](const Block& a, const Block& b) { return place(a) == place(b); };
  blocks.erase(std::unique(blocks.begin(), blocks.end(), same), blocks.end());
  AttentionPattern pattern{.tokens = tokens, .row_offsets = {0}, .col_indices = {}};
  for (int64_t query = 0; query < tokens; ++query) {
    const int64_t row = query / size;
    for (auto block = std::ranges::lower_bound(blocks, row, {}, &Block::query_block);
         block != blocks.end() && block->query_block == row; ++block) {
      AppendRange(pattern, block->key_block * size, std::min(tokens, (block->key_block + 1) * size));
    }
    EndRow(pattern);
  }
  return pattern;
}

std::string AttentionStructure::Name() const {
  if (kind == Kind::kBand) return Concat(causal ? "causal band " : "band ", width);
  if (kind == Kind::kBlocks) return Concat(block, "x", block, " blocks");
  return "arbitrary";
}

AttentionStructure DetectAttentionStructure(const AttentionPattern& pattern) {
  using Kind = AttentionStructure::Kind;
  if (pattern.nnz() == 0) return {};
  // The last row of a causal band is its longest, and of a band as long as its width.
  const auto width = static_cast<int64_t>(pattern.Keys(pattern.tokens - 1).size());
  if (width > 0 && IsBand(pattern, width, true)) return {.kind = Kind::kBand, .width = width, .causal = true};
  if (width > 0 && IsBand(pattern, width, false)) return {.kind = Kind::kBand, .width = width, .causal = false};
  for (const int64_t size : {128, 64, 32}) {
    if (IsBlocked(pattern, size)) return {.kind = Kind::kBlocks, .block = size};
  }
  return {};
}

std::vector<uint32_t> BundleSwizzle(const AttentionPattern& pattern, int64_t bundle) {
  std::vector<uint32_t> order(CeilDiv(pattern.tokens, bundle));
  std::iota(order.begin(), order.end(), 0);
  const auto nonzeros = [&](uint32_t i) {
    return pattern.row_offsets[std::min(pattern.tokens, (i + 1) * bundle)] - pattern.row_offsets[i * bundle];
  };
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return nonzeros(a) > nonzeros(b); });
  return order;
}

DenseMatrix AttentionPattern::ToDense() const {
  DenseMatrix dense{tokens, tokens, std::vector<float>(static_cast<size_t>(tokens * tokens))};
  ForEachRow([&](int64_t query, std::span<const uint32_t> keys) {
    for (uint32_t key : keys) dense.values[query * tokens + key] = 1;
  });
  return dense;
}

StatusOr<AttentionPattern> AttentionPattern::FromDense(const DenseMatrix& dense) {
  if (dense.rows != dense.cols) {
    return InvalidArgument("a pattern of keys is square, not ", dense.rows, " x ", dense.cols);
  }
  AttentionPattern pattern{.tokens = dense.rows, .row_offsets = {0}, .col_indices = {}};
  dense.ForEachRow([&](int64_t, std::span<const uint32_t> keys) {
    pattern.col_indices.insert(pattern.col_indices.end(), keys.begin(), keys.end());
    EndRow(pattern);
  });
  return pattern;
}

void AttentionPattern::ForEachRow(absl::FunctionRef<void(int64_t row, std::span<const uint32_t> cols)> visit) const {
  for (int64_t query = 0; query < tokens; ++query) visit(query, Keys(query));
}

}  // namespace swizzle

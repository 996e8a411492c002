// Which keys each query of a sparse attention attends to: a CSR pattern [tokens, tokens] without values. Value type.
//
// One pattern serves all heads (Gale et al., "Sparse GPU Kernels for Deep Learning", SC20, section 7.3: one mask for
// all heads and layers). A query may have no keys: attention then gives zeros.
//
// Worked example, FromBand(4, 2, causal):   x . . .     row_offsets   0 1 3 5 7
//                                           x x . .     col_indices   0 0 1 1 2 2 3
//                                           . x x .
//                                           . . x x
//
// Invariant (Validate): row_offsets has tokens+1 entries, starts at 0, never falls and ends at nnz; within a row the
// keys rise strictly and are below tokens.
#ifndef SWIZZLE_KERNELS_FORMAT_ATTENTION_PATTERN_H_
#define SWIZZLE_KERNELS_FORMAT_ATTENTION_PATTERN_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "kernels/base/status.h"
#include "kernels/format/dense.h"

namespace swizzle {

struct AttentionPattern {
  static constexpr Format kFormat = Format::kPattern;

  struct Block {
    int64_t query_block, key_block;
  };

  int64_t tokens = 0;
  std::vector<uint32_t> row_offsets;
  std::vector<uint32_t> col_indices;

  int64_t nnz() const { return static_cast<int64_t>(col_indices.size()); }
  std::span<const uint32_t> Keys(int64_t query) const {
    return std::span(col_indices).subspan(row_offsets[query], row_offsets[query + 1] - row_offsets[query]);
  }
  size_t bytes() const { return (row_offsets.size() + col_indices.size()) * sizeof(uint32_t); }  // of memory
  // INVALID_ARGUMENT naming the first row and entry that breaks the invariant.
  Status Validate() const;
  DenseMatrix ToDense() const;  // ones; needs memory for tokens x tokens
  // INVALID_ARGUMENT if it is not square.
  static StatusOr<AttentionPattern> FromDense(const DenseMatrix& dense);
  static bool Holds(const Structure&) { return false; }  // no weight, which has values
  void ForEachRow(absl::FunctionRef<void(int64_t row, std::span<const uint32_t> cols)> visit) const;

  template <typename Self, typename Visitor>
  static void VisitParts(Self& pattern, Visitor& visitor) {
    visitor.Size(pattern.tokens, pattern.tokens);
    visitor.Places("row offsets", pattern.row_offsets);
    visitor.Places("column indices", pattern.col_indices, /*below=*/pattern.tokens);
  }

  // Keys with 0 <= query - key < width where causal, else |query - key| < width. REQUIRES: width >= 1, fewer than 2^32
  // nonzeros, as of all that follow.
  static AttentionPattern FromBand(int64_t tokens, int64_t width, bool causal);
  // The causal band, and `share` of the rest of the lower triangle (rounded down), drawn without replacement with
  // p ~ 1 / (query - key): the pattern of Sputnik's sparse Transformer. By Efraimidis and Spirakis, "Weighted random
  // sampling with a reservoir" (2006): the smallest of Exp(1) * (query - key). The same seed gives the same pattern.
  static AttentionPattern FromBandAndRandom(int64_t tokens, int64_t width, double share, uint64_t seed);
  // Square blocks of `size` queries by as many keys, cut off at the edges, in any order; duplicates count once.
  static AttentionPattern FromBlocks(int64_t tokens, int64_t size, std::vector<Block> blocks);
};

// What a pattern is made of, whole.
struct AttentionStructure {
  enum class Kind : uint8_t { kArbitrary, kBand, kBlocks };
  Kind kind = Kind::kArbitrary;
  int64_t width = 0;    // kBand, as FromBand takes it
  bool causal = false;  // kBand
  int64_t block = 0;    // kBlocks: 128, 64 or 32, the largest that fits

  std::string Name() const;  // "causal band 256", "128x128 blocks"
};

// A full square counts as a band; a pattern without nonzeros as arbitrary. O(nnz). REQUIRES: Validate() is OK.
AttentionStructure DetectAttentionStructure(const AttentionPattern& pattern);

// The order of bundles of `bundle` neighbouring rows by falling nonzeros, stable. With bundles of one it is Sputnik's
// row swizzle (section 5.2); neighbouring queries share keys, and rows of a bundle find them in the first cache.
std::vector<uint32_t> BundleSwizzle(const AttentionPattern& pattern, int64_t bundle);

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_FORMAT_ATTENTION_PATTERN_H_

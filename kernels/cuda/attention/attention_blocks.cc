#include <algorithm>
#include <numeric>
#include <vector>

#include "kernels/base/integers.h"
#include "kernels/cuda/attention/block_attention.h"

namespace swizzle::cuda {
namespace {

constexpr int kSize = AttentionBlocks::kSize;

struct Mask {
  uint32_t words[4];
};
struct QueryMasks {
  Mask of_query[kSize] = {};
  int64_t count = 0;
};

// Calls visit(first query, end of queries) for each tile.
template <typename Visit>
void ForEachTile(const AttentionPattern& pattern, const Visit& visit) {
  for (int64_t first = 0; first < pattern.tokens; first += kSize) {
    visit(first, std::min<int64_t>(first + kSize, pattern.tokens));
  }
}

}  // namespace

bool AttentionBlocks::Fit(const AttentionPattern& pattern) {
  constexpr int64_t kMost = 8;
  std::vector<int64_t> last_tile(CeilDiv(pattern.tokens, kSize), -1);
  int64_t blocks = 0;
  ForEachTile(pattern, [&](int64_t first, int64_t end) {
    for (int64_t query = first; query < end; ++query) {
      for (const uint32_t key : pattern.Keys(query)) {
        int64_t& last = last_tile[key / kSize];
        if (last == first) continue;
        last = first;
        ++blocks;
      }
    }
  });
  return blocks * kSize * kSize <= kMost * pattern.nnz();
}

StatusOr<AttentionBlocks> AttentionBlocks::Make(const AttentionPattern& pattern) {
  std::vector<int32_t> offsets = {0};
  std::vector<Block> blocks;
  std::vector<QueryMasks> masks;
  std::vector<int32_t> place_of(CeilDiv(pattern.tokens, kSize), -1);  // of a block of keys, in `masks`
  ForEachTile(pattern, [&](int64_t first, int64_t end) {
    std::vector<int32_t> touched;
    const size_t before = masks.size();
    for (int64_t query = first; query < end; ++query) {
      for (const uint32_t key : pattern.Keys(query)) {
        int32_t& place = place_of[key / kSize];
        if (place < 0) {
          place = static_cast<int32_t>(masks.size());
          masks.emplace_back();
          touched.push_back(static_cast<int32_t>(key / kSize));
        }
        masks[place].of_query[query - first].words[key % kSize / 32] |= 1u << (key % 32);
        ++masks[place].count;
      }
    }
    std::ranges::sort(touched);
    size_t kept = before;  // masks of full blocks are dropped; blocks stay in the order of their keys
    std::vector<QueryMasks> partial;
    for (const int32_t keys : touched) {
      const QueryMasks& mask = masks[place_of[keys]];
      const bool full = mask.count == (end - first) * kSize;
      blocks.push_back({keys, full ? kFull : static_cast<int32_t>(kept++)});
      if (!full) partial.push_back(mask);
      place_of[keys] = -1;
    }
    masks.resize(before);
    masks.insert(masks.end(), partial.begin(), partial.end());
    offsets.push_back(static_cast<int32_t>(blocks.size()));
  });
  std::vector<int32_t> order(offsets.size() - 1);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(
      order, [&](int32_t a, int32_t b) { return offsets[a + 1] - offsets[a] > offsets[b + 1] - offsets[b]; });
  std::vector<uint4> words;
  words.reserve(masks.size() * kSize);
  for (const QueryMasks& mask : masks) {
    for (const Mask& query : mask.of_query) {
      words.push_back(uint4{query.words[0], query.words[1], query.words[2], query.words[3]});
    }
  }
  AttentionBlocks made;
  made.tokens_ = pattern.tokens;
  SWIZZLE_ASSIGN_OR_RETURN(made.offsets_, DeviceArray<int32_t>::Upload(offsets));
  SWIZZLE_ASSIGN_OR_RETURN(made.order_, DeviceArray<int32_t>::Upload(order));
  SWIZZLE_ASSIGN_OR_RETURN(made.blocks_, DeviceArray<Block>::Upload(blocks));
  SWIZZLE_ASSIGN_OR_RETURN(made.masks_, DeviceArray<uint4>::Upload(words));
  return made;
}

}  // namespace swizzle::cuda

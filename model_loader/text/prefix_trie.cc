#include "model_loader/text/prefix_trie.h"

#include <algorithm>
#include <utility>

namespace swizzle::text {

PrefixTrie::PrefixTrie(std::vector<Entry> entries) {
  std::ranges::stable_sort(entries, {}, &Entry::key);
  // The entries that begin with what leads to a node, which is `depth` bytes long.
  struct EntryRange {
    size_t begin, end, depth;
  };
  std::vector<EntryRange> ranges = {{0, entries.size(), 0}};
  labels_.push_back(0);
  for (size_t node = 0; node < ranges.size(); ++node) {
    auto [begin, end, depth] = ranges[node];
    values_.push_back(kNone);
    for (; begin < end && entries[begin].key.size() == depth; ++begin) values_.back() = entries[begin].value;
    first_.push_back(static_cast<uint32_t>(ranges.size()));
    while (begin < end) {
      const char label = entries[begin].key[depth];
      size_t next = begin + 1;
      while (next < end && entries[next].key[depth] == label) ++next;
      if (node == kRoot) root_[static_cast<uint8_t>(label)] = static_cast<uint32_t>(ranges.size());
      labels_.push_back(static_cast<uint8_t>(label));
      ranges.push_back({begin, next, depth + 1});
      begin = next;
    }
  }
  first_.push_back(static_cast<uint32_t>(ranges.size()));
}

uint32_t PrefixTrie::Descend(uint32_t from, std::string_view text) const {
  for (const char byte : text) {
    from = Child(from, byte);
    if (from == kNoNode) return kNoNode;
  }
  return from;
}

int32_t PrefixTrie::Find(std::string_view text) const {
  const uint32_t node = Descend(kRoot, text);
  return node == kNoNode && !text.empty() ? kNone : ValueOf(node);
}

PrefixTrie::Match PrefixTrie::Longest(uint32_t from, std::string_view text) const {
  Match longest;
  for (size_t i = 0; i < text.size(); ++i) {
    from = Child(from, text[i]);
    if (from == kNoNode) break;
    if (values_[from] != kNone) longest = {i + 1, values_[from]};
  }
  return longest;
}

}  // namespace swizzle::text

// Finds the keys that a text begins with. Immutable; const members are thread-safe.
//
// Its nodes lie in the order of a breadth-first walk, so that the children of each are neighbours, by ascending byte: a
// node is the number of its first child, the byte that leads to it, and its value. Of the keys "a", "ab", "c":
//   node   0 ""   1 "a"   2 "c"   3 "ab"
//   first  1      3       4       4        (children of n: first[n] up to first[n + 1])
#ifndef SWIZZLE_MODEL_LOADER_TEXT_PREFIX_TRIE_H_
#define SWIZZLE_MODEL_LOADER_TEXT_PREFIX_TRIE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace swizzle::text {

class PrefixTrie {
 public:
  struct Entry {
    std::string key;
    int32_t value;  // not negative
  };
  static constexpr int32_t kNone = -1;
  static constexpr uint32_t kRoot = 0, kNoNode = 0;  // no node has the root for a child

  // Of an empty set.
  PrefixTrie() : PrefixTrie(std::vector<Entry>()) {}
  // Of a key that stands twice the last value counts.
  explicit PrefixTrie(std::vector<Entry> entries);

  // The node that `byte` leads to, or kNoNode.
  uint32_t Child(uint32_t node, char byte) const {
    const auto label = static_cast<uint8_t>(byte);
    if (node == kRoot) return root_[label];
    uint32_t low = first_[node], high = first_[node + 1];
    while (high - low > kFewChildren) {
      const uint32_t middle = low + (high - low) / 2;
      (labels_[middle] <= label ? low : high) = middle;
    }
    for (; low < high; ++low) {
      if (labels_[low] == label) return low;
    }
    return kNoNode;
  }
  // The value of the key that ends there, or kNone.
  int32_t ValueOf(uint32_t node) const { return values_[node]; }

  // The node that `text` leads to from another, or kNoNode if there is none; where `text` is empty, `from`.
  uint32_t Descend(uint32_t from, std::string_view text) const;
  // The value of the whole of `text`, or kNone.
  int32_t Find(std::string_view text) const;

  // The longest key, of one byte or more, that leads from `from` along `text`.
  struct Match {
    size_t bytes = 0;
    int32_t value = kNone;
  };
  Match Longest(uint32_t from, std::string_view text) const;

  // Calls found(bytes, value) for every key that `text` begins with, shortest first.
  template <typename Found>
  void ForEachPrefix(std::string_view text, Found&& found) const {
    uint32_t node = kRoot;
    for (size_t i = 0; i < text.size(); ++i) {
      node = Child(node, text[i]);
      if (node == kNoNode) return;
      if (values_[node] != kNone) found(i + 1, values_[node]);
    }
  }

 private:
  static constexpr uint32_t kFewChildren = 8;

  std::array<uint32_t, 256> root_{};
  std::vector<uint32_t> first_;  // one more than nodes
  std::vector<uint8_t> labels_;
  std::vector<int32_t> values_;
};

}  // namespace swizzle::text

#endif  // SWIZZLE_MODEL_LOADER_TEXT_PREFIX_TRIE_H_

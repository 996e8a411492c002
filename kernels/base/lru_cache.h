// What is remembered by key, within a bound of bytes: what was asked for longest ago goes first. Looking up is hashing.
// Single-owner: whoever shares one holds a lock. Values stay where they are until they go.
#ifndef SWIZZLE_KERNELS_BASE_LRU_CACHE_H_
#define SWIZZLE_KERNELS_BASE_LRU_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <list>
#include <unordered_map>
#include <utility>

#include "absl/hash/hash.h"

namespace swizzle {

template <typename Key, typename Value>
class LruCache {
 public:
  // The bytes that all values but the one that was kept last may take together.
  explicit LruCache(int64_t most_bytes) : most_bytes_(most_bytes) {}

  // Null where there is none; else the value counts as asked for now.
  Value* Find(const Key& key) {
    const auto found = entries_.find(key);
    if (found == entries_.end()) return nullptr;
    order_.splice(order_.begin(), order_, found->second.place);
    return &found->second.value;
  }

  // In the place of the key's value, if there is one. `bytes`: what it takes, its key included. Others go as the bound
  // asks.
  Value& Keep(const Key& key, Value value, int64_t bytes) {
    const auto [entry, is_new] = entries_.try_emplace(key);
    Entry& kept = entry->second;
    if (is_new) {
      order_.push_front(&entry->first);
      kept.place = order_.begin();
    } else {
      order_.splice(order_.begin(), order_, kept.place);
    }
    bytes_ += bytes - std::exchange(kept.bytes, bytes);
    kept.value = std::move(value);
    while (bytes_ > most_bytes_ && order_.size() > 1) Drop(std::prev(order_.end()));
    return kept.value;
  }

  // Forgets those of whose keys this is true. Looks at all.
  template <typename IsGone>
  void ForgetIf(const IsGone& is_gone) {
    for (auto place = order_.begin(); place != order_.end();) {
      const auto next = std::next(place);
      if (is_gone(**place)) Drop(place);
      place = next;
    }
  }

  size_t size() const { return entries_.size(); }
  int64_t bytes() const { return bytes_; }

 private:
  using Order = std::list<const Key*>;
  struct Entry {
    Value value = {};
    int64_t bytes = 0;
    typename Order::iterator place = {};
  };

  void Drop(typename Order::iterator place) {
    const auto entry = entries_.find(**place);
    order_.erase(place);
    bytes_ -= entry->second.bytes;
    entries_.erase(entry);
  }

  const int64_t most_bytes_;
  int64_t bytes_ = 0;
  Order order_;  // of entries_, what was asked for last first
  std::unordered_map<Key, Entry, absl::Hash<Key>> entries_;
};

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_BASE_LRU_CACHE_H_

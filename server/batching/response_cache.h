// Answers to requests that were asked before, within a bound of bytes for the whole server: what was asked for longest
// ago goes first.
//
// An answer is found by a hash of the request's inputs, and given only where the shapes and bytes of all of them are
// those that it was kept for. So no client can make another get a wrong answer, whatever it knows of the hash. That
// takes the memory of the inputs beside the answers', and as long as reading them twice, a tenth of what a
// cryptographic hash would take. Thread-safe; what is compared and copied is so without the lock.
#ifndef SWIZZLE_SERVER_BATCHING_RESPONSE_CACHE_H_
#define SWIZZLE_SERVER_BATCHING_RESPONSE_CACHE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "kernels/base/lru_cache.h"
#include "kernels/base/mutex.h"
#include "kernels/base/tensor.h"
#include "server/model/request.h"

namespace swizzle {

class ResponseCache {
 public:
  // A version of a model, from its load on: no other has its answers.
  using Owner = uint64_t;

  explicit ResponseCache(int64_t most_bytes) : most_bytes_(most_bytes), answers_(most_bytes) {}

  Owner NewOwner();

  // What requests are found by.
  static uint64_t HashOf(std::span<const TensorView> inputs);

  // The answer that was kept for these inputs; its times are zero. REQUIRES: `hash` is HashOf(inputs).
  std::optional<Result> Find(Owner owner, uint64_t hash, std::span<const TensorView> inputs);
  // Copies both. What is larger than the bound is not kept.
  void Keep(Owner owner, uint64_t hash, std::span<const TensorView> inputs, const Result& result);
  void Forget(Owner owner);

  int64_t bytes() const;
  int64_t limit() const { return most_bytes_; }

 private:
  struct Tensors {
    std::vector<std::string> bytes;
    std::vector<Shape> shapes;
  };
  struct Answer {
    Tensors inputs, outputs;
    int64_t batch_rows = 0;
  };
  using Key = std::pair<Owner, uint64_t>;

  static bool IsFor(const Answer& answer, std::span<const TensorView> inputs);

  const int64_t most_bytes_;
  mutable Mutex mutex_;
  Owner last_owner_ ABSL_GUARDED_BY(mutex_) = 0;
  LruCache<Key, std::shared_ptr<const Answer>> answers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_BATCHING_RESPONSE_CACHE_H_

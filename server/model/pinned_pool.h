// Parts of one piece of host memory that a GPU reads by itself, for the inputs of requests.
#ifndef SWIZZLE_SERVER_MODEL_PINNED_POOL_H_
#define SWIZZLE_SERVER_MODEL_PINNED_POOL_H_

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include "kernels/backend/backend.h"
#include "kernels/base/mutex.h"
#include "server/model/model.h"

namespace swizzle {

// Thread-safe. What was taken keeps the memory alive, beyond the pool if need be.
class PinnedPool : public std::enable_shared_from_this<PinnedPool> {
 public:
  static constexpr size_t kMostRows = 64, kMostBytes = size_t{64} << 20;  // of a model's inputs, see PoolBytes

  explicit PinnedPool(std::unique_ptr<Buffer> memory);

  // So many bytes, aligned to kBufferAlignment and the caller's alone until the last copy of the pointer goes; null if
  // no gap is as large. Their values are whatever was there before.
  std::shared_ptr<std::byte> Take(size_t bytes);

  // Whether all of these bytes lie in the pool's memory.
  bool Holds(std::span<const std::byte> bytes) const;

  // Copies what the views show, and lets them show the copies; returns what keeps these. Null, and the views are as
  // they were, where there is no room for all.
  std::shared_ptr<const void> Stage(std::span<TensorView> inputs);

 private:
  void GiveBack(size_t offset, size_t bytes);

  const std::unique_ptr<Buffer> memory_;
  Mutex mutex_;
  std::map<size_t, size_t> gaps_ ABSL_GUARDED_BY(mutex_);  // from offset to end; no two touch
};

// How large a pool should be for a model's inputs that wait or are computed; more go the longer way. Nothing where the
// specification does not say how large the inputs are.
std::optional<size_t> PoolBytes(const ModelSpec& spec);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_MODEL_PINNED_POOL_H_

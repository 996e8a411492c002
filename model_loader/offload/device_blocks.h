// A device's memory as blocks that runs take one after another (interpreter/memory/kept_blocks.h).
#ifndef SWIZZLE_MODEL_LOADER_OFFLOAD_DEVICE_BLOCKS_H_
#define SWIZZLE_MODEL_LOADER_OFFLOAD_DEVICE_BLOCKS_H_

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "kernels/backend/backend.h"
#include "kernels/base/mutex.h"
#include "model_loader/interpreter/memory/kept_blocks.h"

namespace swizzle::offload {

// Thread-safe. While it is frozen, it has no memory: nothing may be allocated while work is recorded.
class DeviceBlocks final : public interpreter::BlockSource {
 public:
  explicit DeviceBlocks(DeviceBackend& backend) : backend_(backend) {}

  std::byte* Allocate(size_t bytes) override {
    if (frozen_) return nullptr;
    StatusOr<std::unique_ptr<Buffer>> buffer = backend_.Allocate(bytes);
    if (!buffer.ok()) return nullptr;
    std::byte* const data = (*buffer)->data();
    held_bytes_ += bytes;
    MutexLock lock(mutex_);
    buffers_[data] = *std::move(buffer);
    return data;
  }
  void Free(std::byte* data) override {
    MutexLock lock(mutex_);
    const auto found = buffers_.find(data);
    held_bytes_ -= found->second->bytes();
    buffers_.erase(found);
  }

  void Freeze(bool frozen) { frozen_ = frozen; }
  size_t held_bytes() const { return held_bytes_; }

 private:
  DeviceBackend& backend_;
  std::atomic<bool> frozen_ = false;
  std::atomic<size_t> held_bytes_ = 0;
  Mutex mutex_;
  std::map<std::byte*, std::unique_ptr<Buffer>> buffers_ ABSL_GUARDED_BY(mutex_);
};

// A store that gives nothing back unless it is asked to: what is queued may still use it, and recordings do. Batches of
// several sizes take the same blocks, but those far smaller.
struct DeviceStore {
  static constexpr double kLarger = 4;

  explicit DeviceStore(DeviceBackend& backend) {
    auto source = std::make_unique<DeviceBlocks>(backend);
    blocks = source.get();
    store = std::make_shared<interpreter::KeptBlocks>(std::move(source),
                                                      interpreter::KeptBlocks::Options{.larger = kLarger});
  }

  std::shared_ptr<interpreter::BlockStore> store;
  DeviceBlocks* blocks;  // the store's
};

}  // namespace swizzle::offload

#endif  // SWIZZLE_MODEL_LOADER_OFFLOAD_DEVICE_BLOCKS_H_

// The host's side of a plan on a device with memory of its own: where requests' inputs and outputs wait to be copied,
// and how batches are rounded to sizes that runs are recorded for.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_RUN_STAGING_H_
#define SWIZZLE_MODEL_LOADER_PLAN_RUN_STAGING_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "kernels/backend/backend.h"
#include "kernels/base/sequences.h"
#include "model_loader/network/network.h"

namespace swizzle {

// The next size that runs are recorded for: every one up to 16, then sizes at most 1/8 apart; at most `most`.
int64_t RoundedCount(int64_t count, int64_t most);

// Rows, of sequences to powers of two, which are few: what is computed for each row is little beside its tokens.
BatchSize RoundedSize(BatchSize size, BatchSize most, bool sequences);

// Offsets in one allocation of host memory, in bytes, for the largest batch. Immutable.
class StagingLayout {
 public:
  StagingLayout() = default;
  StagingLayout(const Network& network, BatchSize most);

  size_t bytes() const { return bytes_; }
  size_t input(int i) const { return inputs_[i]; }
  size_t output(int i) const { return outputs_[i]; }

 private:
  std::vector<size_t> inputs_, outputs_;
  size_t bytes_ = 0;
};

// What Sequences says of one batch, in host memory and, after a copy, in the device's. Single-owner.
class StagedSequences {
 public:
  // What each of the two buffers has to hold.
  static size_t BytesFor(BatchSize most);
  StagedSequences(std::unique_ptr<Buffer> host, std::unique_ptr<Buffer> device)
      : host_(std::move(host)), device_(std::move(device)) {}

  // Takes over `sequences`, of `rounded` size or less. Spare sequences are empty, spare tokens without owner.
  void Set(const Sequences& sequences, BatchSize rounded);
  void QueueCopy(Stream& stream) const;
  // In the device's memory, of the size that was rounded to.
  const Sequences& on_device() const { return on_device_; }

 private:
  // Four arrays one after the other: begins, positions, owners, key bias.
  struct Part {
    size_t offset = 0, bytes = 0;
  };

  template <typename T>
  std::span<T> OnHost(const Part& part) {
    return {reinterpret_cast<T*>(host_->data() + part.offset), part.bytes / sizeof(T)};
  }
  template <typename T>
  std::span<const T> OnDevice(const Part& part) {
    return {reinterpret_cast<const T*>(device_->data() + part.offset), part.bytes / sizeof(T)};
  }

  std::unique_ptr<Buffer> host_, device_;
  size_t used_ = 0;
  Sequences on_device_;
};

// What a run is recorded for: it has the same launches for equal keys.
struct RecordingKey {
  int64_t rows = 0, tokens = 0;
  bool key_bias = false;
  bool copies_inputs = true;                              // rather than the caller
  auto operator<=>(const RecordingKey&) const = default;  // NOLINT(modernize-use-nullptr): the 0 is the compiler's
};

// Runs that were recorded, for one executor; the oldest make room.
class Recordings {
 public:
  // Null if none was added, or one that could not be made.
  Recording* Find(const RecordingKey& key) const;
  bool Contains(const RecordingKey& key) const { return recordings_.contains(key); }
  // REQUIRES: the key is not contained. recording: null says that it cannot be made, so that nobody tries again.
  void Add(const RecordingKey& key, std::unique_ptr<Recording> recording);

 private:
  static constexpr size_t kMost = 128;  // of a plan for 16,384 tokens, a few MiB each at most
  std::map<RecordingKey, std::unique_ptr<Recording>> recordings_;
  std::vector<RecordingKey> order_;
};

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_RUN_STAGING_H_

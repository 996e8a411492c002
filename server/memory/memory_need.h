// Whether a model's largest batch has room in memory. A model too large would be ready, and take every model with it at
// its first full batch. Functions and value types only; bytes.
#ifndef SWIZZLE_SERVER_MEMORY_MEMORY_NEED_H_
#define SWIZZLE_SERVER_MEMORY_MEMORY_NEED_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/base/status.h"

namespace swizzle {

// The memory of a process or a device, and what of it is spoken for besides what is resident.
struct MemoryRoom {
  int64_t limit = 0;             // 0: none is known, and everything has room
  int64_t requests = 0;          // that clients may make the server hold
  int64_t promised = 0;          // to executors of models loaded before, whether or not they have taken it
  int64_t spare = 0;             // the part of that for one more executor, of whichever model is tuned
  std::string_view device = {};  // whose memory it is; empty: the process's
  std::string_view flag = {};    // by which it is a part of that; empty: it is the whole

  // What is left, `resident` bytes being taken; below zero where more was promised than there is.
  int64_t Left(int64_t resident) const { return limit - resident - promised - requests; }
};

struct MemoryNeed {
  int64_t resident = 0;   // of this process now, or of all that use the device; the model's weights included
  int64_t executors = 1;  // of this model
  int64_t stream = 0;     // of one of them, whatever the batch
  int64_t arena = 0;      // of one of them, at the largest batch
  int64_t row = 0;        // of inputs and outputs, for one row of a batch
  bool tuned = false;     // an executor more runs while kernels are measured
  int64_t largest = 1;    // rows of the largest batch, or tokens, which then are what is called rows here
  int64_t least = 1;      // that it may be lowered to; `largest` where it is fixed
};

struct MemoryFit {
  int64_t largest = 0;    // that has room
  int64_t promised = 0;   // to the model's executors, and what `spare` grows by
  int64_t spare = 0;      // of all models together
  std::string why = {};   // the largest batch was lowered; empty where it was not
  int64_t executors = 0;  // the part of `promised` that is theirs
  int64_t own_spare = 0;  // what the model alone would have `spare` be
};

// RESOURCE_EXHAUSTED, saying how much is missing, if not even a batch of `least` rows has room. Fewer rows are taken to
// need a proportional part of the arena.
StatusOr<MemoryFit> FitToMemory(const MemoryNeed& need, const MemoryRoom& room);

// RESOURCE_EXHAUSTED if the model's `what`, of so many bytes, has no room, before it is taken.
Status CheckRoomFor(std::string_view what, int64_t bytes, int64_t resident, const MemoryRoom& room);

}  // namespace swizzle

#endif  // SWIZZLE_SERVER_MEMORY_MEMORY_NEED_H_

// What a server counts of a model, as plain values: sums since the model was loaded, so that what happened between two
// looks is their difference. No protobuf type shows.
#ifndef SWIZZLE_CLIENT_MODEL_STATISTICS_H_
#define SWIZZLE_CLIENT_MODEL_STATISTICS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace swizzle::client {

// How often something happened, and the time that it took in all.
struct TimedCount {
  int64_t count = 0;
  absl::Duration total;

  // Zero where nothing happened.
  absl::Duration Mean() const { return count > 0 ? total / count : absl::ZeroDuration(); }
};

struct ModelStatistics {
  std::string name;
  std::string version;
  absl::Time last_inference = absl::InfinitePast();  // InfinitePast: none yet
  int64_t rows = 0;                                  // computed, a batch of n counting n
  int64_t batches = 0;
  TimedCount success, fail;  // whole requests
  // Stages of successful requests; each counts the whole time of the batch that it ran in.
  TimedCount queue, input, compute, output;
  TimedCount cache_hit, cache_miss;

  struct BatchSize {
    int64_t rows = 0;
    TimedCount input, compute, output;
  };
  std::vector<BatchSize> batch_sizes;

  struct Memory {
    std::string type;  // CPU or GPU
    int64_t id = 0;
    int64_t bytes = 0;
  };
  std::vector<Memory> memory;
};

// What happened from `before` to `after`; all of `after` where it is not the same model's later count, but one that
// began anew. Batch sizes that had no batch are left out.
ModelStatistics Since(const ModelStatistics& before, const ModelStatistics& after);

}  // namespace swizzle::client

#endif  // SWIZZLE_CLIENT_MODEL_STATISTICS_H_

// Which batch sizes kernels are measured at, and which batches run on what was chosen for each.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_MEASURED_SIZES_H_
#define SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_MEASURED_SIZES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model_loader/network/network.h"

namespace swizzle {

// Rows, or tokens where there are sequences, rising; the last is at most `max`. `wanted`: see PlanOptions. On a device,
// where dense kernels overtake sparse ones as batches grow, each power of two is among them, from the least on: the
// kernel that is fastest for 64 tokens and for 512 may not be for 128. Where attention goes by places, tokens are those
// of whole sequences.
std::vector<int64_t> MeasuredCounts(const Network& network, BatchSize max, bool device,
                                    std::span<const int64_t> wanted);

// Of so many tokens each: rows of the length that attention is timed with, unless the network has one of its own.
std::vector<BatchSize> MeasuredSizes(const Network& network, BatchSize max, std::span<const int64_t> counts);

// The largest batch that counts as one of each measured size: half way to the next, as factors go, and a size that
// arenas are laid out for.
std::vector<int64_t> BucketLimits(std::span<const int64_t> measured, int64_t most);

// Two measured sizes that tell of one between them, by place.
struct Neighbours {
  size_t below = 0, above = 0;
};

// Those of the size at `place` of so many; none where it is measured before it is known what is between: of more than
// four sizes every third, and the last; of fewer all.
std::optional<Neighbours> NeighboursOf(size_t place, size_t sizes);

// The places of so many sizes, those that have neighbours behind all others.
std::vector<size_t> MeasuringOrder(size_t sizes);

// What a size takes between two others, where times grow by a power of the number of tokens.
double TimeBetween(BatchSize below, double time_below, BatchSize above, double time_above, BatchSize size);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_MEASURED_SIZES_H_

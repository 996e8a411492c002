// Where buffers with known lifetimes lie in one arena, so that buffers alive at the same time never overlap.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_RUN_ARENA_H_
#define SWIZZLE_MODEL_LOADER_PLAN_RUN_ARENA_H_

#include <cstddef>
#include <span>
#include <vector>

namespace swizzle {

// A buffer that is alive from step `first` to step `last`, both included.
struct Lifetime {
  size_t bytes = 0;
  int first = 0;
  int last = 0;
};

// Bytes, a multiple of kBufferAlignment: rows that are whole lines of a GPU's second cache (layout.h) begin with one
// where the arena does.
inline constexpr size_t kSlotAlignment = 128;

struct ArenaLayout {
  std::vector<size_t> offsets;  // bytes, multiples of kSlotAlignment, as is `bytes`; one per lifetime
  size_t bytes = 0;
};

// Greedy by size, each buffer at the lowest gap that fits (Pisarchyk and Lee, "Efficient Memory Management for Deep
// Neural Net Inference", 2020, section 5.2). Pure.
ArenaLayout PlaceBuffers(std::span<const Lifetime> lifetimes);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_RUN_ARENA_H_

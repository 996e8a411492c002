// Where buffers with known lifetimes lie in one arena, so that buffers alive at the same time never overlap.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_RUN_ARENA_H_
#define SWIZZLE_MODEL_LOADER_PLAN_RUN_ARENA_H_

#include <cstddef>
#include <cstdint>
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

// How buffers lie to each other.
enum class ArenaOrder : uint8_t {
  kPacked,  // as low as they can
  kHalves,  // around few middles, if that takes little more memory; else packed
};

// Packed: greedy by size, each buffer at the lowest gap that fits (Pisarchyk and Lee, "Efficient Memory Management for
// Deep Neural Net Inference", 2020, section 5.2).
//
// In halves: buffers that are alive at different times lie around the same middle. The threads of a pool take the same
// part of every loop, so that the lower half of them writes the lower half of every buffer: then no line that one of
// two threads wrote is written by the other later, when it would have to come out of the other's cache. Where the two
// share no cache, two threads of a packed MobileNetV1 are as slow as one (kernels/cpu/PERFORMANCE.md). Pure.
ArenaLayout PlaceBuffers(std::span<const Lifetime> lifetimes, ArenaOrder order = ArenaOrder::kPacked);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_RUN_ARENA_H_

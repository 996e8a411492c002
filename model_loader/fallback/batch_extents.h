// Sizes of dimensions, and whole numbers that a graph computes of them, as far as they are known for every size of the
// batch. What batch_proof.h calls a batch: requests whose inputs have the same dimensions but for the first.
#ifndef SWIZZLE_MODEL_LOADER_FALLBACK_BATCH_EXTENTS_H_
#define SWIZZLE_MODEL_LOADER_FALLBACK_BATCH_EXTENTS_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "kernels/base/tensor.h"

namespace swizzle::fallback {

struct Extent {
  static constexpr int64_t kAny = std::numeric_limits<int64_t>::min();

  int64_t number = kAny;  // kAny: not known
  bool of_batch = false;  // so many times the rows of the batch; else it is the same for every batch
  int32_t symbol = 0;     // of any: those of the same, which is not 0, are equal

  static Extent Of(int64_t number) { return {number, false}; }
  static Extent Batch(int64_t times = 1) { return {times, true}; }
  bool IsKnown() const { return number != kAny; }
  bool IsNumber() const { return !of_batch && IsKnown(); }
  bool Is(int64_t wanted) const { return !of_batch && number == wanted; }
  // Whether both are certainly equal.
  bool Equals(const Extent& other) const { return *this == other && (IsKnown() || symbol != 0); }
  bool operator==(const Extent&) const = default;
};
using Extents = std::vector<Extent>;

// Numbers; -1 is any.
Extents ExtentsOf(const Shape& shape);
// Numbers, whatever they are.
Extents NumbersOf(const std::vector<int64_t>& numbers);

// The place of the one that goes by the batch; -1: none does. REQUIRES: no more than one does.
int64_t BatchAxis(const Extents& extents);
bool GoByBatch(const Extents& extents);
bool GoesByBatchOnceAtMost(const Extents& extents);

// How many elements dimensions from `first` to before `last` have together; nothing where one is not a number, or is
// below 0, which no run gets past.
std::optional<int64_t> CountOf(const Extents& extents, size_t first, size_t last);

// The shape that both broadcast to, aligned at their ends. Nothing where one's elements could meet several requests of
// the other, or a dimension that is the same for every batch could be as long as one batch.
std::optional<Extents> Broadcast(const Extents& a, const Extents& b);

// What an operator of ONNX's standard makes of two numbers, three for Where. Nothing where it is neither the same for
// every batch nor a multiple of it, or the operator is not known.
std::optional<Extent> Computed(std::string_view op, const Extent& a, const Extent& b);
std::optional<Extent> Chosen(const Extent& condition, const Extent& a, const Extent& b);

}  // namespace swizzle::fallback

#endif  // SWIZZLE_MODEL_LOADER_FALLBACK_BATCH_EXTENTS_H_

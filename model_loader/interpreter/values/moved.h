// An array whose elements still lie in others: what Slice, Concat, Transpose and their kin make, until somebody
// computes with it (settle.h). Several of them after one another then copy once, or not at all.
//
// Such an array is cut into boxes, each of which is in one other array, with a stride along each dimension. Its
// dimensions may be split into several, of which boxes are made, so that merging dimensions costs nothing. Pure
// functions on value types; what they take must be valid, which their callers see to. Single-owner, as the run is in
// which such an array stays: what leaves one is made.
#ifndef SWIZZLE_MODEL_LOADER_INTERPRETER_VALUES_MOVED_H_
#define SWIZZLE_MODEL_LOADER_INTERPRETER_VALUES_MOVED_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model_loader/interpreter/values/array.h"
#include "model_loader/semantics/slices.h"

namespace swizzle::interpreter {

struct Moved {
  struct Box {
    Shape start, extent;  // along dims; no extent is 0
    size_t source = 0;    // of `sources`
    int64_t offset = 0;   // of its first element there
    Shape strides = {};   // there, along dims, in elements
  };

  Shape dims;                  // those of the array, from the first to the last, each as a product of some of these
  std::vector<size_t> splits;  // by dimension of the array: of how many; none where it is 1
  std::vector<Box> boxes;      // they cover the array, and do not overlap
  std::vector<Array> sources;  // made arrays of one type, of which boxes lie in each

  // The array itself, once somebody needed it made (settle.h): whoever shares this has it, too.
  mutable std::optional<Array> made = {};

  // Of more boxes, to move again and to copy costs more than a copy in between.
  static constexpr size_t kMostBoxes = 128;

  // How many dimensions are more than 1.
  size_t rank() const;
};

// REQUIRES: the array has elements, which are numbers.
Moved MovedOf(const Array& array);
// How many boxes that has.
size_t BoxesOf(const Array& array);

// Nothing where boxes would have to be cut too often, or where dimensions don't divide each other; of a made array,
// they do. REQUIRES: as many elements.
std::optional<Moved> ReshapedMoved(Moved moved, const Shape& shape);

// REQUIRES: a permutation.
Moved TransposedMoved(const Moved& moved, std::span<const int64_t> order);

// A range of each dimension. Nothing where boxes would have to be cut too often. REQUIRES: no count is 0.
std::optional<Moved> SlicedMoved(Moved moved, std::span<const SliceRange> ranges);

// With `before` and `after` of each dimension more around it, all of them `filler`, an array of one element. Nothing
// where boxes would have to be cut too often. REQUIRES: no amount is negative.
std::optional<Moved> PaddedMoved(Moved moved, std::span<const int64_t> before, std::span<const int64_t> after,
                                 const Array& filler);

// Repeated along dimensions of 1 and in front. Nothing where boxes would have to be cut too often.
// REQUIRES: it broadcasts to `shape`, which has elements.
std::optional<Moved> BroadcastMoved(Moved moved, const Shape& shape);

// One after another along a dimension. Nothing where there would be too many boxes. REQUIRES: at least one, all of the
// same dimensions but for this one.
std::optional<Moved> ConcatenatedMoved(std::vector<Moved> parts, size_t axis);

}  // namespace swizzle::interpreter

#endif  // SWIZZLE_MODEL_LOADER_INTERPRETER_VALUES_MOVED_H_

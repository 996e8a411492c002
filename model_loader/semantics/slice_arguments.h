// What Slice is told: from its inputs or, below opset 10, from its attributes.
#ifndef SWIZZLE_MODEL_LOADER_SEMANTICS_SLICE_ARGUMENTS_H_
#define SWIZZLE_MODEL_LOADER_SEMANTICS_SLICE_ARGUMENTS_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "model_loader/graph/graph.h"
#include "model_loader/semantics/given_axes.h"

namespace swizzle {

// For each axis that is sliced. A place is a number, or what stands for one.
template <typename Place>
struct SliceArguments {
  std::vector<Place> starts, ends;
  std::vector<int64_t> axes;  // counted from the front, none twice
  std::vector<int64_t> steps;
};

// Axes and steps as given, or the first axes and steps of 1 where they are empty. INVALID_ARGUMENT, not naming the
// node, unless there is one of each for every start, and axes are among `rank` and given once.
Status CompleteSlice(size_t starts, size_t ends, int64_t rank, std::vector<int64_t>& axes, std::vector<int64_t>& steps);

// A source has the type Place and, of the node's inputs,
//   Has(i)             whether it is there
//   Places(i, what)    its elements, or an error
//   Integers(i, what)  the same as numbers
//   Named(status)      the error as its user says it, with the node's name if nobody adds that later
template <typename Source>
StatusOr<SliceArguments<typename Source::Place>> SliceArgumentsOf(const Node& node, int64_t rank,
                                                                  const Source& source) {
  using Place = typename Source::Place;
  SliceArguments<Place> slice;
  if (source.Has(1) && source.Has(2)) {
    SWIZZLE_ASSIGN_OR_RETURN(slice.starts, source.Places(1, "starts"));
    SWIZZLE_ASSIGN_OR_RETURN(slice.ends, source.Places(2, "ends"));
  } else if (!source.Has(1) && !source.Has(2) && node.attributes.contains("starts")) {
    SWIZZLE_ASSIGN_OR_RETURN(const std::vector<int64_t> starts, IntsAttribute(node, "starts", {}));
    SWIZZLE_ASSIGN_OR_RETURN(const std::vector<int64_t> ends, IntsAttribute(node, "ends", {}));
    for (const int64_t start : starts) slice.starts.push_back(Place{start});
    for (const int64_t end : ends) slice.ends.push_back(Place{end});
  } else {
    return source.Named(InvalidArgument("it lacks its starts or ends"));
  }
  SWIZZLE_ASSIGN_OR_RETURN(auto axes, GivenAxes(node, source.Has(3), [&] { return source.Integers(3, "axes"); }));
  if (axes) slice.axes = *std::move(axes);
  if (source.Has(4)) {
    SWIZZLE_ASSIGN_OR_RETURN(slice.steps, source.Integers(4, "steps"));
  }
  const Status complete = CompleteSlice(slice.starts.size(), slice.ends.size(), rank, slice.axes, slice.steps);
  if (!complete.ok()) return source.Named(complete);
  return slice;
}

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SEMANTICS_SLICE_ARGUMENTS_H_

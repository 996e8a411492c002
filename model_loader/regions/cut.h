// Where a program is cut into regions: as few as can be, each with something that kernels are much faster at.
//
// A node is of a form if passes and lowering take it alone, as a region of that form: what regions may hold is written
// down nowhere else. Each node has a level, which counts the changes of form on the longest way to it; nodes of one
// form and level that are neighbours, or read the same value, are a region. No way leaves a region and comes back to
// it, or to one of the same level: it would have come to a higher one.
#ifndef SWIZZLE_MODEL_LOADER_REGIONS_CUT_H_
#define SWIZZLE_MODEL_LOADER_REGIONS_CUT_H_

#include <array>
#include <functional>
#include <string_view>
#include <vector>

#include "model_loader/regions/region.h"

namespace swizzle::regions {

// What passes move about, or take together with its neighbours.
inline constexpr std::array<std::string_view, 8> kRearranging = {"Concat", "DepthToSpace", "ReduceMean", "Reshape",
                                                                 "Slice",  "Softmax",      "Split",      "Transpose"};

// Whether the backend that regions are planned for has kernels for a network.
using Computes = std::function<bool(const Network&)>;

// What the backend does that regions are planned for.
struct CutFor {
  Computes computes;
  bool ports_of_bytes = false;  // whether its plans begin and end in them
};

// Of these nodes, in the order in which they can run, those that share a level in any. Where only one other region
// reads what a region rounds to UINT8, and ports may be of bytes, the QuantizeLinear is of the one, the
// DequantizeLinear of the other.
std::vector<Region> CutRegions(const Graph& graph, const Survey& survey, const std::vector<int>& nodes,
                               const CutFor& backend);

}  // namespace swizzle::regions

#endif  // SWIZZLE_MODEL_LOADER_REGIONS_CUT_H_

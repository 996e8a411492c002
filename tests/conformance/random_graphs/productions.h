// What drawn graphs are made of.
#ifndef SWIZZLE_TESTS_CONFORMANCE_RANDOM_GRAPHS_PRODUCTIONS_H_
#define SWIZZLE_TESTS_CONFORMANCE_RANDOM_GRAPHS_PRODUCTIONS_H_

#include <span>

#include "tests/conformance/random_graphs/drawer.h"

namespace swizzle::random_graphs {

// Adds nodes to what was drawn, and may fail. It is chosen as often as `weight` says.
struct Production {
  int weight;
  void (*produce)(Drawer& drawer);
};

std::span<const Production> PointwiseProductions();  // functions of elements, comparisons, norms, reductions
std::span<const Production> ProductProductions();    // with weights or without, convolutions, pools, recurrences
std::span<const Production> MoveProductions();       // what moves elements, and arithmetic of shapes
std::span<const Production> PatternProductions();    // as exporters write attention, norms and their like
std::span<const Production> MixingProductions();     // what joins rows of the batch

}  // namespace swizzle::random_graphs

#endif  // SWIZZLE_TESTS_CONFORMANCE_RANDOM_GRAPHS_PRODUCTIONS_H_

// Makes a drawn graph that differs in some way smaller, as long as it still does.
#ifndef SWIZZLE_TESTS_CONFORMANCE_RANDOM_GRAPHS_SHRINK_H_
#define SWIZZLE_TESTS_CONFORMANCE_RANDOM_GRAPHS_SHRINK_H_

#include "absl/time/time.h"
#include "tests/conformance/random_graphs/compare.h"

namespace swizzle::random_graphs {

struct Shrunk {
  Drawing drawing;
  Difference difference;  // of `drawing`
};

// What differs is to differ the same way. The graph is as small as was found in that time. REQUIRES: it differs.
Shrunk Shrink(Comparer& comparer, const Drawing& drawing, uint64_t seed, absl::Duration time);

}  // namespace swizzle::random_graphs

#endif  // SWIZZLE_TESTS_CONFORMANCE_RANDOM_GRAPHS_SHRINK_H_

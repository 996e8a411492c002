// Many seeds, one after another, and what was reached with them.
#ifndef SWIZZLE_TESTS_CONFORMANCE_RANDOM_GRAPHS_RANDOM_GRAPHS_H_
#define SWIZZLE_TESTS_CONFORMANCE_RANDOM_GRAPHS_RANDOM_GRAPHS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/conformance/random_graphs/shrink.h"

namespace swizzle::random_graphs {

struct Finding {
  uint64_t seed = 0;
  Shrunk shrunk;

  // The seed, what differs, and the shrunk graph as text.
  std::string Text() const;
};

struct Counts {
  int graphs = 0, nodes = 0;
  int independent = 0;          // whose rows are
  int regions = 0, device = 0;  // which have any, on the host and on the device
  int regions_independent = 0;  // both
  int invalid = 0;              // which differ from themselves: a fault of the drawer
  std::map<std::string, int> operators = {};

  std::string Text() const;
};

class RandomGraphs {
 public:
  // Compares the graph of a seed, and notes what was found.
  void Try(uint64_t seed, absl::Duration to_shrink);

  const Counts& counts() const { return counts_; }
  const std::vector<Finding>& findings() const { return findings_; }

 private:
  Comparer comparer_;
  Counts counts_;
  std::vector<Finding> findings_;
};

}  // namespace swizzle::random_graphs

#endif  // SWIZZLE_TESTS_CONFORMANCE_RANDOM_GRAPHS_RANDOM_GRAPHS_H_

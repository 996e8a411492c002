#include "tests/conformance/random_graphs/random_graphs.h"

#include <utility>

namespace swizzle::random_graphs {

std::string Finding::Text() const {
  std::string sizes;
  for (const Sizes& of : shrunk.drawing.sizes) sizes += Concat(" ", of.rows, "x", of.length, "x", of.width);
  return Concat("seed ", seed, ": ", NameOf(shrunk.difference.way), " differs: ", shrunk.difference.text,
                "\nrequests (rows x length x width):", sizes, "\n", shrunk.drawing.graph.Text());
}

std::string Counts::Text() const {
  const auto share = [&](int count) { return Concat(count * 100 / std::max(graphs, 1), " %"); };
  return Concat(graphs, " graphs of ", nodes, " nodes, ", operators.size(), " operators; rows independent in ",
                share(independent), ", regions in ", share(regions), ", both in ", share(regions_independent),
                ", on the device ", share(device), invalid == 0 ? "" : Concat("; not valid: ", invalid));
}

void RandomGraphs::Try(uint64_t seed, absl::Duration to_shrink) {
  const Drawing drawing = Drawer(seed, comparer_.stream()).Draw();
  const Comparison comparison = comparer_.Compare(drawing, seed);
  ++counts_.graphs;
  counts_.nodes += static_cast<int>(drawing.graph.nodes.size());
  for (const DrawnNode& node : drawing.graph.nodes) ++counts_.operators[node.op];
  counts_.invalid += comparison.is_valid ? 0 : 1;
  counts_.independent += comparison.has_independent_rows ? 1 : 0;
  counts_.regions += comparison.has_regions ? 1 : 0;
  counts_.regions_independent += comparison.has_regions && comparison.has_independent_rows ? 1 : 0;
  counts_.device += comparison.has_device_regions ? 1 : 0;
  if (comparison.difference) findings_.push_back({seed, Shrink(comparer_, drawing, seed, to_shrink)});
}

}  // namespace swizzle::random_graphs

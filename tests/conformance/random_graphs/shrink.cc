#include "tests/conformance/random_graphs/shrink.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/time/clock.h"

namespace swizzle::random_graphs {
namespace {

void Replace(DrawnGraph& graph, const std::string& value, const std::string& by) {
  for (DrawnNode& node : graph.nodes) std::ranges::replace(node.inputs, value, by);
}

class Shrinking {
 public:
  Shrinking(Comparer& comparer, const Drawing& drawing, uint64_t seed, absl::Time until)
      : comparer_(comparer), seed_(seed), until_(until), best_{drawing, *comparer.Compare(drawing, seed).difference} {}

  Shrunk Run() {
    while (KeepOneOutput() || EndEarlier() || DropNodes() || Simplify()) {
    }
    return best_;
  }

 private:
  bool IsLate() const { return absl::Now() > until_; }

  // Whether it still differs, and is the best then.
  bool Takes(Drawing drawing) {
    if (IsLate()) return false;
    drawing.graph = drawing.graph.Pruned();
    Comparison comparison = comparer_.Compare(drawing, seed_);
    if (!comparison.is_valid || !comparison.difference || comparison.difference->way != best_.difference.way) {
      return false;
    }
    best_ = {std::move(drawing), *std::move(comparison.difference)};
    return true;
  }

  bool KeepOneOutput() {
    if (best_.drawing.graph.outputs.size() < 2) return false;
    for (const DrawnOutput& output : best_.drawing.graph.outputs) {
      Drawing one = best_.drawing;
      one.graph.outputs = {output};
      if (Takes(std::move(one))) return true;
    }
    return false;
  }

  // What the node reads that makes an output becomes one instead.
  bool EndEarlier() {
    const DrawnGraph& graph = best_.drawing.graph;
    for (size_t o = 0; o < graph.outputs.size(); ++o) {
      const auto maker = std::ranges::find_if(graph.nodes, [&](const DrawnNode& node) {
        return std::ranges::find(node.outputs, graph.outputs[o].name) != node.outputs.end();
      });
      if (maker == graph.nodes.end()) continue;
      for (const std::string& input : maker->inputs) {
        if (input.empty() || graph.constants.contains(input)) continue;
        Drawing earlier = best_.drawing;
        earlier.graph.declares_shapes = false;
        earlier.graph.outputs[o] = {input};
        if (Takes(std::move(earlier))) return true;
      }
    }
    return false;
  }

  bool DropNodes() {
    for (size_t n = best_.drawing.graph.nodes.size(); n-- > 0;) {
      const DrawnNode node = best_.drawing.graph.nodes[n];
      for (const std::string& output : node.outputs) {
        if (Passes(node, output) || BecomesGiven(output)) return true;
      }
    }
    return false;
  }

  // An input of the node takes the place of its output.
  bool Passes(const DrawnNode& node, const std::string& output) {
    for (const std::string& input : node.inputs) {
      if (input.empty()) continue;
      Drawing without = best_.drawing;
      Replace(without.graph, output, input);
      for (DrawnOutput& named : without.graph.outputs) {
        if (named.name == output) named = {input};
      }
      without.graph.declares_shapes = false;
      const auto is_node = [&](const DrawnNode& other) { return other.outputs == node.outputs; };
      if (node.outputs.size() == 1) std::erase_if(without.graph.nodes, is_node);
      if (without.graph.nodes.empty() || std::ranges::any_of(without.graph.outputs, [&](const DrawnOutput& named) {
            return without.graph.constants.contains(named.name);
          })) {
        continue;
      }
      if (Takes(std::move(without))) return true;
    }
    return false;
  }

  // An input of the graph, or a constant, of the same shape takes the place of what a node makes.
  bool BecomesGiven(const std::string& output) {
    const Drawing& now = best_.drawing;
    const bool is_output =
        std::ranges::any_of(now.graph.outputs, [&](const DrawnOutput& named) { return named.name == output; });
    Evaluation known(now.sizes, seed_, comparer_.stream());
    if (is_output || !known.Add(now.graph).ok()) return false;
    const KnownValue& value = *known.Find(output);
    Drawing given = now;
    const std::string name = "g" + output;
    Replace(given.graph, output, name);
    const bool is_fixed =
        value.exact[0]->bytes == value.exact[1]->bytes && value.exact[1]->bytes == value.exact[2]->bytes;
    if (is_fixed && value.dtype != DType::kBool) {
      given.graph.constants[name] = *value.exact[0];
      return Takes(std::move(given));
    }
    DrawnInput input{name, value.dtype, {}, 2};
    for (size_t d = 0; d < value.ShapeIn(0).size(); ++d) {
      input.shape.push_back(DimensionOf(value, d));
      if (input.shape.back() == 0) return false;
    }
    if (input.shape.empty()) return false;
    given.graph.inputs.push_back(std::move(input));
    return Takes(std::move(given));
  }

  // What an input declares for this dimension; 0: no input can have it.
  int64_t DimensionOf(const KnownValue& value, size_t d) const {
    const RequestSizes& sizes = best_.drawing.sizes;
    for (const int64_t dimension : {value.ShapeIn(0)[d], kRows, kLength, kWidth}) {
      bool fits = true;
      for (size_t r = 0; r < kRequests; ++r) fits = fits && sizes[r].Of(dimension) == value.ShapeIn(r)[d];
      if (fits) return dimension;
    }
    return 0;
  }

  // Requests become smaller, and what is said of the graph is left out.
  bool Simplify() {
    const Drawing& now = best_.drawing;
    for (bool DrawnGraph::*const flag : {&DrawnGraph::names_axes, &DrawnGraph::declares_shapes}) {
      Drawing without = now;
      if (!std::exchange(without.graph.*flag, false)) continue;
      if (Takes(std::move(without))) return true;
    }
    for (size_t r = 0; r < kRequests; ++r) {
      for (int64_t Sizes::*const size : {&Sizes::rows, &Sizes::length, &Sizes::width}) {
        if (now.sizes[r].*size < 2) continue;
        Drawing smaller = now;
        --(smaller.sizes[r].*size);
        if (r < 2 && size != &Sizes::rows) --(smaller.sizes[1 - r].*size);
        if (Takes(std::move(smaller))) return true;
      }
    }
    return false;
  }

  Comparer& comparer_;
  const uint64_t seed_;
  const absl::Time until_;
  Shrunk best_;
};

}  // namespace

Shrunk Shrink(Comparer& comparer, const Drawing& drawing, uint64_t seed, absl::Duration time) {
  return Shrinking(comparer, drawing, seed, absl::Now() + time).Run();
}

}  // namespace swizzle::random_graphs

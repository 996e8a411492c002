#include <algorithm>

#include "model_loader/graph/operators.h"
#include "model_loader/graph/rewriter.h"
#include "model_loader/passes/passes.h"
#include "model_loader/semantics/epilogues.h"

namespace swizzle {
namespace {

bool HasBounds(const Node& node) {
  constexpr std::string_view kOps[] = {"Conv",  "DepthwiseConv", "Add",     "Clamp",      "Multiply",
                                       "Scale", "Function",      "MaxPool", "AveragePool"};
  return std::any_of(std::begin(kOps), std::end(kOps), [&](std::string_view op) { return Is(node, op); });
}

// Whether nothing is lost where what is quantised so comes to be clamped at once: it is quantised no other way after.
bool QuantisedAlike(const Value& before, const Value& after) { return !before.wholes || before.wholes == after.wholes; }

}  // namespace

StatusOr<int> FuseActivation(Graph& graph) {
  Rewriter rewriter(graph);
  int count = 0;
  for (int i = 0; i < rewriter.node_count(); ++i) {
    if (!Is(rewriter.node(i), "Clamp")) continue;
    const int input = rewriter.node(i).inputs[0];
    const int producer = rewriter.Producer(input);
    if (producer < 0 || rewriter.SoleReader(input) != i || !HasBounds(rewriter.node(producer))) continue;
    const int output = rewriter.node(i).outputs[0];
    if (!QuantisedAlike(graph.values[input], graph.values[output])) continue;
    // clamp(clamp(x, a), b) is one clamp, to a's bounds clamped by b's.
    const Epilogue inner = EpilogueOf(rewriter.node(producer)), outer = EpilogueOf(rewriter.node(i));
    const auto clamped = [&](float bound) { return std::clamp(bound, outer.low, outer.high); };
    SetBounds(rewriter.node(producer), clamped(inner.low), clamped(inner.high));
    rewriter.TakeOutput(producer, i);
    ++count;
  }
  rewriter.Finish();
  return count;
}

}  // namespace swizzle

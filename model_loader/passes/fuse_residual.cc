#include "model_loader/graph/operators.h"
#include "model_loader/graph/rewriter.h"
#include "model_loader/passes/passes.h"
#include "model_loader/semantics/epilogues.h"
#include "model_loader/semantics/whole_numbers.h"

namespace swizzle {
namespace {

// The convolution that makes an operand of an addition for nobody else, its sum untouched but for rounding by a Clamp.
struct Producer {
  int conv = -1;
  int rounding = -1;  // -1: there is none
};

// Whether the node only says which whole numbers its value may be stored as, and so clamps it to their range. One with
// 0 at its end may be what is left of a Relu.
bool OnlyRounds(const Graph& graph, const Node& node) {
  if (!Is(node, "Clamp")) return false;
  const auto& wholes = graph.values[node.outputs[0]].wholes;
  if (!wholes || !wholes->quantisation.per_tensor()) return false;
  const RealRange range = RangeOf(wholes->quantisation.Of(0));
  const Epilogue bounds = EpilogueOf(node);
  return bounds.low == range.low && bounds.high == range.high && range.low < 0.0f && range.high > 0.0f;
}

Producer FusableProducer(Rewriter& rewriter, int add, size_t i) {
  Producer found;
  int value = rewriter.node(add).inputs[i], reader = add;
  found.conv = rewriter.Producer(value);
  if (found.conv < 0) return {};
  if (OnlyRounds(rewriter.graph(), rewriter.node(found.conv)) && rewriter.SoleReader(value) == add) {
    reader = found.rounding = found.conv;
    value = rewriter.node(found.rounding).inputs[0];
    found.conv = rewriter.Producer(value);
    if (found.conv < 0) return {};
  }
  const Node& node = rewriter.node(found.conv);
  const bool convolution = Is(node, "Conv") || Is(node, "DepthwiseConv");
  if (!convolution || rewriter.SoleReader(value) != reader || EpilogueOf(node) != Epilogue{}) return {};
  return found;
}

// Which of two candidates takes the other's result as its residual: a Conv rather than a DepthwiseConv, else the later.
bool IsBetter(Rewriter& rewriter, const Producer& candidate, const Producer& than) {
  if (candidate.conv < 0 || than.conv < 0) return candidate.conv >= 0;
  const bool conv = Is(rewriter.node(candidate.conv), "Conv"), other_conv = Is(rewriter.node(than.conv), "Conv");
  return conv != other_conv ? conv : candidate.conv > than.conv;
}

// The convolution moves to the addition's place, where its residual is there for certain.
void Fuse(Rewriter& rewriter, int add, const Producer& producer, int residual) {
  Node& fused = rewriter.node(add);
  Node& original = rewriter.node(producer.conv);
  const Epilogue bounds = EpilogueOf(fused);
  std::vector<int> inputs = original.inputs;
  inputs.resize(kResidualInput + 1, kNoValue);
  inputs[kResidualInput] = residual;
  fused.op = original.op;
  fused.name = original.name;
  fused.attributes = std::move(original.attributes);
  if (bounds.Clamps()) SetBounds(fused, bounds.low, bounds.high);
  rewriter.SetInputs(add, std::move(inputs));
  if (producer.rounding >= 0) rewriter.Erase(producer.rounding);
  rewriter.Erase(producer.conv);
}

}  // namespace

StatusOr<int> FuseResidual(Graph& graph) {
  Rewriter rewriter(graph);
  int count = 0;
  for (int i = 0; i < rewriter.node_count(); ++i) {
    if (!Is(rewriter.node(i), "Add")) continue;
    const Producer left = FusableProducer(rewriter, i, 0), right = FusableProducer(rewriter, i, 1);
    const bool take_left = IsBetter(rewriter, left, right);
    const Producer& producer = take_left ? left : right;
    if (producer.conv < 0) continue;
    Fuse(rewriter, i, producer, rewriter.node(i).inputs[take_left ? 1 : 0]);
    ++count;
  }
  rewriter.Finish();
  return count;
}

}  // namespace swizzle

#include "model_loader/graph/operators.h"
#include "model_loader/graph/rewriter.h"
#include "model_loader/passes/passes.h"
#include "model_loader/semantics/epilogues.h"

namespace swizzle {
namespace {

// The convolution that makes input `i` of the addition for nobody else, its sum untouched so far; -1 if none does.
int FusableProducer(Rewriter& rewriter, int add, size_t i) {
  const int value = rewriter.node(add).inputs[i];
  const int producer = rewriter.Producer(value);
  if (producer < 0 || rewriter.SoleReader(value) != add) return -1;
  const Node& node = rewriter.node(producer);
  const bool convolution = Is(node, "Conv") || Is(node, "DepthwiseConv");
  return convolution && EpilogueOf(node) == Epilogue{} ? producer : -1;
}

// Which of two candidates takes the other's result as its residual: a Conv rather than a DepthwiseConv, else the later.
bool IsBetter(Rewriter& rewriter, int candidate, int than) {
  if (candidate < 0 || than < 0) return candidate >= 0;
  const bool conv = Is(rewriter.node(candidate), "Conv"), other_conv = Is(rewriter.node(than), "Conv");
  return conv != other_conv ? conv : candidate > than;
}

// The convolution moves to the addition's place, where its residual is there for certain.
void Fuse(Rewriter& rewriter, int add, int conv, int residual) {
  Node& fused = rewriter.node(add);
  Node& original = rewriter.node(conv);
  const Epilogue bounds = EpilogueOf(fused);
  std::vector<int> inputs = original.inputs;
  inputs.resize(kResidualInput + 1, kNoValue);
  inputs[kResidualInput] = residual;
  fused.op = original.op;
  fused.name = original.name;
  fused.attributes = std::move(original.attributes);
  if (bounds.Clamps()) SetBounds(fused, bounds.low, bounds.high);
  rewriter.SetInputs(add, std::move(inputs));
  rewriter.Erase(conv);
}

}  // namespace

StatusOr<int> FuseResidual(Graph& graph) {
  Rewriter rewriter(graph);
  int count = 0;
  for (int i = 0; i < rewriter.node_count(); ++i) {
    if (!Is(rewriter.node(i), "Add")) continue;
    const int left = FusableProducer(rewriter, i, 0), right = FusableProducer(rewriter, i, 1);
    const bool take_left = IsBetter(rewriter, left, right);
    const int conv = take_left ? left : right;
    if (conv < 0) continue;
    Fuse(rewriter, i, conv, rewriter.node(i).inputs[take_left ? 1 : 0]);
    ++count;
  }
  rewriter.Finish();
  return count;
}

}  // namespace swizzle

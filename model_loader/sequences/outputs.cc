#include "model_loader/sequences/outputs.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "model_loader/graph/rewriter.h"
#include "model_loader/sequences/activations.h"

namespace swizzle::sequences {

StatusOr<Tokens> AsOutput(Context& context, const Form& form, const std::string& name, bool may_split_length) {
  const Emitter& out = context.out();
  if (const auto* unknown = std::get_if<Unknown>(&form)) return unknown->why;
  const auto tokens = AsTokens(context, form);
  if (!tokens.ok()) return Annotate(tokens.status(), Concat("graph output '", name, "'"));
  SWIZZLE_ASSIGN_OR_RETURN(Tokens whole, Contiguous(context, *tokens));
  SWIZZLE_ASSIGN_OR_RETURN(whole, Materialised(context, whole));
  const bool per_token = out.IsPerToken(whole.value);
  if (may_split_length && per_token) {
    if (auto joined = WithPositionsAsOne(whole.view, 1)) whole.view = *std::move(joined);
  }
  const std::vector<Axes>& dims = whole.view.dims;
  const size_t leading = per_token ? 2 : 1;
  if (dims.size() < leading || dims[0] != context.BatchAxis() || (per_token && dims[1] != context.LengthAxis()) ||
      !std::all_of(dims.begin() + static_cast<std::ptrdiff_t>(leading), dims.end(), IsOfChannels)) {
    return Unimplemented("graph output '", name, "' of shape ", Text(whole.view.shape()),
                         " does not begin with the batch", per_token ? " and the length" : "");
  }
  return whole;
}

void AddOutput(Context& context, const Tokens& tokens, const std::string& name) {
  GraphOutput made{name, tokens.value, DType::kFloat32, Shape()};
  for (const Whole& size : tokens.view.shape()) made.shape->push_back(size.IsNumber() ? size.factor : -1);
  context.out().graph().outputs.push_back(std::move(made));
}

// Constants that readers share are copied for each, so many times at most: as in the pass Canonicalise.
Status CheckSpent(const Context& context, int64_t held) {
  constexpr int64_t kMaxSharing = 8, kFree = int64_t{1} << 28;
  const int64_t spent = context.out().spent();
  if (spent <= kMaxSharing * held + kFree) return {};
  return Unimplemented(Describe(context.node()), ": the graph makes ", spent, " elements of new constants out of ",
                       held, "; one plan takes ", kMaxSharing, " times that");
}

Graph TakeGraph(Context& context, const Graph& read) {
  Graph& graph = context.out().graph();
  graph.name = read.name;
  graph.producer = read.producer;
  graph.opset = read.opset;
  graph.sequences = context.facts().sequences();
  const std::vector<int> inputs = graph.inputs;
  Rewriter(graph).Finish();
  for (int* const named : {&graph.sequences->mask, &graph.sequences->counted, &graph.sequences->ends}) {
    if (*named == kNoValue) continue;
    *named = graph.inputs[static_cast<size_t>(std::ranges::find(inputs, *named) - inputs.begin())];
  }
  return std::move(graph);
}

}  // namespace swizzle::sequences

#include "model_loader/sequences/walk.h"

#include <algorithm>

#include "model_loader/graph/rewriter.h"
#include "model_loader/sequences/activations.h"
#include "model_loader/sequences/interpret.h"

namespace swizzle::sequences {

StatusOr<Graph> Walk::Run() {
  constexpr int64_t kOne = 1;
  if (graph_.sequences->length == kOne) return Unimplemented("the model's sequences have length 1");
  CountReads();
  AddInputs();
  for (const Node& node : graph_.nodes) SWIZZLE_RETURN_IF_ERROR(Step(node));
  for (const GraphOutput& output : graph_.outputs) SWIZZLE_RETURN_IF_ERROR(SetOutput(output));
  SWIZZLE_RETURN_IF_ERROR(context_.facts().Finish(context_.out().graph()));
  return Finished();
}

void Walk::CountReads() {
  reads_.resize(graph_.values.size());
  for (const Node& node : graph_.nodes) {
    for (const int input : node.inputs) {
      if (input != kNoValue) ++reads_[input];
    }
  }
  for (const Value& value : graph_.values) held_ += value.constant ? value.constant->elements() : 0;
}

// Inputs are [batch, length] of whole numbers, as the reader made sure.
void Walk::AddInputs() {
  for (const int input : graph_.inputs) {
    const Value& value = graph_.values[input];
    TokenNumbers numbers;
    numbers.input = context_.out().AddInput(value.name, value.dtype);
    numbers.dtype = value.dtype;
    numbers.view.dims = {context_.BatchAxis(), context_.LengthAxis()};
    context_.SetForm(input, std::move(numbers));
  }
}

Status Walk::Step(const Node& node) {
  context_.Enter(node);
  StatusOr<Form> form = Interpret(context_);
  // Only what a node says it cannot do is left for others to judge.
  if (!form.ok() && form.status().code() != StatusCode::kUnimplemented) return form.status();
  if (form.ok()) {
    context_.SetOther(0, *std::move(form));
  } else {
    for (size_t i = 0; i < node.outputs.size(); ++i) context_.SetOther(i, Unknown{form.status()});
  }
  FreeConstants(node);
  return CheckSpent(node);
}

// What readers share each gets a copy of, so many times at most: as in the pass Canonicalise.
Status Walk::CheckSpent(const Node& node) const {
  constexpr int64_t kMaxSharing = 8, kFree = int64_t{1} << 28;
  const int64_t spent = context_.out().spent();
  if (spent <= kMaxSharing * held_ + kFree) return {};
  return Unimplemented(Describe(node), ": the graph makes ", spent, " elements of new constants out of ", held_,
                       "; one plan takes ", kMaxSharing, " times that");
}

// Weights go once nobody reads them any more, so that none is held twice for long.
void Walk::FreeConstants(const Node& node) {
  for (const int input : node.inputs) {
    if (input == kNoValue || static_cast<size_t>(input) >= reads_.size() || --reads_[input] > 0) continue;
    if (graph_.IsConstant(input)) graph_.values[input].constant->bytes = {};
  }
}

// Outputs are [batch, length, channels] or [batch, channels]; one number a token may stand without channels.
Status Walk::SetOutput(const GraphOutput& output) {
  if (!context_.HasForm(output.value)) {
    return Unimplemented("graph output '", output.name, "' is an input or a constant");
  }
  Emitter& out = context_.out();
  out.SetName(output.name);
  const Form& form = context_.FormOf(output.value);
  if (const auto* unknown = std::get_if<Unknown>(&form)) return unknown->why;
  const auto tokens = AsTokens(context_, form);
  if (!tokens.ok()) return Annotate(tokens.status(), Concat("graph output '", output.name, "'"));
  SWIZZLE_ASSIGN_OR_RETURN(Tokens whole, Contiguous(context_, *tokens));
  SWIZZLE_ASSIGN_OR_RETURN(whole, Materialised(context_, whole));
  const bool per_token = out.IsPerToken(whole.value);
  const std::vector<Axes>& dims = whole.view.dims;
  const size_t leading = per_token ? 2 : 1;
  if (dims.size() < leading || dims[0] != context_.BatchAxis() || (per_token && dims[1] != context_.LengthAxis()) ||
      !std::all_of(dims.begin() + static_cast<std::ptrdiff_t>(leading), dims.end(), IsOfChannels)) {
    return Unimplemented("graph output '", output.name, "' of shape ", Text(whole.view.shape()),
                         " does not begin with the batch", per_token ? " and the length" : "");
  }
  GraphOutput made{output.name, whole.value, DType::kFloat32, Shape()};
  for (const Whole& size : whole.view.shape()) made.shape->push_back(size.IsNumber() ? size.factor : -1);
  out.graph().outputs.push_back(std::move(made));
  return {};
}

Graph Walk::Finished() {
  Graph& graph = context_.out().graph();
  graph.name = graph_.name;
  graph.producer = graph_.producer;
  graph.opset = graph_.opset;
  graph.sequences = context_.facts().sequences();
  const std::vector<int> inputs = graph.inputs;
  Rewriter(graph).Finish();
  for (int* const named : {&graph.sequences->mask, &graph.sequences->counted}) {
    if (*named == kNoValue) continue;
    *named = graph.inputs[static_cast<size_t>(std::ranges::find(inputs, *named) - inputs.begin())];
  }
  return std::move(graph);
}

}  // namespace swizzle::sequences

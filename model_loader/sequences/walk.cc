#include "model_loader/sequences/walk.h"

#include "model_loader/sequences/interpret.h"
#include "model_loader/sequences/outputs.h"

namespace swizzle::sequences {

StatusOr<Graph> Walk::Run() {
  constexpr int64_t kOne = 1;
  if (graph_.sequences->length == kOne) return Unimplemented("the model's sequences have length 1");
  CountReads();
  AddInputs();
  for (const Node& node : graph_.nodes) SWIZZLE_RETURN_IF_ERROR(Step(node));
  for (const GraphOutput& output : graph_.outputs) SWIZZLE_RETURN_IF_ERROR(SetOutput(output));
  SWIZZLE_RETURN_IF_ERROR(context_.facts().Finish(context_.out().graph()));
  return TakeGraph(context_, graph_);
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
  return CheckSpent(context_, held_);
}

// Weights go once nobody reads them any more, so that none is held twice for long: an empty list in braces would leave
// the memory with the vector.
void Walk::FreeConstants(const Node& node) {
  for (const int input : node.inputs) {
    if (input == kNoValue || static_cast<size_t>(input) >= reads_.size() || --reads_[input] > 0) continue;
    if (graph_.IsConstant(input)) graph_.values[input].constant->bytes = std::vector<std::byte>();
  }
}

Status Walk::SetOutput(const GraphOutput& output) {
  if (!context_.HasForm(output.value)) {
    return Unimplemented("graph output '", output.name, "' is an input or a constant");
  }
  context_.out().SetName(output.name);
  SWIZZLE_ASSIGN_OR_RETURN(const Tokens tokens, AsOutput(context_, context_.FormOf(output.value), output.name, false));
  AddOutput(context_, tokens, output.name);
  return {};
}

}  // namespace swizzle::sequences

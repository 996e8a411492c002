#include "model_loader/interpreter/run/load.h"

#include <utility>
#include <vector>

#include "model_loader/onnx/axis_names.h"
#include "model_loader/passes/passes.h"
#include "model_loader/safetensors/checkpoint.h"

namespace swizzle::interpreter {

namespace {

StatusOr<std::shared_ptr<const Program>> Read(const OnnxSource& model, ReadOptions options, Nodes nodes) {
  options.min_opset = kFirstOpset;
  options.max_opset = kLastOpset;
  options.find_operator = FindInterpretedOperator;
  options.attributes_of_any_opset = true;
  options.any_inputs = true;
  AxisNames names;
  SWIZZLE_ASSIGN_OR_RETURN(Graph graph, ReadOnnx(model, options, names));
  if (nodes == Nodes::kNeeded) {
    SWIZZLE_RETURN_IF_ERROR(ResolveConstants(graph).status());
    SWIZZLE_RETURN_IF_ERROR(RemoveNoOps(graph).status());
  }
  SWIZZLE_RETURN_IF_ERROR(UnroundProducts(graph).status());
  SWIZZLE_RETURN_IF_ERROR(ExpandTransposed(graph).status());
  SWIZZLE_RETURN_IF_ERROR(HoistRoundings(graph).status());
  SWIZZLE_ASSIGN_OR_RETURN(const std::shared_ptr<const Program> program, Program::Make(std::move(graph)));
  std::vector<Port> inputs = program->inputs();
  for (Port& input : inputs) input.axes = names[input.name];
  return program->WithInputs(std::move(inputs));
}

}  // namespace

StatusOr<std::shared_ptr<const Program>> ReadProgram(const OnnxSource& model, const ReadOptions& options, Nodes nodes) {
  return Read(model, options, nodes);
}

StatusOr<std::shared_ptr<const Program>> ReadProgram(const std::filesystem::path& file, Nodes nodes,
                                                     const GraphRevision& revise) {
  if (IsCheckpoint(file)) {
    SWIZZLE_ASSIGN_OR_RETURN(Graph graph,
                             ReadCheckpoint(file, {.find_operator = FindInterpretedOperator, .revise = revise}));
    SWIZZLE_RETURN_IF_ERROR(UnroundProducts(graph).status());
    return Program::Make(std::move(graph));
  }
  ReadOptions options = ReadOptionsFor(file);
  options.revise = revise;
  StatusOr<std::shared_ptr<const Program>> program = Read(OnnxSource::OfFile(file), options, nodes);
  if (!program.ok()) return Annotate(program.status(), file.string());
  return program;
}

}  // namespace swizzle::interpreter

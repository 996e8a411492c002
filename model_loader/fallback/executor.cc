#include "model_loader/fallback/executor.h"

#include <cstring>
#include <map>

#include "model_loader/fallback/batch_proof.h"
#include "model_loader/graph/operator_table.h"

namespace swizzle::fallback {
namespace {

StatusOr<Array> CopyTensor(Memory& memory, DType dtype, const Shape& shape, std::span<const std::byte> bytes) {
  SWIZZLE_ASSIGN_OR_RETURN(Array array, memory.Allocate(dtype, shape));
  if (array.bytes() != static_cast<int64_t>(bytes.size())) {
    return InvalidArgument("it has ", bytes.size(), " bytes for ", ShapeText(shape), " of ", DTypeName(dtype));
  }
  if (!bytes.empty()) std::memcpy(array.data.get(), bytes.data(), bytes.size());
  return array;
}

StatusOr<RunOperator> FunctionOf(const Node& node, int64_t opset) {
  const OnnxOperator* row = FindOnnxOperator(node.domain, node.op);
  if (row == nullptr || !row->fallback.Runs()) {
    return Unimplemented("operator ", node.op, " (opset ", opset, ", node '", node.name, "') is not supported");
  }
  if (opset < row->fallback.first_opset) {
    return Unimplemented("operator ", node.op, " (opset ", opset, ", node '", node.name, "') is supported from opset ",
                         row->fallback.first_opset, " on");
  }
  if (row->fallback.last_opset != 0 && opset > row->fallback.last_opset) {
    return Unimplemented("operator ", node.op, " (opset ", opset, ", node '", node.name, "') ended with opset ",
                         row->fallback.last_opset);
  }
  return FindFunction(node.op);
}

bool Fits(const Shape& declared, const Shape& given) {
  if (declared.size() != given.size()) return false;
  for (size_t d = 0; d < given.size(); ++d) {
    if (declared[d] != -1 && declared[d] != given[d]) return false;
  }
  return true;
}

}  // namespace

StatusOr<std::shared_ptr<const Program>> Program::Make(Graph graph) {
  std::shared_ptr<Program> program(new Program());
  for (const int input : graph.inputs) {
    const Value& value = graph.values[static_cast<size_t>(input)];
    program->inputs_.push_back({value.name, value.dtype, value.shape});
  }
  for (const GraphOutput& output : graph.outputs) {
    program->outputs_.push_back({output.name, output.dtype, output.shape});
  }
  for (const Node& node : graph.nodes) {
    SWIZZLE_ASSIGN_OR_RETURN(program->functions_.emplace_back(), FunctionOf(node, graph.opset));
  }
  program->graph_ = std::move(graph);
  program->rows_are_independent_ = RowsAreIndependent(program->graph_);
  SWIZZLE_RETURN_IF_ERROR(program->TakeConstants());
  program->FindLastReaders();
  return std::shared_ptr<const Program>(std::move(program));
}

Status Program::TakeConstants() {
  for (size_t i = 0; i < graph_.values.size(); ++i) {
    std::optional<Tensor>& constant = graph_.values[i].constant;
    if (!constant) continue;
    StatusOr<Array> array = CopyTensor(*weights_, constant->dtype, constant->shape, constant->bytes);
    if (!array.ok()) return Annotate(array.status(), Concat("constant '", graph_.values[i].name, "'"));
    constants_.emplace_back(static_cast<int>(i), *std::move(array));
    constant.reset();
  }
  return {};
}

void Program::FindLastReaders() {
  constexpr size_t kNever = ~size_t{0};
  std::vector<size_t> last(graph_.values.size(), kNever);
  for (size_t n = 0; n < graph_.nodes.size(); ++n) {
    for (const int value : graph_.nodes[n].inputs) {
      if (value != kNoValue) last[static_cast<size_t>(value)] = n;
    }
    for (const int value : graph_.nodes[n].outputs) {
      if (value != kNoValue) last[static_cast<size_t>(value)] = n;  // until somebody reads it
    }
  }
  for (const GraphOutput& output : graph_.outputs) last[static_cast<size_t>(output.value)] = kNever;
  released_.resize(graph_.nodes.size());
  for (size_t value = 0; value < last.size(); ++value) {
    if (last[value] != kNever) released_[last[value]].push_back(static_cast<int>(value));
  }
}

std::string Program::OperatorCounts() const {
  std::map<std::string, int> counts;
  for (const Node& node : graph_.nodes) ++counts[node.op];
  std::string text;
  for (const auto& [op, count] : counts) text += Concat(text.empty() ? "" : ",", op, ":", count);
  return text;
}

StatusOr<Array> Program::TakeInput(Memory& memory, size_t i, const TensorView& view) const {
  const Port& port = inputs_[i];
  if (view.dtype != *port.dtype) {
    return InvalidArgument("input '", port.name, "' is ", DTypeName(view.dtype), "; it must be ",
                           DTypeName(*port.dtype));
  }
  if (port.shape && !Fits(*port.shape, view.shape)) {
    return InvalidArgument("input '", port.name, "' is ", ShapeText(view.shape), "; it must be ",
                           ShapeText(*port.shape));
  }
  StatusOr<Array> array = CopyTensor(memory, view.dtype, view.shape, view.bytes);
  if (!array.ok()) return Annotate(array.status(), Concat("input '", port.name, "'"));
  return array;
}

Status Program::RunNode(size_t index, Memory& memory, Stream& stream, const NodeWatch& watch,
                        std::vector<Array>& values) const {
  const Node& node = graph_.nodes[index];
  std::vector<Array> inputs;
  for (const int input : node.inputs)
    inputs.push_back(input == kNoValue ? Array() : values[static_cast<size_t>(input)]);
  if (watch) SWIZZLE_RETURN_IF_ERROR(watch(node, inputs, memory, stream));
  Call call(node, graph_.opset, inputs, memory, stream);
  StatusOr<Results> results = functions_[index](call);
  if (!results.ok()) {
    const bool named = std::string(results.status().message()).starts_with(Describe(node));
    return named ? results.status() : Annotate(results.status(), Describe(node));
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == kNoValue) continue;
    if (i >= results->size()) return Unimplemented(Describe(node), ": its output ", i, " is not supported");
    values[static_cast<size_t>(node.outputs[i])] = std::move((*results)[i]);
  }
  return {};
}

StatusOr<std::vector<Array>> Program::Run(std::span<const TensorView> inputs, Stream& stream, const Limits& limits,
                                          const NodeWatch& watch) const {
  SWIZZLE_CHECK(inputs.size() == inputs_.size());
  const std::shared_ptr<Memory> memory = Memory::New(limits);
  std::vector<Array> values(graph_.values.size());
  for (const auto& [value, array] : constants_) values[static_cast<size_t>(value)] = array;
  for (size_t i = 0; i < inputs.size(); ++i) {
    SWIZZLE_ASSIGN_OR_RETURN(values[static_cast<size_t>(graph_.inputs[i])], TakeInput(*memory, i, inputs[i]));
  }
  for (size_t n = 0; n < graph_.nodes.size(); ++n) {
    const Status status = RunNode(n, *memory, stream, watch, values);
    if (!status.ok()) {
      SWIZZLE_RETURN_IF_ERROR(stream.Synchronize());
      return status;
    }
    for (const int value : released_[n]) values[static_cast<size_t>(value)] = Array();
  }
  SWIZZLE_RETURN_IF_ERROR(stream.Synchronize());
  std::vector<Array> outputs;
  for (const GraphOutput& output : graph_.outputs) outputs.push_back(values[static_cast<size_t>(output.value)]);
  return outputs;
}

}  // namespace swizzle::fallback

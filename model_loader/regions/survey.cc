#include "model_loader/regions/survey.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "model_loader/regions/shape_flow.h"

namespace swizzle::regions {
namespace {

using fallback::Array;

// Values that depend on no input.
std::set<int> ConstantValues(const fallback::Program& program) {
  std::set<int> values;
  for (const auto& constant : program.constants()) values.insert(constant.first);
  for (const Node& node : program.graph().nodes) {
    const auto known = [&](int value) { return value == kNoValue || values.contains(value); };
    if (std::ranges::all_of(node.inputs, known)) values.insert(node.outputs.begin(), node.outputs.end());
  }
  values.erase(kNoValue);
  return values;
}

class Surveyor {
 public:
  Surveyor(const fallback::Program& program, Stream& stream, const fallback::Limits& limits)
      : program_(program), stream_(stream), limits_(limits), constant_(ConstantValues(program)) {}

  StatusOr<Survey> Run(int64_t rows, int64_t size) {
    survey_ = Survey();
    survey_.shapes.resize(program_.graph().values.size());
    survey_.dtypes.resize(program_.graph().values.size());
    for (const auto& [value, array] : program_.constants()) Note(value, array);
    std::vector<std::vector<std::byte>> zeros;
    SWIZZLE_ASSIGN_OR_RETURN(const std::vector<TensorView> inputs, InputsOfZeros(program_, rows, size, limits_, zeros));
    survey_.memory.rows = rows;
    const auto watch = [this](const Node& node, std::span<Array> given, fallback::Memory& memory, Stream&) {
      survey_.memory.bytes = std::max(survey_.memory.bytes, memory.live_bytes());
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i] != kNoValue) Note(node.inputs[i], given[i]);
      }
      return Status();
    };
    SWIZZLE_ASSIGN_OR_RETURN(const std::vector<Array> outputs, program_.Run(inputs, stream_, limits_, watch));
    for (size_t i = 0; i < outputs.size(); ++i) Note(program_.graph().outputs[i].value, outputs[i]);
    return std::move(survey_);
  }

 private:
  void Note(int value, const Array& array) {
    survey_.shapes[static_cast<size_t>(value)] = array.shape;
    survey_.dtypes[static_cast<size_t>(value)] = array.dtype;
    if (constant_.contains(value)) survey_.known.emplace(value, array);
  }

  const fallback::Program& program_;
  Stream& stream_;
  const fallback::Limits& limits_;
  const std::set<int> constant_;
  Survey survey_;
};

bool HasFreeDimension(const fallback::Program& program) {
  return std::ranges::any_of(program.inputs(), [](const fallback::Port& port) {
    return port.shape && std::ranges::find(*port.shape, -1) != port.shape->end();
  });
}

void AddReaders(const Graph& graph, Survey& survey) {
  survey.readers.resize(graph.values.size());
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    for (const int input : graph.nodes[n].inputs) {
      if (input != kNoValue) survey.readers[static_cast<size_t>(input)].push_back(static_cast<int>(n));
    }
  }
  for (const GraphOutput& output : graph.outputs) {
    survey.readers[static_cast<size_t>(output.value)].push_back(Survey::kOutside);
  }
}

void AddIdioms(const Graph& graph, Survey& survey) {
  survey.idioms = FindIdioms(graph, survey);
  survey.idiom_of.assign(graph.nodes.size(), -1);
  for (size_t i = 0; i < survey.idioms.size(); ++i) {
    for (const int node : survey.idioms[i].nodes) survey.idiom_of[static_cast<size_t>(node)] = static_cast<int>(i);
  }
}

}  // namespace

StatusOr<std::vector<TensorView>> InputsOfZeros(const fallback::Program& program, int64_t rows, int64_t size,
                                                const fallback::Limits& limits,
                                                std::vector<std::vector<std::byte>>& zeros) {
  std::vector<TensorView> views;
  for (const fallback::Port& port : program.inputs()) {
    if (!port.shape || !port.dtype) return Unimplemented("input '", port.name, "' is declared without a shape");
    Shape shape = *port.shape;
    for (size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] < 0) shape[i] = i == 0 ? rows : size;
    }
    SWIZZLE_ASSIGN_OR_RETURN(const int64_t elements, ElementCount(shape));
    if (elements > limits.max_array_bytes) return InvalidArgument("input '", port.name, "' is too large");
    const size_t bytes = *port.dtype == DType::kString ? sizeof(uint32_t) : ElementBytes(*port.dtype);  // empty ones
    zeros.emplace_back(static_cast<size_t>(elements) * bytes);
    views.push_back({*port.dtype, std::move(shape), {}});
  }
  for (size_t i = 0; i < views.size(); ++i) views[i].bytes = zeros[i];
  return views;
}

StatusOr<Survey> SurveyProgram(const fallback::Program& program, Stream& stream, const fallback::Limits& limits) {
  Surveyor surveyor(program, stream, limits);
  StatusOr<Survey> survey = surveyor.Run(kSurveyedRows, kFreeSizes[0]);
  size_t next = 1;
  for (; next < kFreeSizes.size() && !survey.ok(); ++next) survey = surveyor.Run(kSurveyedRows, kFreeSizes[next]);
  if (!survey.ok()) return survey;
  AddReaders(program.graph(), *survey);
  AddIdioms(program.graph(), *survey);
  survey->shapes_follow = ShapesFollowShapes(program.graph());
  survey->other_shapes = survey->shapes;
  if (!survey->shapes_follow || !HasFreeDimension(program)) return survey;
  survey->shapes_follow = false;
  for (; next < kFreeSizes.size() && !survey->shapes_follow; ++next) {
    StatusOr<Survey> other = surveyor.Run(kOtherSurveyedRows, kFreeSizes[next]);
    if (!other.ok()) continue;
    survey->shapes_follow = true;
    survey->other_shapes = std::move(other->shapes);
  }
  return survey;
}

}  // namespace swizzle::regions

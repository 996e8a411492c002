#include "model_loader/regions/survey.h"

#include <algorithm>
#include <set>
#include <utility>

#include "model_loader/graph/shape_flow.h"
#include "model_loader/interpreter/memory/block_range.h"
#include "model_loader/interpreter/run/refusal.h"
#include "model_loader/regions/run_shapes.h"

namespace swizzle::regions {
namespace {

using interpreter::Array;

// What constants may take that are computed of others beforehand, beside as much again as the model's own.
constexpr int64_t kFoldedBytes = int64_t{1} << 28;

// By node: whether what it makes depends on elements of inputs, and no shape does.
std::vector<bool> NodesWithoutElements(const Graph& graph) {
  std::vector<bool> nodes(graph.nodes.size());
  if (!ShapesFollowShapes(graph)) return nodes;
  const std::vector<bool> by_elements = GoByElements(graph);
  for (size_t n = 0; n < nodes.size(); ++n) {
    nodes[n] = std::ranges::all_of(graph.nodes[n].outputs, [&](int output) {
      return output == kNoValue || by_elements[static_cast<size_t>(output)];
    });
  }
  return nodes;
}

// Values, `constant` aside, that are the same in every run, since the sizes that they are computed of are.
std::set<int> FixedValues(const interpreter::Program& program, const std::set<int>& constant) {
  const RunShapes shapes(program.graph(), {program.constants().begin(), program.constants().end()});
  std::set<int> fixed;
  const auto is_same = [&](int value) {
    return value == kNoValue || constant.contains(value) || fixed.contains(value) || shapes.AreFixed(value);
  };
  for (const Node& node : program.graph().nodes) {
    const bool is_computed = !node.inputs.empty() && std::ranges::all_of(node.inputs, is_same);
    for (const int output : node.outputs) {
      const bool is_known = output == kNoValue || constant.contains(output);
      if (!is_known && (is_computed || shapes.AreFixed(output))) fixed.insert(output);
    }
  }
  return fixed;
}

class Surveyor {
 public:
  Surveyor(const interpreter::Program& program, Stream& stream, const interpreter::Limits& limits)
      : program_(program),
        stream_(stream),
        limits_(limits),
        constant_(ConstantValues(program)),
        fixed_(FixedValues(program, constant_)),
        without_elements_(NodesWithoutElements(program.graph())),
        most_folded_(kFoldedBytes + 2 * program.weight_bytes()),
        blocks_(std::make_shared<interpreter::BlockRange>(
            limits.budget, interpreter::BlockRange::AddressesFor(limits.max_live_bytes))) {}

  // What TakeSurvey has is of the last run, where that went through.
  RunEnd Run(const RunInputs& inputs) {
    survey_ = {};
    survey_.inputs = inputs;
    survey_.shapes.resize(program_.graph().values.size());
    survey_.dtypes.resize(program_.graph().values.size());
    folded_ = 0;
    for (const auto& [value, array] : program_.constants()) Note(value, array);
    RunEnd end;
    end.status = Watch(inputs, end);
    return end;
  }

  Survey TakeSurvey() {
    blocks_->FreeKept();  // constants that were computed still lie in others
    return std::move(survey_);
  }

 private:
  Status Watch(const RunInputs& inputs, RunEnd& end) {
    std::vector<std::vector<std::byte>> held;
    SWIZZLE_ASSIGN_OR_RETURN(const std::vector<TensorView> views, FilledInputs(program_, inputs, limits_, held));
    survey_.memory.rows = views.empty() || views[0].shape.empty() ? 1 : std::max<int64_t>(views[0].shape[0], 1);
    const auto watch = [&](const Node& node, std::span<Array> given, interpreter::Memory& memory, Stream&) {
      survey_.memory.bytes = std::max(survey_.memory.bytes, memory.live_bytes());
      end.node = static_cast<int>(&node - program_.graph().nodes.data());
      end.given.assign(given.begin(), given.end());
      int64_t computed = 0;
      bool of_constants = true;
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i] == kNoValue) continue;
        Note(node.inputs[i], given[i]);
        of_constants = of_constants && constant_.contains(node.inputs[i]);
        computed += given[i].bytes();
      }
      if (!of_constants || computed <= most_folded_) return Status();
      return MakeError(StatusCode::kResourceExhausted, Describe(node), ": it makes more than ", most_folded_,
                       " bytes of constants alone");
    };
    interpreter::RunSupplies supplies;
    supplies.blocks = blocks_;
    supplies.blames = true;
    supplies.without_elements = &without_elements_;
    SWIZZLE_ASSIGN_OR_RETURN(const std::vector<Array> outputs, program_.Run(views, stream_, limits_, watch, supplies));
    for (size_t i = 0; i < outputs.size(); ++i) Note(program_.graph().outputs[i].value, outputs[i]);
    return {};
  }

  // Of constants that are computed, those that find room are kept; the rest is computed in each run.
  void Note(int value, const Array& array) {
    survey_.shapes[static_cast<size_t>(value)] = array.shape;
    survey_.dtypes[static_cast<size_t>(value)] = array.dtype;
    if (fixed_.contains(value) && !survey_.fixed.contains(value) && folded_ + array.bytes() <= most_folded_) {
      folded_ += array.bytes();
      survey_.fixed.emplace(value, array);
    }
    if (!constant_.contains(value) || survey_.known.contains(value)) return;
    const bool is_given = survey_.known.size() < program_.constants().size();  // which come first
    if (!is_given && folded_ + array.bytes() > most_folded_) return;
    if (!is_given) folded_ += array.bytes();
    survey_.known.emplace(value, array);
  }

  const interpreter::Program& program_;
  Stream& stream_;
  const interpreter::Limits& limits_;
  const std::set<int> constant_, fixed_;
  const std::vector<bool> without_elements_;  // by node
  const int64_t most_folded_;
  const std::shared_ptr<interpreter::BlockRange> blocks_;  // of all runs
  int64_t folded_ = 0;
  Survey survey_;
};

void AddUses(const Graph& graph, Survey& survey) {
  survey.makers.assign(graph.values.size(), Survey::kOutside);
  survey.readers.resize(graph.values.size());
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    for (const int input : graph.nodes[n].inputs) {
      if (input != kNoValue) survey.readers[static_cast<size_t>(input)].push_back(static_cast<int>(n));
    }
    for (const int output : graph.nodes[n].outputs) {
      if (output != kNoValue) survey.makers[static_cast<size_t>(output)] = static_cast<int>(n);
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

Status CheckOutputTypes(const interpreter::Program& program, const Survey& survey) {
  for (size_t i = 0; i < program.outputs().size(); ++i) {
    const interpreter::Port& port = program.outputs()[i];
    const DType made = survey.dtypes[static_cast<size_t>(program.graph().outputs[i].value)];
    if (!port.dtype || *port.dtype == made) continue;
    return interpreter::NoRequestHelps(InvalidArgument(
        "output '", port.name, "' is declared as ", DTypeName(*port.dtype), ", but the graph makes ", DTypeName(made)));
  }
  return {};
}

StatusOr<Survey> SurveyProgram(const interpreter::Program& program, Stream& stream, const interpreter::Limits& limits,
                               const SampleShapes& samples) {
  for (const interpreter::Port& port : program.inputs()) {
    if (!port.shape || !port.dtype) return Unimplemented("input '", port.name, "' is declared without a shape");
  }
  Surveyor surveyor(program, stream, limits);
  SizeSearch search(program, stream, limits, samples, [&](const RunInputs& inputs) { return surveyor.Run(inputs); });
  SWIZZLE_RETURN_IF_ERROR(search.Find());
  Survey survey = surveyor.TakeSurvey();
  AddUses(program.graph(), survey);
  AddIdioms(program.graph(), survey);
  survey.shapes_follow = ShapesFollowShapes(program.graph());
  survey.other_shapes = survey.shapes;
  if (!survey.shapes_follow || !search.has_free_dimensions()) return survey;
  survey.shapes_follow = search.FindOther().ok();
  if (survey.shapes_follow) survey.other_shapes = surveyor.TakeSurvey().shapes;
  return survey;
}

}  // namespace swizzle::regions

#include "server/model/ensemble_graph.h"

#include <algorithm>
#include <utility>

#include "model_loader/files/printable_name.h"
#include "server/model/wire_shape.h"

namespace swizzle {
namespace {

// What is known of a tensor from whoever makes it.
struct Made {
  DType dtype = DType::kFloat32;
  Shape dims;  // with a batch dimension, where there is one
  std::string by;
};

bool Meet(const Shape& one, const Shape& other) {
  return std::ranges::equal(one, other, [](int64_t a, int64_t b) { return a == b || a == -1 || b == -1; });
}

std::string Describe(DType dtype, const Shape& dims) { return Concat(DTypeName(dtype), " ", ShapeText(dims)); }

class Connector {
 public:
  Connector(const ModelSpec& ensemble, std::span<const EnsembleStep> steps, std::span<const ModelSpec* const> models)
      : ensemble_(ensemble), given_(steps), models_(models) {}

  StatusOr<EnsembleGraph> Connect() {
    for (const TensorSpec& input : ensemble_.inputs) {
      SWIZZLE_RETURN_IF_ERROR(
          Make(input.name, {input.dtype, WireDims(ensemble_, input), "an input of the ensemble"}).status());
    }
    for (size_t i = 0; i < given_.size(); ++i) SWIZZLE_RETURN_IF_ERROR(AddStep(i));
    for (size_t i = 0; i < given_.size(); ++i) SWIZZLE_RETURN_IF_ERROR(AddReads(i));
    for (size_t i = 0; i < ensemble_.outputs.size(); ++i) SWIZZLE_RETURN_IF_ERROR(AddOutput(i));
    for (size_t i = 0; i < ensemble_.inputs.size(); ++i) {
      if (!graph_.tensors[i].readers.empty()) continue;
      return InvalidArgument("input '", graph_.tensors[i].name, "' of the ensemble is read by no step");
    }
    SWIZZLE_RETURN_IF_ERROR(CheckOrder());
    return std::move(graph_);
  }

 private:
  std::string Step(size_t i) const { return Concat("step ", i + 1, ", model '", given_[i].model, "'"); }

  StatusOr<size_t> Make(const std::string& name, Made made) {
    const size_t number = graph_.tensors.size();
    const auto [at, is_new] = numbers_.try_emplace(name, number);
    if (!is_new) {
      return InvalidArgument("tensor ", QuotedName(name), " is made twice: it is ", made_[at->second].by, ", and ",
                             made.by);
    }
    graph_.tensors.push_back({.name = name, .readers = {}, .output = std::nullopt});
    made_.push_back(std::move(made));
    return number;
  }

  // Batches go through an ensemble as they are.
  Status CheckBatches(size_t i) const {
    const int64_t wanted = ensemble_.max_batch_size, most = models_[i]->max_batch_size;
    if (wanted == 0 || wanted <= most) return absl::OkStatus();
    if (most == 0) {
      return InvalidArgument("'max_batch_size' is ", wanted, ", but ", Step(i),
                             ", takes no batches; set it to 0, and give 'dims' with their batch dimension");
    }
    return InvalidArgument("'max_batch_size' is ", wanted, ", but ", Step(i), ", takes batches of ", most,
                           " at most; set it to that");
  }

  Status AddStep(size_t i) {
    const ModelSpec& model = *models_[i];
    if (model.decoupled) {
      return Unimplemented(Step(i), ", is decoupled, and a step gives one answer to a request; use another model");
    }
    SWIZZLE_RETURN_IF_ERROR(CheckBatches(i));
    EnsembleGraph::Step& step = graph_.steps.emplace_back();
    step.inputs.resize(model.inputs.size());
    step.outputs.resize(model.outputs.size());
    for (const auto& [output, tensor] : given_[i].outputs) {
      const auto at = std::ranges::find(model.outputs, output, &TensorSpec::name);
      if (at == model.outputs.end()) return InvalidArgument(Step(i), ", has no output ", QuotedName(output));
      SWIZZLE_ASSIGN_OR_RETURN(
          step.outputs[static_cast<size_t>(at - model.outputs.begin())],
          Make(tensor, {at->dtype, WireDims(model, *at), Concat("output '", output, "' of ", Step(i))}));
    }
    return absl::OkStatus();
  }

  Status AddReads(size_t i) {
    const ModelSpec& model = *models_[i];
    for (const auto& [input, tensor] : given_[i].inputs) {
      const auto at = std::ranges::find(model.inputs, input, &TensorSpec::name);
      if (at == model.inputs.end()) return InvalidArgument(Step(i), ", has no input ", QuotedName(input));
      const auto found = numbers_.find(tensor);
      if (found == numbers_.end()) {
        return InvalidArgument(Step(i), ", reads tensor ", QuotedName(tensor),
                               ", which is no input of the ensemble, nor made by a step");
      }
      const size_t number = found->second;
      const Made& made = made_[number];
      const Shape dims = WireDims(model, *at);
      if (made.dtype != at->dtype || !Meet(made.dims, dims)) {
        return InvalidArgument("tensor '", tensor, "' is ", made.by, ", ", Describe(made.dtype, made.dims),
                               ", but input '", input, "' of ", Step(i), ", is ", Describe(at->dtype, dims));
      }
      EnsembleGraph::Step& step = graph_.steps[i];
      step.inputs[static_cast<size_t>(at - model.inputs.begin())] = number;
      if (std::ranges::find(step.reads, number) != step.reads.end()) continue;
      step.reads.push_back(number);
      graph_.tensors[number].readers.push_back(i);
    }
    for (size_t k = 0; k < model.inputs.size(); ++k) {
      if (graph_.steps[i].inputs[k] || model.inputs[k].default_value != nullptr) continue;
      return InvalidArgument(Step(i), ", needs its input '", model.inputs[k].name, "' in 'input_map'");
    }
    return absl::OkStatus();
  }

  Status AddOutput(size_t i) {
    const TensorSpec& output = ensemble_.outputs[i];
    const auto found = numbers_.find(output.name);
    if (found == numbers_.end() || found->second < ensemble_.inputs.size()) {
      return InvalidArgument("output '", output.name, "' of the ensemble is made by no step");
    }
    const Made& made = made_[found->second];
    const Shape dims = WireDims(ensemble_, output);
    if (made.dtype != output.dtype || !Meet(made.dims, dims)) {
      return InvalidArgument("output '", output.name, "' of the ensemble is ", Describe(output.dtype, dims),
                             ", but it is ", made.by, ", ", Describe(made.dtype, made.dims));
    }
    graph_.tensors[found->second].output = i;
    return absl::OkStatus();
  }

  // Each step has to be reached from the ensemble's inputs, or from steps that read nothing.
  Status CheckOrder() const {
    std::vector<size_t> missing;
    std::vector<size_t> ready;
    for (size_t i = 0; i < graph_.steps.size(); ++i) {
      const auto& reads = graph_.steps[i].reads;
      missing.push_back(static_cast<size_t>(
          std::ranges::count_if(reads, [&](size_t tensor) { return tensor >= ensemble_.inputs.size(); })));
      if (missing[i] == 0) ready.push_back(i);
    }
    size_t run = 0;
    for (; run < ready.size(); ++run) {
      for (const EnsembleGraph::Port& made : graph_.steps[ready[run]].outputs) {
        if (!made) continue;
        for (const size_t reader : graph_.tensors[*made].readers) {
          if (--missing[reader] == 0) ready.push_back(reader);
        }
      }
    }
    if (run == graph_.steps.size()) return absl::OkStatus();
    const auto stuck = std::ranges::find_if(missing, [](size_t count) { return count > 0; });
    return InvalidArgument(Step(static_cast<size_t>(stuck - missing.begin())), ", waits for what comes of itself");
  }

  const ModelSpec& ensemble_;
  const std::span<const EnsembleStep> given_;
  const std::span<const ModelSpec* const> models_;
  EnsembleGraph graph_;
  std::map<std::string, size_t> numbers_;  // of tensors, by name
  std::vector<Made> made_;                 // [tensor]
};

}  // namespace

StatusOr<EnsembleGraph> ConnectSteps(const ModelSpec& ensemble, std::span<const EnsembleStep> steps,
                                     std::span<const ModelSpec* const> models) {
  return Connector(ensemble, steps, models).Connect();
}

StepOutput MakerOf(const EnsembleGraph& graph, size_t ensemble_output) {
  for (size_t i = 0; i < graph.steps.size(); ++i) {
    for (size_t k = 0; k < graph.steps[i].outputs.size(); ++k) {
      const EnsembleGraph::Port& made = graph.steps[i].outputs[k];
      if (made && graph.tensors[*made].output == ensemble_output) return {i, k};
    }
  }
  SWIZZLE_CHECK(false);
  return {};
}

}  // namespace swizzle

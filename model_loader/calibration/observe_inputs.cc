#include "model_loader/calibration/observe_inputs.h"

#include <algorithm>
#include <set>
#include <span>

#include "model_loader/files/printable_name.h"

namespace swizzle {
namespace {

using fallback::Array;

bool Multiplies(const Node& node) {
  return node.domain.empty() && (node.op == "Conv" || node.op == "Gemm" || node.op == "MatMul");
}

class Observation {
 public:
  Observation(const fallback::Program& program, std::vector<TensorView> inputs, Stream& stream)
      : program_(program), inputs_(std::move(inputs)), stream_(stream) {
    for (const auto& [value, elements] : program.constants()) constants_.insert(value);
    const auto is_constant = [&](int input) { return input == kNoValue || constants_.contains(input); };
    for (const Node& node : program.graph().nodes) {
      if (std::ranges::all_of(node.inputs, is_constant)) constants_.insert(node.outputs.begin(), node.outputs.end());
    }
  }

  // Each value once, at the first layer that reads it.
  template <typename See>
  Status Run(const See& see) {
    const fallback::Limits limits{.max_array_bytes = int64_t{1} << 34, .max_live_bytes = int64_t{1} << 36};
    std::set<int> seen;
    const auto watch = [&](const Node& node, std::span<Array> given, fallback::Memory&, Stream&) {
      const bool layer =
          Multiplies(node) && constants_.contains(node.inputs[1]) && !constants_.contains(node.inputs[0]);
      if (!layer || given[0].dtype != DType::kFloat32 || !seen.insert(node.inputs[0]).second) return Status();
      see(observers_[program_.graph().values[static_cast<size_t>(node.inputs[0])].name], given[0].As<float>());
      return Status();
    };
    return program_.Run(inputs_, stream_, limits, watch).status();
  }

  std::map<std::string, Observer> Take() { return std::move(observers_); }

 private:
  const fallback::Program& program_;
  const std::vector<TensorView> inputs_;
  Stream& stream_;
  std::set<int> constants_;
  std::map<std::string, Observer> observers_;
};

}  // namespace

StatusOr<std::vector<TensorView>> CalibrationInputs(const fallback::Program& program, const NpyArrays& inputs) {
  for (const auto& [name, array] : inputs) {
    const auto same = [&name = name](const fallback::Port& port) { return port.name == name; };
    if (std::ranges::none_of(program.inputs(), same)) {
      return InvalidArgument("calibration: the model has no input ", QuotedName(name));
    }
  }
  std::vector<TensorView> views;
  for (const fallback::Port& port : program.inputs()) {
    const auto found = inputs.find(port.name);
    if (found == inputs.end()) return InvalidArgument("calibration: input '", port.name, "' is missing");
    views.push_back(found->second.view());
  }
  return views;
}

StatusOr<std::map<std::string, Observer>> ObserveLayerInputs(const fallback::Program& program, const NpyArrays& inputs,
                                                             Stream& stream,
                                                             const std::function<void(const char*)>& progress) {
  SWIZZLE_ASSIGN_OR_RETURN(std::vector<TensorView> views, CalibrationInputs(program, inputs));
  Observation observation(program, std::move(views), stream);
  progress("Ranges");
  SWIZZLE_RETURN_IF_ERROR(
      observation.Run([](Observer& observer, std::span<const float> values) { observer.SeeRange(values); }));
  progress("Values");
  SWIZZLE_RETURN_IF_ERROR(
      observation.Run([](Observer& observer, std::span<const float> values) { observer.SeeValues(values, 1); }));
  return observation.Take();
}

}  // namespace swizzle

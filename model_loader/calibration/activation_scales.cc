#include "model_loader/calibration/activation_scales.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <utility>

#include "model_loader/calibration/roundings.h"
#include "model_loader/files/printable_name.h"

namespace swizzle {
namespace {

using fallback::Array;

// Of each channel of a dimension; empty where the array has none such.
std::vector<double> MeansOf(const Array& array, int64_t axis) {
  if (axis < 0 || axis >= array.rank() || array.elements() == 0) return {};
  const auto channels = static_cast<size_t>(array.shape[static_cast<size_t>(axis)]);
  size_t inner = 1;
  for (int64_t i = axis + 1; i < array.rank(); ++i) inner *= static_cast<size_t>(array.shape[static_cast<size_t>(i)]);
  std::vector<double> means(channels);
  std::vector<int64_t> counts(channels);
  const std::span<const float> values = array.As<float>();
  size_t channel = 0;
  for (size_t at = 0; at < values.size(); at += inner, channel = channel + 1 == channels ? 0 : channel + 1) {
    for (const float value : values.subspan(at, inner)) {
      if (!std::isfinite(value)) continue;  // as an observer has it
      means[channel] += value;
      ++counts[channel];
    }
  }
  for (size_t i = 0; i < channels; ++i) means[i] /= static_cast<double>(std::max<int64_t>(counts[i], 1));
  return means;
}

// What is kept of a value beside what its observer keeps.
struct Seen {
  std::vector<double> plane_means, vector_means;
  Shape plane;

  explicit Seen(const Array& array) : plane_means(MeansOf(array, 1)), vector_means(MeansOf(array, array.rank() - 1)) {
    if (array.rank() > 2) plane.assign(array.shape.begin() + 2, array.shape.end());
  }
};

// Runs of a program that see what its nodes read.
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

  Status SeeRanges() {
    return Run([&](int value, const Array& array) {
      if (array.rank() == 4) planes_.insert(value);
      observers_[value].SeeRange(array.As<float>());
    });
  }

  // Of those that are rounded; nothing else is kept.
  Status SeeValues(const std::function<bool(const std::string&)>& skips) {
    const auto is_constant = [&](int value) { return constants_.contains(value); };
    const auto is_plane = [&](int value) { return planes_.contains(value); };
    const auto is_whole = [&](const Node& node) { return IsWeightedLayer(node, is_constant) && !skips(node.name); };
    alike_ = FindRoundings(program_.graph(), is_whole, is_constant, is_plane);
    std::erase_if(observers_, [&](const auto& seen) { return alike_[static_cast<size_t>(seen.first)] < 0; });
    return Run([&](int value, const Array& array) {
      const auto found = observers_.find(value);
      if (found == observers_.end()) return;
      found->second.SeeValues(array.As<float>(), 1);
      seen_.emplace(value, array);
    });
  }

  std::map<std::string, ActivationScale> Choose(ObserverKind kind) const {
    std::map<int, Quantised> shared;
    for (const auto& [value, observer] : observers_) {
      const Quantised own = observer.Choose(kind);
      const auto [found, is_new] = shared.try_emplace(alike_[static_cast<size_t>(value)], own);
      if (!is_new) found->second = Observer::Spanning(found->second, own);
    }
    std::map<std::string, ActivationScale> scales;
    for (const auto& [value, observer] : observers_) {
      const Quantised& as = shared.at(alike_[static_cast<size_t>(value)]);
      ActivationScale& scale = scales[program_.graph().values[static_cast<size_t>(value)].name];
      scale.as = as;
      scale.decibels = observer.SignalToNoise(as);
      const auto seen = seen_.find(value);
      if (seen == seen_.end()) continue;
      scale.plane_means = seen->second.plane_means;
      scale.vector_means = seen->second.vector_means;
      scale.plane = seen->second.plane;
    }
    return scales;
  }

 private:
  // Each FP32 value once, at the first node that reads it.
  template <typename See>
  Status Run(const See& see) {
    const fallback::Limits limits{.max_array_bytes = int64_t{1} << 34, .max_live_bytes = int64_t{1} << 36};
    std::set<int> seen;
    const auto watch = [&](const Node& node, std::span<Array> given, fallback::Memory&, Stream&) {
      for (size_t i = 0; i < given.size(); ++i) {
        const int value = node.inputs[i];
        if (value == kNoValue || constants_.contains(value) || given[i].dtype != DType::kFloat32) continue;
        if (!given[i].IsSequence() && seen.insert(value).second) see(value, given[i]);
      }
      return Status();
    };
    return program_.Run(inputs_, stream_, limits, watch).status();
  }

  const fallback::Program& program_;
  const std::vector<TensorView> inputs_;
  Stream& stream_;
  std::set<int> constants_, planes_;
  std::map<int, Observer> observers_;  // by value
  std::map<int, Seen> seen_;           // likewise
  std::vector<int> alike_;             // by value, as FindRoundings has it
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

StatusOr<std::map<std::string, ActivationScale>> ChooseActivationScales(const fallback::Program& program,
                                                                        const NpyArrays& inputs, Stream& stream,
                                                                        const ScaleChoice& choice) {
  SWIZZLE_ASSIGN_OR_RETURN(std::vector<TensorView> views, CalibrationInputs(program, inputs));
  Observation observation(program, std::move(views), stream);
  choice.progress("Ranges");
  SWIZZLE_RETURN_IF_ERROR(observation.SeeRanges());
  choice.progress("Values");
  SWIZZLE_RETURN_IF_ERROR(observation.SeeValues(choice.skips));
  return observation.Choose(choice.observer);
}

}  // namespace swizzle

#include "model_loader/calibration/activation_scales.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <utility>

#include "model_loader/calibration/calibration_runs.h"
#include "model_loader/calibration/roundings.h"

namespace swizzle {
namespace {

using interpreter::Array;

// Means of each channel of a dimension, over arrays that have as many channels there.
class ChannelMeans {
 public:
  // Nothing where the array has no such dimension.
  void See(const Array& array, int64_t axis) {
    if (axis < 0 || axis >= array.rank() || array.elements() == 0) return;
    const auto channels = static_cast<size_t>(array.shape[static_cast<size_t>(axis)]);
    sums_.resize(channels);
    counts_.resize(channels);
    size_t inner = 1;
    for (int64_t i = axis + 1; i < array.rank(); ++i) inner *= static_cast<size_t>(array.shape[static_cast<size_t>(i)]);
    const std::span<const float> values = array.As<float>();
    size_t channel = 0;
    for (size_t at = 0; at < values.size(); at += inner, channel = channel + 1 == channels ? 0 : channel + 1) {
      for (const float value : values.subspan(at, inner)) {
        if (!std::isfinite(value)) continue;  // as an observer has it
        sums_[channel] += value;
        ++counts_[channel];
      }
    }
  }

  // Empty where nothing was seen.
  std::vector<double> Means() const {
    std::vector<double> means = sums_;
    for (size_t i = 0; i < means.size(); ++i) means[i] /= static_cast<double>(std::max<int64_t>(counts_[i], 1));
    return means;
  }

 private:
  std::vector<double> sums_;
  std::vector<int64_t> counts_;
};

// What is kept of a value beside what its observer keeps.
struct Seen {
  ChannelMeans of_planes, of_vectors;
  Shape plane;

  void See(const Array& array) {
    of_planes.See(array, 1);
    of_vectors.See(array, array.rank() - 1);
    if (array.rank() > 2) plane.assign(array.shape.begin() + 2, array.shape.end());
  }
};

// Runs of a program that see what its nodes read.
class Observation {
 public:
  Observation(const interpreter::Program& program, const CalibrationRuns& runs) : program_(program), runs_(runs) {}

  Status SeeRanges() {
    return Run("Ranges", [&](int value, const Array& array) {
      if (array.rank() == 4) planes_.insert(value);
      observers_[value].SeeRange(array.As<float>());
    });
  }

  // Of those that are rounded; nothing else is kept.
  Status SeeValues(const std::function<bool(const std::string&)>& skips) {
    const auto is_constant = [&](int value) { return runs_.IsConstant(value); };
    const auto is_plane = [&](int value) { return planes_.contains(value); };
    const auto is_whole = [&](const Node& node) { return IsWeightedLayer(node, is_constant) && !skips(node.name); };
    alike_ = FindRoundings(program_.graph(), is_whole, is_constant, is_plane);
    std::erase_if(observers_, [&](const auto& seen) { return alike_[static_cast<size_t>(seen.first)] < 0; });
    return Run("Values", [&](int value, const Array& array) {
      const auto found = observers_.find(value);
      if (found == observers_.end()) return;
      found->second.SeeValues(array.As<float>(), 1);
      seen_[value].See(array);
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
      scale.plane_means = seen->second.of_planes.Means();
      scale.vector_means = seen->second.of_vectors.Means();
      scale.plane = seen->second.plane;
    }
    return scales;
  }

 private:
  // Of each batch each FP32 value once, at the first node that reads it.
  template <typename See>
  Status Run(const char* round, const See& see) {
    std::set<int> seen;
    const auto begin = [&] { seen.clear(); };
    return runs_.Run(round, begin, [&](const Node& node, std::span<Array> given) {
      for (size_t i = 0; i < given.size(); ++i) {
        const int value = node.inputs[i];
        if (value == kNoValue || runs_.IsConstant(value) || given[i].dtype != DType::kFloat32) continue;
        if (!given[i].IsSequence() && seen.insert(value).second) see(value, given[i]);
      }
    });
  }

  const interpreter::Program& program_;
  const CalibrationRuns& runs_;
  std::set<int> planes_;
  std::map<int, Observer> observers_;  // by value
  std::map<int, Seen> seen_;           // likewise
  std::vector<int> alike_;             // by value, as FindRoundings has it
};

}  // namespace

StatusOr<std::map<std::string, ActivationScale>> ChooseActivationScales(const interpreter::Program& program,
                                                                        const NpyArrays& inputs, Stream& stream,
                                                                        const ScaleChoice& choice) {
  SWIZZLE_ASSIGN_OR_RETURN(const CalibrationRuns runs, CalibrationRuns::Of(program, inputs, stream, choice.progress));
  Observation observation(program, runs);
  SWIZZLE_RETURN_IF_ERROR(observation.SeeRanges());
  SWIZZLE_RETURN_IF_ERROR(observation.SeeValues(choice.skips));
  return observation.Choose(choice.observer);
}

}  // namespace swizzle

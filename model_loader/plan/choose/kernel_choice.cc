#include "model_loader/plan/choose/kernel_choice.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

namespace swizzle {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNoise = 1.02;      // plans whose times differ by less count as equal
constexpr double kWeightStep = 2.0;  // of a batch size at which a plan is slower than a dense one
constexpr int kMostChoices = 8;
constexpr double kRoundsLess = 1e6;  // more than any plan costs

bool AnyCandidate(size_t, const Candidate&) { return true; }

using Times = std::vector<double>;  // microseconds per measured batch size
using Weights = std::vector<double>;

bool SkipsZeros(const Candidate& candidate) {
  return candidate.kernel != nullptr && IsSparse(candidate.kernel->key.weights);
}

bool IsNotSparse(size_t, const Candidate& candidate) { return !SkipsZeros(candidate); }

// What one batch size weighs in a candidate's cost, so that every size counts the same in total: the inverse of the
// least time all layers could take at it.
Weights EqualWeights(const LayerCandidates& layers, size_t batches) {
  Weights weights(batches);
  for (size_t b = 0; b < batches; ++b) {
    double total = 0.0;
    for (const auto& candidates : layers) {
      double least = kInfinity;
      for (const Candidate& candidate : candidates) least = std::min(least, candidate.microseconds[b]);
      total += least;
    }
    weights[b] = total > 0.0 ? 1.0 / total : 1.0;
  }
  return weights;
}

double WeightedCost(const Times& times, const Weights& weights) {
  double cost = 0.0;
  for (size_t b = 0; b < times.size(); ++b) cost += weights[b] == 0.0 ? 0.0 : times[b] * weights[b];
  return cost;
}

// The network's inputs or outputs, as requests bring them and results leave.
std::vector<StoredValue> PortValues(const std::vector<NetworkPort>& ports) {
  std::vector<StoredValue> values;
  for (const NetworkPort& port : ports) {
    if (port.value != -1) values.push_back({port.value, port.storage()});
  }
  return values;
}

class Chooser {
 public:
  Chooser(const Network& network, const LayerCandidates& candidates, const ConversionTimes& conversion_times)
      : network_(network), candidates_(candidates), conversion_times_(conversion_times) {}

  // Conversions are asked for, and measured, only where they may matter: first without candidates that round less, of
  // which none is chosen unless the others are not enough.
  StatusOr<std::vector<int>> Choose(const Weights& weights, IsAvailable available) {
    const auto rounds = [&](size_t layer, const Candidate& candidate) {
      return !candidate.rounds_less && available(layer, candidate);
    };
    if (EachLayerHas(rounds)) {
      SWIZZLE_ASSIGN_OR_RETURN(std::vector<int> chosen, ChooseAmong(weights, rounds));
      SWIZZLE_ASSIGN_OR_RETURN(const Times times, TimesOf(chosen));
      if (std::isfinite(WeightedCost(times, weights))) return chosen;
    }
    SWIZZLE_ASSIGN_OR_RETURN(std::vector<int> chosen, ChooseAmong(weights, available));
    return chosen;
  }

  // Of one batch size.
  StatusOr<std::vector<int>> ChooseAt(size_t batch, IsAvailable available) {
    Weights weights(candidates_.front().front().microseconds.size(), 0.0);
    weights[batch] = 1.0;
    return Choose(weights, available);
  }

  // Of all layers, and the conversions between them as ChooseOptions counts them.
  StatusOr<Times> TimesOf(const std::vector<int>& chosen) {
    Times total(candidates_.front().front().microseconds.size(), 0.0);
    std::vector<Storage> stored(network_.values.size());
    for (const auto& [value, storage] : PortValues(network_.inputs)) stored[value] = storage;
    for (size_t i = 0; i < chosen.size(); ++i) {
      const LayerOptions layer = OptionsOf(network_.layers[i]);
      const Candidate& candidate = candidates_[i][chosen[i]];
      for (size_t input = 0; input < layer.inputs.size(); ++input) {
        const int value = layer.inputs[input];
        const Storage to = layer.InputStorage(input, OptionOf(candidate, 0));
        SWIZZLE_RETURN_IF_ERROR(AddConversion(value, stored[value], to, total));
      }
      for (size_t b = 0; b < total.size(); ++b) total[b] += candidate.microseconds[b];
      stored[layer.output] = candidate.output;
    }
    for (const auto& [value, storage] : PortValues(network_.outputs)) {
      SWIZZLE_RETURN_IF_ERROR(AddConversion(value, stored[value], storage, total));
    }
    return total;
  }

 private:
  bool EachLayerHas(IsAvailable available) const {
    for (size_t i = 0; i < candidates_.size(); ++i) {
      if (std::ranges::none_of(candidates_[i], [&](const Candidate& candidate) { return available(i, candidate); })) {
        return false;
      }
    }
    return true;
  }

  // A layer that has none available takes any.
  StatusOr<std::vector<int>> ChooseAmong(const Weights& weights, IsAvailable available) {
    std::vector<LayerOptions> layers;
    std::vector<std::vector<int>> places(candidates_.size());  // of options among the layer's candidates
    for (size_t i = 0; i < candidates_.size(); ++i) {
      layers.push_back(OptionsOf(network_.layers[i]));
      const bool any = std::ranges::none_of(candidates_[i], [&](const Candidate& c) { return available(i, c); });
      for (const Candidate& candidate : candidates_[i]) {
        if (!any && !available(i, candidate)) continue;
        double cost = any ? kInfinity : WeightedCost(candidate.microseconds, weights);
        if (candidate.rounds_less) cost += kRoundsLess;
        layers.back().options.push_back(OptionOf(candidate, cost));
        places[i].push_back(static_cast<int>(&candidate - candidates_[i].data()));
      }
    }
    Status failure;
    const auto conversion_cost = [&](int value, Storage from, Storage to) {
      auto times = conversion_times_(network_.values[value], from, to);
      if (!times.ok()) failure = times.status();
      return times.ok() && !times->empty() ? WeightedCost(*times, weights) : kInfinity;
    };
    std::vector<int> chosen =
        ChooseOptions(layers, PortValues(network_.inputs), PortValues(network_.outputs), conversion_cost);
    SWIZZLE_RETURN_IF_ERROR(failure);
    for (size_t i = 0; i < chosen.size(); ++i) chosen[i] = places[i][chosen[i]];
    return chosen;
  }

  static LayerOption OptionOf(const Candidate& candidate, double cost) {
    return {candidate.input, candidate.output, cost, ResidualStorage(candidate)};
  }

  static LayerOptions OptionsOf(const Layer& layer) {
    return {layer.inputs, layer.epilogue.residual, layer.output, {}};
  }

  Status AddConversion(int value, Storage from, Storage to, Times& total) {
    if (from == to) return absl::OkStatus();
    SWIZZLE_ASSIGN_OR_RETURN(const Times times, conversion_times_(network_.values[value], from, to));
    for (size_t b = 0; b < total.size(); ++b) total[b] = times.empty() ? kInfinity : total[b] + times[b];
    return absl::OkStatus();
  }

  const Network& network_;
  const LayerCandidates& candidates_;
  const ConversionTimes& conversion_times_;
};

// As the network holds the weight: in proportion to what the packed form takes, whose type and layout are the same for
// most layers.
double FormBytes(const Network& network, size_t layer, const Candidate& candidate) {
  if (!TakesWeight(candidate)) return 0.0;
  const Weight& weight = network.weights[network.layers[layer].weight];
  return static_cast<double>(SkipsZeros(candidate) ? static_cast<int64_t>(weight.StoredBytes()) : weight.DenseBytes());
}

// What a batch gains by one of a layer's candidates in place of another. Where either computes the norm behind it, too,
// that layer changes with it.
double GainOf(const LayerCandidates& candidates, const std::vector<int>& from, const std::vector<int>& to, size_t layer,
              size_t batch) {
  const auto time = [&](size_t of, const std::vector<int>& chosen) {
    return candidates[of][chosen[of]].microseconds[batch];
  };
  const int norm = std::max(candidates[layer][from[layer]].norm, candidates[layer][to[layer]].norm);
  return time(layer, from) - time(layer, to) + (norm < 0 ? 0.0 : time(norm, from) - time(norm, to));
}

// The layer whose kernel computes this one, too: itself unless it is a norm that another's does.
size_t ComputedBy(const LayerCandidates& candidates, const std::vector<int>& chosen, size_t layer) {
  for (size_t i = 0; i < layer; ++i) {
    if (candidates[i][chosen[i]].norm == static_cast<int>(layer)) return i;
  }
  return layer;
}

// Whether every layer has a dense kernel and makes do with it.
bool IsDense(const LayerCandidates& candidates, const std::vector<int>& chosen) {
  for (size_t i = 0; i < chosen.size(); ++i) {
    if (SkipsZeros(candidates[i][chosen[i]])) return false;
  }
  return true;
}

}  // namespace

StatusOr<std::vector<int>> ChooseKernels(const Network& network, const LayerCandidates& candidates,
                                         const ConversionTimes& conversion_times) {
  if (candidates.empty()) return std::vector<int>();
  Chooser chooser(network, candidates, conversion_times);
  Weights weights = EqualWeights(candidates, candidates.front().front().microseconds.size());
  SWIZZLE_ASSIGN_OR_RETURN(std::vector<int> chosen, chooser.Choose(weights, AnyCandidate));
  SWIZZLE_ASSIGN_OR_RETURN(std::vector<int> dense, chooser.Choose(weights, IsNotSparse));
  if (!IsDense(candidates, dense)) return chosen;
  SWIZZLE_ASSIGN_OR_RETURN(const Times limits, chooser.TimesOf(dense));
  for (int i = 0; i < kMostChoices; ++i) {
    SWIZZLE_ASSIGN_OR_RETURN(const Times times, chooser.TimesOf(chosen));
    bool slower = false;
    for (size_t b = 0; b < times.size(); ++b) {
      if (times[b] <= limits[b] * kNoise) continue;
      slower = true;
      weights[b] *= kWeightStep;
    }
    if (!slower) return chosen;
    SWIZZLE_ASSIGN_OR_RETURN(chosen, chooser.Choose(weights, AnyCandidate));
  }
  return dense;
}

StatusOr<std::vector<std::vector<int>>> ChooseKernelsBySize(const Network& network, const LayerCandidates& candidates,
                                                            const ConversionTimes& conversion_times,
                                                            const std::vector<int>& common, IsAvailable available) {
  if (candidates.empty()) return std::vector<std::vector<int>>{common};
  Chooser chooser(network, candidates, conversion_times);
  SWIZZLE_ASSIGN_OR_RETURN(const Times limits, chooser.TimesOf(common));
  std::vector<std::vector<int>> choices;
  for (size_t b = 0; b < limits.size(); ++b) {
    SWIZZLE_ASSIGN_OR_RETURN(std::vector<int> chosen, chooser.ChooseAt(b, available));
    SWIZZLE_ASSIGN_OR_RETURN(const Times times, chooser.TimesOf(chosen));
    if (times[b] * kNoise >= limits[b]) chosen = common;
    choices.push_back(std::move(chosen));
  }
  if (std::ranges::count(choices, common) == std::ssize(choices)) choices.resize(1);
  return choices;
}

StatusOr<std::vector<WantedForm>> FindWantedForms(const Network& network, const LayerCandidates& candidates,
                                                  const ConversionTimes& conversion_times,
                                                  const std::vector<int>& common, double least_worth) {
  SWIZZLE_ASSIGN_OR_RETURN(const auto choices,
                           ChooseKernelsBySize(network, candidates, conversion_times, common, AnyCandidate));
  std::vector<WantedForm> wanted;
  if (choices.size() == 1) return wanted;
  SWIZZLE_ASSIGN_OR_RETURN(const Times totals, Chooser(network, candidates, conversion_times).TimesOf(common));
  for (size_t b = 0; b < choices.size(); ++b) {
    for (size_t layer = 0; layer < candidates.size(); ++layer) {
      const Candidate& held = candidates[layer][common[layer]];
      const Candidate& other = candidates[layer][choices[b][layer]];
      const bool known = other.measured || other.alike;
      if (!known || !TakesWeight(other) || ReadSameForm(held, other)) continue;
      const double gain =
          GainOf(candidates, common, choices[b], ComputedBy(candidates, common, layer), b) / std::max(totals[b], 1e-3);
      const auto same = std::ranges::find_if(wanted, [&](const WantedForm& form) {
        return form.layer == layer && ReadSameForm(candidates[layer][form.candidate], other);
      });
      if (same == wanted.end()) {
        wanted.push_back({layer, choices[b][layer], gain});
      } else {
        same->gain += gain;
      }
    }
  }
  double held_bytes = 0.0;
  for (size_t layer = 0; layer < candidates.size(); ++layer) {
    held_bytes += FormBytes(network, layer, candidates[layer][common[layer]]);
  }
  const auto gain_per_byte = [&](const WantedForm& form) {
    return form.gain / std::max(FormBytes(network, form.layer, candidates[form.layer][form.candidate]), 1.0);
  };
  std::erase_if(wanted, [&](const WantedForm& form) {
    const double worth = gain_per_byte(form) * held_bytes / static_cast<double>(totals.size());
    return form.gain <= 0.0 || worth < least_worth;
  });
  std::ranges::stable_sort(wanted, std::greater<>(), gain_per_byte);
  return wanted;
}

}  // namespace swizzle

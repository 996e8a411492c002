#include "model_loader/plan/choose/layout_choice.h"

#include <algorithm>
#include <map>

#include "kernels/base/status.h"

namespace swizzle {
namespace {

constexpr size_t kMaxStates = 4096;

// How each value is stored that a later layer still reads.
using LiveValues = std::map<int, Storage>;

struct Trace {
  double cost = 0.0;
  int option = -1;  // of the layer just decided
  const Trace* before = nullptr;
};

using States = std::map<LiveValues, Trace>;

// The last layer that reads each value.
std::map<int, size_t> LastReads(std::span<const LayerOptions> layers) {
  std::map<int, size_t> last;
  for (size_t i = 0; i < layers.size(); ++i) {
    for (int value : layers[i].inputs) last[value] = i;
  }
  return last;
}

// What it costs to give a value out, if it is one of the network's outputs, the same perhaps several times. It counts
// where the value is made: of many outputs, few are then alive at once.
double OutputConversions(int value, const Storage& from, std::span<const StoredValue> network_outputs,
                         const ConversionCost& conversion_cost) {
  double cost = 0.0;
  for (const StoredValue& output : network_outputs) {
    if (output.value == value && output.storage != from) cost += conversion_cost(value, from, output.storage);
  }
  return cost;
}

double InputConversions(const LayerOptions& layer, const LayerOption& option, const LiveValues& live,
                        const ConversionCost& conversion_cost) {
  double cost = 0.0;
  for (size_t i = 0; i < layer.inputs.size(); ++i) {
    const Storage from = live.at(layer.inputs[i]);
    const Storage to = layer.InputStorage(i, option);
    if (from != to) cost += conversion_cost(layer.inputs[i], from, to);
  }
  return cost;
}

void DropDearest(States& states) {
  if (states.size() <= kMaxStates) return;
  std::vector<double> costs;
  for (const auto& [live, trace] : states) costs.push_back(trace.cost);
  std::nth_element(costs.begin(), costs.begin() + kMaxStates, costs.end());
  const double limit = costs[kMaxStates];
  size_t ties = kMaxStates - std::count_if(costs.begin(), costs.end(), [&](double cost) { return cost < limit; });
  std::erase_if(states, [&](const auto& state) {
    if (state.second.cost == limit && ties > 0) return --ties, false;
    return state.second.cost >= limit;
  });
}

// Of options that are stored alike the cheapest, which is the first of equals: no other is part of a best choice.
std::vector<size_t> CheapestOptions(const LayerOptions& layer) {
  std::vector<size_t> cheapest;
  for (size_t o = 0; o < layer.options.size(); ++o) {
    const LayerOption& option = layer.options[o];
    const auto like = std::ranges::find_if(cheapest, [&](size_t other) {
      return layer.options[other].input == option.input && layer.options[other].output == option.output;
    });
    if (like == cheapest.end()) {
      cheapest.push_back(o);
    } else if (option.cost < layer.options[*like].cost) {
      *like = o;
    }
  }
  return cheapest;
}

// All states after layer `index`. Traces point into `states`, which must outlive the result.
States Advance(const States& states, const LayerOptions& layer, size_t index, const std::map<int, size_t>& last_reads,
               std::span<const StoredValue> network_outputs, const ConversionCost& conversion_cost) {
  States next;
  const std::vector<size_t> options = CheapestOptions(layer);
  std::vector<double> own_costs;
  for (const size_t o : options) {
    const LayerOption& option = layer.options[o];
    own_costs.push_back(option.cost + OutputConversions(layer.output, option.output, network_outputs, conversion_cost));
  }
  for (const auto& [live, trace] : states) {
    for (size_t i = 0; i < options.size(); ++i) {
      const size_t o = options[i];
      const LayerOption& option = layer.options[o];
      const double cost = trace.cost + own_costs[i] + InputConversions(layer, option, live, conversion_cost);
      LiveValues after = live;
      for (int value : layer.inputs) {
        if (last_reads.at(value) == index) after.erase(value);
      }
      if (last_reads.contains(layer.output)) after[layer.output] = option.output;
      auto [it, inserted] = next.try_emplace(std::move(after), Trace{cost, static_cast<int>(o), &trace});
      if (!inserted && cost < it->second.cost) it->second = Trace{cost, static_cast<int>(o), &trace};
    }
  }
  DropDearest(next);
  return next;
}

}  // namespace

std::vector<int> ChooseOptions(std::span<const LayerOptions> layers, std::span<const StoredValue> network_inputs,
                               std::span<const StoredValue> network_outputs, const ConversionCost& conversion_cost) {
  const std::map<int, size_t> last_reads = LastReads(layers);
  LiveValues arriving;
  for (const StoredValue& input : network_inputs) arriving[input.value] = input.storage;

  std::vector<States> history(layers.size() + 1);
  history[0].emplace(std::move(arriving), Trace{});
  for (size_t i = 0; i < layers.size(); ++i) {
    SWIZZLE_CHECK(!layers[i].options.empty());
    history[i + 1] = Advance(history[i], layers[i], i, last_reads, network_outputs, conversion_cost);
  }

  const Trace* best = nullptr;
  for (const auto& [live, trace] : history.back()) {
    if (best == nullptr || trace.cost < best->cost) best = &trace;
  }
  std::vector<int> chosen(layers.size());
  for (size_t i = layers.size(); i-- > 0; best = best->before) chosen[i] = best->option;
  return chosen;
}

}  // namespace swizzle

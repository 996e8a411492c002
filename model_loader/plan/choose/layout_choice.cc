#include "model_loader/plan/choose/layout_choice.h"

#include <algorithm>
#include <map>

#include "kernels/base/status.h"

namespace swizzle {
namespace {

constexpr size_t kMaxStates = 4096;

// How each value is stored that a later layer, or the caller, still reads.
using LiveValues = std::map<int, Storage>;

struct Trace {
  double cost = 0.0;
  int option = -1;  // of the layer just decided
  const Trace* before = nullptr;
};

using States = std::map<LiveValues, Trace>;

// The last layer that reads each value; layers.size() for the network's outputs.
std::map<int, size_t> LastReads(std::span<const LayerOptions> layers, std::span<const StoredValue> network_outputs) {
  std::map<int, size_t> last;
  for (size_t i = 0; i < layers.size(); ++i) {
    for (int value : layers[i].inputs) last[value] = i;
  }
  for (const StoredValue& output : network_outputs) last[output.value] = layers.size();
  return last;
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
               const ConversionCost& conversion_cost) {
  States next;
  const std::vector<size_t> options = CheapestOptions(layer);
  for (const auto& [live, trace] : states) {
    for (const size_t o : options) {
      const LayerOption& option = layer.options[o];
      const double cost = trace.cost + option.cost + InputConversions(layer, option, live, conversion_cost);
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
  const std::map<int, size_t> last_reads = LastReads(layers, network_outputs);
  LiveValues arriving;
  for (const StoredValue& input : network_inputs) arriving[input.value] = input.storage;

  std::vector<States> history(layers.size() + 1);
  history[0].emplace(std::move(arriving), Trace{});
  for (size_t i = 0; i < layers.size(); ++i) {
    SWIZZLE_CHECK(!layers[i].options.empty());
    history[i + 1] = Advance(history[i], layers[i], i, last_reads, conversion_cost);
  }

  const Trace* best = nullptr;
  double best_cost = 0.0;
  for (const auto& [live, trace] : history.back()) {
    double cost = trace.cost;
    for (const auto& [value, storage] : network_outputs) {
      if (live.at(value) != storage) cost += conversion_cost(value, live.at(value), storage);
    }
    if (best == nullptr || cost < best_cost) best = &trace, best_cost = cost;
  }
  std::vector<int> chosen(layers.size());
  for (size_t i = layers.size(); i-- > 0; best = best->before) chosen[i] = best->option;
  return chosen;
}

}  // namespace swizzle

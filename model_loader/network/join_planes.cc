#include "model_loader/network/join_planes.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace swizzle {
namespace {

// How often layers read the value, and whether it is an output.
int64_t ReadsOf(const Network& network, int value) {
  int64_t reads = std::ranges::count(network.outputs, value, &NetworkPort::value);
  for (const Layer& layer : network.layers) reads += std::ranges::count(layer.inputs, value);
  return reads;
}

// The layer that alone reads the value, and the one that makes the table's rows which it adds; both null where there is
// no such pair.
struct PositionSum {
  const Layer* sum = nullptr;
  const Layer* rows = nullptr;
};

PositionSum PositionSumOf(const Network& network, int value) {
  const auto reads = [&](const Layer& layer) { return std::ranges::find(layer.inputs, value) != layer.inputs.end(); };
  const auto sum = std::ranges::find_if(network.layers, reads);
  const bool adds = ReadsOf(network, value) == 1 && sum != network.layers.end() && sum->op == Op::kAdd;
  if (!adds || sum->epilogue != Epilogue()) return {};
  const int other = sum->inputs[sum->inputs[0] == value ? 1 : 0];
  const auto rows = std::ranges::find(network.layers, other, &Layer::output);
  const bool by_position = rows != network.layers.end() && rows->op == Op::kEmbedding && rows->lookup().by_position;
  if (!by_position || ReadsOf(network, other) != 1) return {};
  return {&*sum, &*rows};
}

// Adds to `added` what the encoder adds to the value by position; returns what the sum was.
int TakePositions(Network& encoder, int value, DenseMatrix& added) {
  const auto [sum, rows] = PositionSumOf(encoder, value);
  if (sum == nullptr) return value;
  const DenseMatrix table = encoder.weights[static_cast<size_t>(rows->weight)].ToDense();
  const auto first = static_cast<size_t>(rows->lookup().offset * table.cols);
  for (size_t i = 0; i < added.values.size(); ++i) added.values[i] += table.values[first + i];
  const int made = sum->output, vectors = rows->output;
  std::erase_if(encoder.layers, [&](const Layer& layer) { return layer.output == made || layer.output == vectors; });
  return made;
}

// Takes weights and values that no layer has any more out of a network that lost layers.
void DropUnread(Network& network) {
  std::vector<int> weight_of(network.weights.size(), -1), value_of(network.values.size(), -1);
  const auto keep = [](std::vector<int>& places, int index) {
    if (index >= 0) places[static_cast<size_t>(index)] = 0;
  };
  for (const auto* ports : {&network.inputs, &network.outputs}) {
    for (const NetworkPort& port : *ports) keep(value_of, port.value);
  }
  for (const Layer& layer : network.layers) {
    keep(weight_of, layer.weight);
    keep(value_of, layer.output);
    for (const int input : layer.inputs) keep(value_of, input);
  }
  const auto number = [](std::vector<int>& places, auto& held) {
    size_t count = 0;
    for (size_t i = 0; i < places.size(); ++i) {
      if (places[i] == -1) continue;
      places[i] = static_cast<int>(count);
      if (count != i) held[count] = std::move(held[i]);
      ++count;
    }
    held.resize(count);
  };
  number(weight_of, network.weights);
  number(value_of, network.values);
  const auto renumber = [](const std::vector<int>& places, int& index) {
    if (index >= 0) index = places[static_cast<size_t>(index)];
  };
  for (auto* ports : {&network.inputs, &network.outputs}) {
    for (NetworkPort& port : *ports) renumber(value_of, port.value);
  }
  for (Layer& layer : network.layers) {
    renumber(weight_of, layer.weight);
    renumber(value_of, layer.output);
    for (int& input : layer.inputs) renumber(value_of, input);
  }
}

}  // namespace

Network JoinPlanes(Network stem, Network encoder, size_t port, DenseMatrix added) {
  const int tokens = TakePositions(encoder, encoder.inputs[port].value, added);
  const int values = static_cast<int>(encoder.values.size()), weights = static_cast<int>(encoder.weights.size());
  Network joined = std::move(encoder);
  joined.inputs.erase(joined.inputs.begin() + static_cast<std::ptrdiff_t>(port));
  for (NetworkPort& input : stem.inputs) {
    input.value += values;
    if (joined.batch_size > 0) input.dims.insert(input.dims.begin(), joined.batch_size);
  }
  joined.inputs.insert(joined.inputs.begin(), stem.inputs.begin(), stem.inputs.end());
  std::ranges::move(stem.values, std::back_inserter(joined.values));
  std::ranges::move(stem.weights, std::back_inserter(joined.weights));
  std::vector<Layer> layers = std::move(stem.layers);
  for (Layer& layer : layers) {
    for (int& input : layer.inputs) input += values;
    layer.output += values;
    if (layer.weight >= 0) layer.weight += weights;
  }
  Layer makes;
  makes.SetOp(Op::kPlaneTokens);
  makes.name = Concat(joined.values[static_cast<size_t>(tokens)].name, ".tokens");
  makes.inputs = {stem.outputs.front().value + values};
  makes.output = tokens;
  makes.weight = static_cast<int>(joined.weights.size());
  joined.weights.push_back({std::move(added), {}});
  layers.push_back(std::move(makes));
  std::ranges::move(joined.layers, std::back_inserter(layers));
  joined.layers = std::move(layers);
  DropUnread(joined);
  return joined;
}

}  // namespace swizzle

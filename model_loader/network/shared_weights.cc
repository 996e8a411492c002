#include "model_loader/network/shared_weights.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

namespace swizzle {
namespace {

class ContentSink final : public PartSink {
 public:
  void Scalar(std::string_view, int64_t number) override { Add(std::as_bytes(std::span(&number, 1))); }
  void Array(const MatrixArray&, std::span<const std::byte> elements) override { Add(elements); }
  void Add(std::span<const std::byte> bytes) { hash = XXH3_64bits_withSeed(bytes.data(), bytes.size(), hash); }

  uint64_t hash = 0;
};

void AddMatrix(const Weight& weight, ContentSink& sink) {
  sink.Scalar("format", static_cast<int64_t>(weight.format()));
  sink.Scalar("rows", weight.rows());
  sink.Scalar("columns", weight.cols());
  weight.matrix.Write(sink);
  sink.Add(std::as_bytes(std::span(weight.bias)));
}

bool AreSame(const Problem& a, const Problem& b) {
  return static_cast<const Operator&>(a) == static_cast<const Operator&>(b) && a.input == b.input &&
         a.output == b.output && a.inputs_as == b.inputs_as;
}

}  // namespace

uint64_t WeightHash(const Weight& weight) {
  ContentSink sink;
  AddMatrix(weight, sink);
  sink.Scalar("is quantised", weight.quantisation ? 1 : 0);
  if (!weight.quantisation) return sink.hash;
  sink.Scalar("type", static_cast<int64_t>(weight.quantisation->dtype));
  sink.Add(std::as_bytes(std::span(weight.quantisation->scales)));
  sink.Add(std::as_bytes(std::span(weight.quantisation->zero_points)));
  return sink.hash;
}

int WeightCollection::Add(Weight weight) {
  const auto [known, is_new] = known_.try_emplace(WeightHash(weight), static_cast<int>(weights_.size()));
  if (is_new) weights_.push_back(std::move(weight));
  return known->second;
}

void ShareWeights(Network& network) {
  std::vector<Weight> kept;
  WeightCollection collection(kept);
  std::map<int, int> moved;  // from a weight that was there to one that is kept
  for (Layer& layer : network.layers) {
    if (layer.weight < 0) continue;
    const auto [at, is_new] = moved.try_emplace(layer.weight, static_cast<int>(kept.size()));
    Weight& weight = network.weights[layer.weight];
    if (is_new && weight.rows() == 0) {
      kept.emplace_back();  // what was left out is no weight
    } else if (is_new) {
      at->second = collection.Add(std::move(weight));
    }
    layer.weight = at->second;
  }
  network.weights = std::move(kept);
}

void UnshareWeights(Network& network) {
  std::vector<bool> has_reader(network.weights.size());
  for (Layer& layer : network.layers) {
    if (layer.weight < 0) continue;
    if (!has_reader[layer.weight]) {
      has_reader[layer.weight] = true;
      continue;
    }
    Weight copy = network.weights[layer.weight];
    layer.weight = static_cast<int>(network.weights.size());
    network.weights.push_back(std::move(copy));
    has_reader.push_back(true);
  }
}

std::vector<size_t> FirstOfAlike(const Network& network) {
  std::map<int, std::vector<size_t>> readers;  // by weight
  std::vector<size_t> first(network.layers.size());
  for (size_t i = 0; i < network.layers.size(); ++i) {
    first[i] = i;
    if (network.layers[i].weight < 0) continue;
    std::vector<size_t>& before = readers[network.layers[i].weight];
    const Problem problem = LayerProblem(network, network.layers[i], 1, 1);
    for (const size_t other : before) {
      if (first[i] != i || !AreSame(problem, LayerProblem(network, network.layers[other], 1, 1))) continue;
      first[i] = other;
    }
    if (first[i] == i) before.push_back(i);
  }
  return first;
}

}  // namespace swizzle

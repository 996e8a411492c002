#include "model_loader/plan/choose/norm_pairs.h"

#include <algorithm>
#include <utility>

#include "model_loader/plan/choose/layer_rows.h"

namespace swizzle {
namespace {

constexpr int kNone = -1;

// Of each value, the layer that makes it; and how many read it, ports among them.
struct ResidualUses {
  std::vector<int> makers, readers;

  explicit ResidualUses(const Network& network)
      : makers(network.values.size(), kNone), readers(network.values.size(), 0) {
    for (size_t i = 0; i < network.layers.size(); ++i) {
      makers[network.layers[i].output] = static_cast<int>(i);
      for (const int value : network.layers[i].inputs) ++readers[value];
    }
    for (const NetworkPort& port : network.outputs) {
      if (port.value >= 0) ++readers[port.value];
    }
  }
};

bool AddsResidualAlone(const Network& network, const Layer& layer) {
  return layer.op == Op::kConv && layer.window().IsPointwise() && layer.epilogue == Epilogue{.residual = true} &&
         !network.values[layer.output].quantisation && IsSparse(network.weights[layer.weight].format());
}

// Whether they have times that were measured, here or of a like layer.
bool AreKnown(const std::vector<Candidate>& candidates) {
  return std::ranges::any_of(candidates,
                             [](const Candidate& c) { return c.kernel != nullptr && (c.measured || c.alike); });
}

}  // namespace

std::vector<NormPair> FindNormPairs(const Network& network) {
  std::vector<NormPair> pairs;
  const ResidualUses uses(network);
  for (size_t i = 0; i < network.layers.size(); ++i) {
    const Layer& norm = network.layers[i];
    if (norm.op != Op::kLayerNorm || norm.normalisation().groups > 1) continue;
    if (network.values[norm.output].quantisation) continue;
    const int maker = uses.makers[norm.inputs[0]];
    if (maker == kNone || uses.readers[norm.inputs[0]] != 1) continue;
    if (AddsResidualAlone(network, network.layers[maker])) pairs.push_back({static_cast<size_t>(maker), i});
  }
  return pairs;
}

Layer LayerOfPair(const Network& network, NormPair pair) {
  Layer both = network.layers[pair.norm];
  both.name = network.layers[pair.product].name;
  both.inputs = network.layers[pair.product].inputs;
  both.epilogue.residual = true;
  both.weight = kNone;
  return both;
}

Weight WeightOfPair(const Network& network, NormPair pair) {
  const Weight& product = network.weights[network.layers[pair.product].weight];
  const Weight& norm = network.weights[network.layers[pair.norm].weight];
  Weight both{.matrix = product.matrix, .bias = product.bias};
  const auto rows = static_cast<size_t>(product.rows());
  both.bias.resize(rows);
  const DenseMatrix scales = norm.ToDense();
  both.bias.insert(both.bias.end(), scales.values.begin(), scales.values.end());
  both.bias.insert(both.bias.end(), norm.bias.begin(), norm.bias.end());
  both.bias.resize(3 * rows);
  return both;
}

void OfferPair(NormPair pair, Candidate both, LayerCandidates& layers) {
  std::vector<Candidate>& norms = layers[pair.norm];
  const Candidate rest = {.input = kWithinPair,
                          .output = both.output,
                          .microseconds = std::vector<double>(both.microseconds.size(), 0.0),
                          .measured = true};
  const bool offered = std::ranges::any_of(norms, [&](const Candidate& candidate) {
    return candidate.input == rest.input && candidate.output == rest.output;
  });
  if (!offered) norms.push_back(rest);
  both.norm = static_cast<int>(pair.norm);
  both.output = kWithinPair;
  layers[pair.product].push_back(std::move(both));
}

StatusOr<LayerCandidates> MeasureWithPairs(const Network& network, Backend& backend, RunSettings settings,
                                           bool dense_only, Measurer& measurer) {
  std::vector<NormPair> pairs;
  Network extended;
  if (!HasHostMemory(backend)) pairs = FindNormPairs(network);
  if (!pairs.empty()) extended = network;
  std::erase_if(pairs, [&](NormPair pair) {
    Layer both = LayerOfPair(network, pair);
    both.weight = static_cast<int>(extended.weights.size());
    extended.weights.push_back(WeightOfPair(network, pair));
    const bool has_rows = LayerRows(backend, extended, both, settings, dense_only).ok();
    has_rows ? extended.layers.push_back(std::move(both)) : extended.weights.pop_back();
    return !has_rows;
  });
  if (pairs.empty()) return measurer.MeasureLayers(network);
  SWIZZLE_ASSIGN_OR_RETURN(LayerCandidates layers, measurer.MeasureLayers(extended));
  const LayerCandidates both(layers.begin() + std::ssize(network.layers), layers.end());
  layers.resize(network.layers.size());
  for (size_t i = 0; i < pairs.size(); ++i) {
    const bool known = AreKnown(both[i]);
    if (AreKnown(layers[pairs[i].product]) != known || AreKnown(layers[pairs[i].norm]) != known) continue;
    for (const Candidate& candidate : both[i]) OfferPair(pairs[i], candidate, layers);
  }
  return layers;
}

}  // namespace swizzle

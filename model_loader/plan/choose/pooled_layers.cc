#include "model_loader/plan/choose/pooled_layers.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace swizzle {
namespace {

bool IsOutput(const Network& network, int value) {
  return std::ranges::any_of(network.outputs, [=](const NetworkPort& port) { return port.value == value; });
}

bool MakesPooledExtent(const Network& network, const Layer& layer) {
  if (layer.op != Op::kMaxPool || layer.epilogue != Epilogue{}) return false;
  const Window& w = layer.window();
  return w.kernel_h == 3 && w.kernel_w == 3 && w.stride_h == 2 && w.stride_w == 2 && w.dilation_h == 1 &&
         w.dilation_w == 1 && w.pad_top == 1 && w.pad_left == 1 &&
         network.values[layer.output].WithBatch(1) == PooledExtent(network.values[layer.inputs[0]].WithBatch(1));
}

// The layer's pooling; none where something else reads it.
const Layer* PoolingBehind(const Network& network, const Layer& layer) {
  const Layer* pooling = nullptr;
  for (const Layer& reader : network.layers) {
    if (std::ranges::find(reader.inputs, layer.output) == reader.inputs.end()) continue;
    if (pooling != nullptr || !MakesPooledExtent(network, reader)) return nullptr;
    pooling = &reader;
  }
  return IsOutput(network, layer.output) ? nullptr : pooling;
}

}  // namespace

bool FeedsPooling(const Network& network, const Layer& layer) { return PoolingBehind(network, layer) != nullptr; }

void AddPooledRenames(const Network& network, LayerCandidates& candidates) {
  for (size_t i = 0; i < candidates.size(); ++i) {
    std::vector<Storage> pooled;
    for (const Candidate& candidate : candidates[i]) {
      const bool known = std::ranges::find(pooled, candidate.output) != pooled.end();
      if (candidate.output.pooled && !known) pooled.push_back(candidate.output);
    }
    if (pooled.empty()) continue;
    const Layer* const pooling = PoolingBehind(network, network.layers[i]);
    std::vector<Candidate>& of_pooling = candidates[pooling - network.layers.data()];
    const std::vector<double> nothing(candidates[i].front().microseconds.size(), 0.0);
    for (const Storage storage : pooled) {
      of_pooling.push_back(
          {.input = storage, .output = {storage.layout, storage.dtype}, .microseconds = nothing, .measured = true});
    }
  }
}

}  // namespace swizzle

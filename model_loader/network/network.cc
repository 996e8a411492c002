#include "model_loader/network/network.h"

#include <algorithm>

#include "kernels/format/attention_pattern.h"

namespace swizzle {

int64_t Network::LookupLimit(int value) const {
  int64_t limit = value == -1 && sequences ? sequences->longest : 0;
  const int64_t first = value == -1 && sequences && sequences->counted != -1 ? 1 : 0;
  for (const Layer& layer : layers) {
    const bool by_position = layer.op != Op::kEmbedding || layer.inputs.empty();
    const bool reads = by_position ? value == -1 : layer.inputs[0] == value;
    if (!ReadsRowsOfTokens(layer.op) || !reads) continue;
    const int64_t offset = layer.op == Op::kEmbedding ? layer.lookup().offset : 0;
    const int64_t rows = weights[layer.weight].rows() - offset - first;
    limit = limit == 0 ? rows : std::min(limit, rows);
  }
  return limit;
}

std::optional<Quantised> NetworkValue::AsWholeNumbers() const {
  if (!quantisation || !quantisation->per_tensor()) return std::nullopt;
  Quantised wholes = quantisation->Of(0);
  if (wholes.dtype == DType::kInt8) wholes = {DType::kUint8, wholes.scale, wholes.zero_point + 128};
  return wholes;
}

int64_t Network::DenseWeightBytes() const {
  int64_t bytes = 0;
  for (const Weight& weight : weights) bytes += weight.DenseBytes();
  return bytes;
}

int64_t Network::StoredWeightBytes() const {
  size_t bytes = 0;
  for (const Weight& weight : weights) bytes += weight.StoredBytes();
  return static_cast<int64_t>(bytes);
}

void SetPatternSizes(Network& network) {
  for (Layer& layer : network.layers) {
    const bool has_weight = layer.weight >= 0 && static_cast<size_t>(layer.weight) < network.weights.size();
    if (layer.op != Op::kSparseAttention || !has_weight) continue;
    const auto* pattern = network.weights[layer.weight].matrix.As<AttentionPattern>();
    if (pattern == nullptr) continue;
    layer.attention().length = pattern->tokens;
    layer.attention().nonzeros = pattern->nnz();
  }
}

Problem LayerProblem(const Network& network, const Layer& layer, BatchSize size, int threads) {
  SWIZZLE_CHECK(!TraitsOf(layer.op).Has(OpTraits::kOnlyRenames));  // no kernel solves it
  Problem problem;
  static_cast<Operator&>(problem) = layer;
  problem.output = network.values[layer.output].WithBatch(size);
  problem.input =
      layer.inputs.empty() ? Extent{problem.output.batch, 1} : network.values[layer.inputs[0]].WithBatch(size);
  problem.threads = threads;
  for (size_t i = 0; i < layer.inputs.size(); ++i) {
    problem.inputs_as[i] = network.values[layer.inputs[i]].AsWholeNumbers().value_or(Quantised());
  }
  problem.epilogue.requantise = network.values[layer.output].AsWholeNumbers();
  if (layer.op == Op::kConv) problem.input_zeros = network.values[layer.inputs[0]].zeros;
  return problem;
}

}  // namespace swizzle

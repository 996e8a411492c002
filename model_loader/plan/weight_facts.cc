#include "model_loader/plan/weight_facts.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <span>
#include <string_view>

#include "model_loader/plan/choose/tuning_cache.h"

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

}  // namespace

WeightFacts::WeightFacts(const Network& network) : position_limit(network.LookupLimit(-1)) {
  for (const Layer& layer : network.layers) {
    patterns.push_back(layer.weight < 0 ? 0 : PatternHash(network.weights[layer.weight]));
  }
  for (const NetworkPort& port : network.inputs) {
    id_limits.push_back(port.value == -1 ? 0 : network.LookupLimit(port.value));
  }
}

WeightFacts WeightFacts::None(const Network& network) {
  WeightFacts none;
  none.patterns.resize(network.layers.size());
  none.id_limits.resize(network.inputs.size());
  return none;
}

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

uint64_t ContentHash(const Network& network) {
  ContentSink sink;
  for (const Layer& layer : network.layers) {
    const bool has_weight = layer.weight >= 0;
    sink.Scalar("operator", static_cast<int64_t>(layer.op));
    sink.Scalar("has a weight", has_weight ? 1 : 0);
    if (!has_weight) continue;
    AddMatrix(network.weights[layer.weight], sink);
  }
  return sink.hash;
}

}  // namespace swizzle

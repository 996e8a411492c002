#include "server/model/layer_tally.h"

#include <algorithm>
#include <cstdio>
#include <set>

#include "kernels/base/status.h"
#include "kernels/format/format.h"

namespace swizzle {
namespace {

bool IsDenseFallback(const LayerReport& layer) {
  if (layer.weight_rows == 0 || !IsSparse(layer.format)) return false;
  return std::ranges::any_of(layer.candidates, [&](const LayerReport::KernelTimes& candidate) {
    return !IsSparse(candidate.weights) && layer.RunsOn(candidate.kernel);
  });
}

std::string CountsText(const std::map<std::string, int>& counts) {
  std::string text;
  for (const auto& [name, count] : counts) text += Concat(text.empty() ? "" : ",", name, ":", count);
  return text;
}

std::string RatioText(double ratio) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.4f", ratio);
  return text;
}

}  // namespace

void LayerTally::Add(const PlanReport& report) {
  dense_bytes_ += report.dense_bytes;
  stored_bytes_ += report.stored_bytes;
  timed_now_ += report.timed_now;
  timed_before_ += report.timed_before;
  for (const LayerReport& layer : report.layers) {
    weights_ += layer.weight_rows * layer.weight_cols;
    nonzeros_ += layer.nonzeros;
    if (layer.weight_rows > 0) ++formats_[std::string(FormatName(layer.format))];
    if (!layer.moves_data()) continue;
    for (const std::string& kernel : std::set<std::string>(layer.kernels.begin(), layer.kernels.end())) {
      ++kernels_[kernel];
      ++uses_[{layer.op, kernel}];
    }
    dense_fallback_layers_ += IsDenseFallback(layer);
  }
}

void LayerTally::Describe(ModelFacts& facts) const {
  for (const auto& [use, layers] : uses_) facts.kernels.push_back({use.first, use.second, layers});
  facts.sparsity = weights_ == 0 ? 0.0 : 1.0 - static_cast<double>(nonzeros_) / static_cast<double>(weights_);
  facts.dense_bytes += dense_bytes_;
  facts.stored_bytes += stored_bytes_;
  facts.timed_now += timed_now_;
  facts.timed_before += timed_before_;
  facts.dense_fallback_layers = dense_fallback_layers_;
  facts.properties.insert({
      {"swizzle_format", CountsText(formats_)},
      {"swizzle_sparsity", RatioText(facts.sparsity)},
      {"swizzle_nnz", std::to_string(nonzeros_)},
      {"swizzle_kernels", CountsText(kernels_)},
      {"swizzle_dense_fallback_layers", std::to_string(dense_fallback_layers_)},
  });
}

}  // namespace swizzle

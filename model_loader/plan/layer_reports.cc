#include "model_loader/plan/layer_reports.h"

#include <string>
#include <utility>

#include "kernels/operator/print.h"

namespace swizzle {
namespace {

LayerReport DescribeLayer(const Network& network, const Layer& layer, const std::vector<Candidate>& candidates) {
  LayerReport report;
  report.name = layer.name;
  report.op = std::string(ReportName(layer));
  report.output = network.values[layer.output].WithBatch(1);
  report.input = layer.inputs.empty() ? Extent{1, 1} : network.values[layer.inputs[0]].WithBatch(1);
  if (layer.weight >= 0) {
    const Weight& weight = network.weights[layer.weight];
    if (IsPrunable(layer.op)) {
      report.weight_rows = weight.rows();
      report.weight_cols = weight.cols();
      report.nonzeros = weight.nonzeros();
    }
    report.format = weight.format();
    report.dense_bytes = weight.DenseBytes();
    report.stored_bytes = static_cast<int64_t>(weight.StoredBytes());
  }
  for (const Candidate& candidate : candidates) {
    if (candidate.kernel == nullptr) continue;
    const KernelKey& key = candidate.kernel->key;
    report.candidates.push_back({std::string(candidate.kernel->name), candidate.microseconds, candidate.measured,
                                 key.weights, candidate.suspect,
                                 key.weights == Format::kNone ? key.input.dtype : key.weight_dtype,
                                 candidate.kernel->skips_input_zeros, candidate.copied});
  }
  return report;
}

}  // namespace

std::vector<LayerReport> DescribeLayers(const Network& network, const LayerCandidates& candidates) {
  std::vector<LayerReport> reports;
  for (size_t i = 0; i < candidates.size(); ++i) {
    reports.push_back(DescribeLayer(network, network.layers[i], candidates[i]));
  }
  return reports;
}

}  // namespace swizzle

// MakePlan: measure candidates, choose kernels and layouts together, lay out the arena, prepare weights.
#include <malloc.h>

#include <algorithm>

#include "kernels/operator/print.h"
#include "model_loader/plan/choose/candidates.h"
#include "model_loader/plan/choose/kernel_choice.h"
#include "model_loader/plan/fuse_layers.h"
#include "model_loader/plan/plan_impl.h"

namespace swizzle {
namespace {

LayerReport DescribeLayer(const Network& network, const Layer& layer, const std::vector<Candidate>& candidates,
                          int chosen) {
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
    report.format = std::string(FormatName(weight.format()));
    report.dense_bytes = weight.DenseBytes();
    report.stored_bytes = static_cast<int64_t>(weight.StoredBytes());
  }
  for (const Candidate& candidate : candidates) {
    if (candidate.kernel == nullptr) continue;
    report.candidates.push_back({std::string(candidate.kernel->name), candidate.microseconds, candidate.measured,
                                 candidate.kernel->key.weights});
  }
  if (const Kernel* kernel = candidates[chosen].kernel) report.kernel = std::string(kernel->name);
  return report;
}

// How much the plan may compute at once.
StatusOr<BatchSize> MaxSize(const Network& network, const PlanOptions& options) {
  const int64_t rows = network.batch_size > 0 ? network.batch_size : options.max_batch;
  if (rows < 1) return InvalidArgument("max_batch is ", rows, "; it must be at least 1");
  if (!network.sequences) return BatchSize(rows);
  const int64_t length = network.sequences->length;
  const int64_t tokens = network.batch_size > 0 && length > 0 ? rows * length : options.max_tokens;
  if (tokens >= std::max<int64_t>(length, 1)) return BatchSize(std::min(rows, tokens), tokens);
  return InvalidArgument("max_tokens is ", tokens, "; it must be at least ", std::max<int64_t>(length, 1));
}

// Rows, or tokens where there are sequences. On a GPU, where dense kernels overtake sparse ones as batches grow, a
// large size is one of them.
std::vector<int64_t> MeasuredBatches(const Network& network, BatchSize max, bool gpu) {
  const auto has_pattern = [](const Layer& layer) { return layer.op == Op::kSparseAttention; };
  if (std::any_of(network.layers.begin(), network.layers.end(), has_pattern)) return {network.sequences->length};
  if (!network.sequences && network.batch_size > 0) return {network.batch_size};
  std::vector<int64_t> sizes = network.sequences ? std::vector<int64_t>{64, 512} : std::vector<int64_t>{1, 8};
  if (gpu) sizes.push_back(8 * sizes.back());
  const int64_t most = network.sequences ? max.tokens : max.rows;
  const auto first = std::ranges::lower_bound(sizes, most);
  if (first == sizes.end()) return sizes;
  *first = most;
  sizes.erase(first + 1, sizes.end());
  return sizes;
}

}  // namespace

StatusOr<std::shared_ptr<const Plan>> MakePlan(Network network, Backend& backend, const PlanOptions& options) {
  if (backend.shares_host_memory() && !IsOfCpu(options.precision)) {
    return Unimplemented("precision ", PrecisionName(options.precision), ": the ", backend.name(),
                         " backend computes in FP32 or BF16");
  }
  FuseLayers(network);
  SWIZZLE_ASSIGN_OR_RETURN(const BatchSize max_size, MaxSize(network, options));
  SWIZZLE_ASSIGN_OR_RETURN(auto stream, backend.NewStream(options.threads));
  std::vector<int64_t> measured = MeasuredBatches(network, max_size, !backend.shares_host_memory());
  Measurer measurer(backend, *stream, std::move(measured), options);
  SWIZZLE_ASSIGN_OR_RETURN(const auto candidates, measurer.MeasureLayers(network));
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<int> chosen,
                           ChooseKernels(network, candidates, [&](const NetworkValue& value, Layout from, Layout to) {
                             return measurer.MeasureConversion(value, from, to);
                           }));

  std::vector<Candidate> chosen_candidates;
  for (size_t i = 0; i < candidates.size(); ++i) chosen_candidates.push_back(candidates[i][chosen[i]]);
  SWIZZLE_RETURN_IF_ERROR(measurer.ChooseBlockings(network, chosen_candidates));

  PlanReport report;
  report.backend = std::string(backend.name());
  report.device = backend.device_name();
  report.threads = stream->threads();
  report.measured_batches = measurer.batches();
  report.timed_now = measurer.timed_now();
  report.timed_before = measurer.timed_before();
  report.dense_bytes = network.DenseWeightBytes();
  report.stored_bytes = network.StoredWeightBytes();

  PlanBuilder builder(backend, std::move(network), max_size, {stream->threads(), options.precision});
  for (size_t i = 0; i < candidates.size(); ++i) {
    const Layer& layer = builder.network().layers[i];
    LayerReport layer_report = DescribeLayer(builder.network(), layer, candidates[i], chosen[i]);
    if (const int blocking = chosen_candidates[i].blocking; blocking != 0) {
      layer_report.blocking = std::string(chosen_candidates[i].kernel->blockings[blocking]);
    }
    SWIZZLE_ASSIGN_OR_RETURN(layer_report.device_bytes, builder.AddLayer(layer, chosen_candidates[i]));
    report.device_bytes += layer_report.device_bytes;
    report.layers.push_back(std::move(layer_report));
  }
  SWIZZLE_ASSIGN_OR_RETURN(auto plan, builder.Finish(std::move(report), options));
  malloc_trim(0);  // layouts of rejected candidates are gone; give their pages back
  return plan;
}

}  // namespace swizzle

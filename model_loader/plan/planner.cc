// MakePlan: measure candidates, choose kernels and layouts together, lay out the arena, prepare weights.
#include <malloc.h>

#include <algorithm>
#include <limits>

#include "model_loader/plan/candidates.h"
#include "model_loader/plan/fuse_layers.h"
#include "model_loader/plan/plan.h"
#include "model_loader/plan/plan_impl.h"

namespace swizzle {
namespace {

// What one measured batch size weighs in a candidate's cost, so that every size counts the same in total: the inverse of
// the least time all layers could take at it.
std::vector<double> BatchWeights(const std::vector<std::vector<Candidate>>& layers, size_t batches) {
  std::vector<double> weights(batches);
  for (size_t b = 0; b < batches; ++b) {
    double total = 0.0;
    for (const auto& candidates : layers) {
      double least = std::numeric_limits<double>::max();
      for (const Candidate& candidate : candidates) least = std::min(least, candidate.microseconds[b]);
      total += least;
    }
    weights[b] = total > 0.0 ? 1.0 / total : 1.0;
  }
  return weights;
}

double WeightedCost(const std::vector<double>& microseconds, const std::vector<double>& weights) {
  double cost = 0.0;
  for (size_t b = 0; b < microseconds.size(); ++b) cost += microseconds[b] * weights[b];
  return cost;
}

std::vector<int> PortValues(const std::vector<NetworkPort>& ports) {
  std::vector<int> values;
  for (const NetworkPort& port : ports) {
    if (port.value != -1) values.push_back(port.value);
  }
  return values;
}

StatusOr<std::vector<int>> ChooseCandidates(const Network& network,
                                            const std::vector<std::vector<Candidate>>& candidates,
                                            Measurer& measurer) {
  const std::vector<double> weights = BatchWeights(candidates, measurer.batches().size());
  std::vector<LayerOptions> layers;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const Layer& layer = network.layers[i];
    LayerOptions options{layer.inputs, layer.epilogue.residual, layer.output, {}};
    for (const Candidate& candidate : candidates[i]) {
      options.options.push_back({candidate.input, candidate.output, WeightedCost(candidate.microseconds, weights)});
    }
    layers.push_back(std::move(options));
  }
  Status failure;
  const auto conversion_cost = [&](int value, Layout from, Layout to) {
    auto microseconds = measurer.MeasureConversion(network.values[value], from, to);
    if (!microseconds.ok()) failure = microseconds.status();
    if (!microseconds.ok() || microseconds->empty()) return std::numeric_limits<double>::infinity();
    return WeightedCost(*microseconds, weights);
  };
  std::vector<int> chosen =
      ChooseOptions(layers, PortValues(network.inputs), PortValues(network.outputs), conversion_cost);
  SWIZZLE_RETURN_IF_ERROR(failure);
  return chosen;
}

LayerReport DescribeLayer(const Network& network, const Layer& layer, const std::vector<Candidate>& candidates,
                          int chosen) {
  LayerReport report;
  report.name = layer.name;
  const bool function = layer.kind == LayerKind::kFunction;
  report.op = std::string(function ? FunctionKindName(layer.function.kind) : LayerKindName(layer.kind));
  report.output = network.values[layer.output].WithBatch(1);
  report.input = layer.inputs.empty() ? Extent{1, 1} : network.values[layer.inputs[0]].WithBatch(1);
  if (layer.weight >= 0) {
    const Weight& weight = network.weights[layer.weight];
    if (IsPrunable(layer.kind)) {
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

std::vector<int64_t> MeasuredBatches(const Network& network, BatchSize max) {
  const auto has_pattern = [](const Layer& layer) { return layer.kind == LayerKind::kSparseAttention; };
  if (std::any_of(network.layers.begin(), network.layers.end(), has_pattern)) return {network.sequences->length};
  if (network.sequences) {
    constexpr int64_t kFewTokens = 64, kManyTokens = 512;
    if (max.tokens <= kFewTokens) return {max.tokens};
    return {kFewTokens, std::min(max.tokens, kManyTokens)};
  }
  const int64_t fixed_batch = network.batch_size, max_batch = max.rows;
  if (fixed_batch > 0) return {fixed_batch};
  constexpr int64_t kLargeBatch = 8;
  if (max_batch == 1) return {1};
  return {1, std::min(max_batch, kLargeBatch)};
}

}  // namespace

StatusOr<std::shared_ptr<const Plan>> MakePlan(Network network, Backend& backend, const PlanOptions& options) {
  FuseLayers(network, backend.shares_host_memory());
  SWIZZLE_ASSIGN_OR_RETURN(const BatchSize max_size, MaxSize(network, options));
  SWIZZLE_ASSIGN_OR_RETURN(auto stream, backend.NewStream(options.threads));
  Measurer measurer(backend, *stream, MeasuredBatches(network, max_size), options);
  SWIZZLE_ASSIGN_OR_RETURN(const auto candidates, measurer.MeasureLayers(network));
  SWIZZLE_ASSIGN_OR_RETURN(const std::vector<int> chosen, ChooseCandidates(network, candidates, measurer));

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
    SWIZZLE_ASSIGN_OR_RETURN(layer_report.device_bytes, builder.AddLayer(layer, candidates[i][chosen[i]]));
    report.device_bytes += layer_report.device_bytes;
    report.layers.push_back(std::move(layer_report));
  }
  SWIZZLE_ASSIGN_OR_RETURN(auto plan, builder.Finish(std::move(report)));
  malloc_trim(0);  // layouts of rejected candidates are gone; give their pages back
  return plan;
}

}  // namespace swizzle

#include "model_loader/pruning/pruner.h"

#include <fnmatch.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <numeric>
#include <utility>

#include "kernels/format/shfl_bw.h"
#include "kernels/format/transpose.h"
#include "model_loader/passes/lower.h"
#include "model_loader/pruning/magnitude.h"

namespace swizzle {
namespace {

constexpr PruneMethodRow kMethods[] = {
    {PruneMethod::kMagnitude, "magnitude", "weights"},
    {PruneMethod::kNOfM, "n-m", "weights, so that few of many neighbouring input channels stay (--pattern)"},
    {PruneMethod::kVectorWise, "vector-wise",
     "vectors of rows, which GPUs multiply in half precision without the zeros"},
    {PruneMethod::kShflBw, "shfl-bw", "likewise, of rows that suit each other"},
    {PruneMethod::kBlock, "block", "square blocks"},
};

int64_t CountZeros(std::span<const float> weights) { return std::count(weights.begin(), weights.end(), 0.0f); }

double SumOfSquares(std::span<const float> weights) {
  return std::transform_reduce(weights.begin(), weights.end(), 0.0, std::plus<>(),
                               [](double weight) { return weight * weight; });
}

}  // namespace

std::span<const PruneMethodRow> PruneMethods() { return kMethods; }

std::string_view PruneMethodName(PruneMethod method) {
  return std::ranges::find(kMethods, method, &PruneMethodRow::method)->name;
}

std::optional<PruneMethod> PruneMethodFromName(std::string_view name) {
  const auto found = std::ranges::find(kMethods, name, &PruneMethodRow::name);
  return found == std::end(kMethods) ? std::nullopt : std::optional(found->method);
}

std::optional<GroupLimit> GroupLimitFromText(std::string_view text) {
  GroupLimit limit;
  const char* const end = text.data() + text.size();
  const auto n = std::from_chars(text.data(), end, limit.n);
  if (n.ec != std::errc() || n.ptr == end || *n.ptr != ':') return std::nullopt;
  const auto m = std::from_chars(n.ptr + 1, end, limit.m);
  if (m.ec != std::errc() || m.ptr != end) return std::nullopt;
  return limit.n >= 1 && limit.n < limit.m && limit.m <= GroupLimit::kMostM ? std::optional(limit) : std::nullopt;
}

Pruner::Pruner(PruneOptions options)
    : options_(std::move(options)), sparsity_(options_.sparsity), skip_matched_(options_.skip.size(), false) {
  SWIZZLE_CHECK(sparsity_ >= 0.0 && sparsity_ <= 1.0);
  const auto [n, m] = options_.limit;
  const bool by_groups = options_.method == PruneMethod::kNOfM;
  if (by_groups) sparsity_ = std::max(sparsity_, 1.0 - static_cast<double>(n) / static_cast<double>(m));
}

bool Pruner::Skips(std::span<const std::string> names) {
  bool skips = false;
  for (size_t i = 0; i < options_.skip.size(); ++i) {
    const char* pattern = options_.skip[i].c_str();
    const auto matches = [&](const std::string& name) { return fnmatch(pattern, name.c_str(), 0) == 0; };
    if (std::none_of(names.begin(), names.end(), matches)) continue;
    skip_matched_[i] = true;
    skips = true;
  }
  return skips;
}

void Pruner::PruneBy(PruneMethod method, const WeightView& weights) const {
  switch (method) {
    case PruneMethod::kMagnitude:
      return PruneSmallest(weights.values, sparsity_, weights.scores);
    case PruneMethod::kNOfM:
      PruneNOfM(weights, options_.limit.n, options_.limit.m);
      return PruneSmallest(weights.values, sparsity_, weights.scores);
    case PruneMethod::kVectorWise:
      return PruneVectors(weights, RowsInOrder(weights.rows), options_.vector_rows, sparsity_);
    case PruneMethod::kShflBw:
      return PruneVectors(weights, FindRowOrder(weights, options_.vector_rows, sparsity_), options_.vector_rows,
                          sparsity_);
    case PruneMethod::kBlock:
      return PruneBlocks(weights, options_.vector_rows, sparsity_);
  }
}

void Pruner::PruneMatrix(const WeightView& weights, PruneRecord& record) const {
  const std::vector<float> before(weights.values.begin(), weights.values.end());
  const double all = SumOfMagnitudes(before);
  const auto share = [&](std::span<const float> left) { return all == 0 ? 1.0 : SumOfMagnitudes(left) / all; };
  const auto kept_by = [&](PruneMethod method) {
    std::vector<float> copy = before;
    WeightView other = weights;
    other.values = copy;
    if (method == PruneMethod::kMagnitude) other.scores = {};
    PruneBy(method, other);
    return share(copy);
  };
  PruneBy(options_.method, weights);
  record.kept = share(weights.values);
  const double squares = SumOfSquares(before);
  record.removed_squares = squares == 0 ? 0.0 : 1.0 - SumOfSquares(weights.values) / squares;
  if (options_.method == PruneMethod::kMagnitude && !options_.scores) return;
  record.kept_by_magnitude = kept_by(PruneMethod::kMagnitude);
  record.kept_by_vectors = kept_by(PruneMethod::kVectorWise);
  record.kept_by_blocks = kept_by(PruneMethod::kBlock);
}

void Pruner::PruneMatrix(WeightView weights, const Calibration* calibration, PruneRecord& record) const {
  if (calibration == nullptr) return PruneMatrix(weights, record);
  const std::vector<float> original(weights.values.begin(), weights.values.end());
  std::vector<float> saliencies;
  if (weights.scores.empty()) weights.scores = saliencies = Saliencies(weights, calibration->moments);
  PruneMatrix(weights, record);
  record.errors = Compensate(weights, original, calibration->moments, calibration->parallel);
}

void Pruner::TakeAlikeZeros(const LayerWeight& layer, std::span<const float> before, std::span<float> weights) {
  const std::string key = Concat(ShapeText(layer.shape), layer.outputs_last ? " outputs last, " : ", ", layer.taps);
  const auto [found, is_first] = zeros_by_shape_.try_emplace(key);
  std::vector<bool>& zeros = found->second;
  if (is_first) {
    for (const float weight : weights) zeros.push_back(weight == 0.0f);
    return;
  }
  constexpr float kInPlaceOfZero = 1e-3f;
  for (size_t i = 0; i < weights.size(); ++i) {
    weights[i] = zeros[i] ? 0.0f : before[i] == 0.0f ? kInPlaceOfZero : before[i];
  }
}

void Pruner::Prune(const LayerWeight& layer, std::span<float> weights, const Calibration* calibration) {
  if (!status_.ok()) return;
  const auto elements = static_cast<int64_t>(weights.size());
  PruneRecord record{.name = layer.names.front(),
                     .shape = layer.shape,
                     .elements = elements,
                     .zeros_before = CountZeros(weights),
                     .skipped = Skips(layer.names)};
  if (options_.progress && !record.skipped) status_ = options_.progress(record.name);
  if (!status_.ok()) return;
  const int64_t outputs = layer.shape.empty() ? 0 : layer.outputs_last ? layer.shape.back() : layer.shape.front();
  const bool by_outputs = layer.outputs_last && layer.scores_by_outputs;
  std::vector<float> scores;
  if (options_.scores && record.skipped) options_.scores->Skip(layer.names);
  if (options_.scores && !record.skipped) {
    Shape shape = layer.shape;
    if (by_outputs) std::ranges::reverse(shape);
    StatusOr<std::vector<float>> read = options_.scores->Of(layer.names, shape);
    status_ = read.status();
    if (!read.ok()) return;
    scores = *std::move(read);
  }
  const bool alike = options_.alike_zeros && !record.skipped;
  const std::vector<float> before(weights.begin(), alike ? weights.end() : weights.begin());
  if (!record.skipped && outputs > 0) {
    const int64_t inputs = elements / outputs;
    if (layer.outputs_last) {
      std::vector<float> turned = Transposed(weights, inputs, outputs);
      if (!scores.empty() && !by_outputs) scores = Transposed(scores, inputs, outputs);
      PruneMatrix({outputs, inputs, turned, scores}, calibration, record);
      Transpose(turned, outputs, inputs, weights);
    } else {
      PruneMatrix({outputs, inputs, weights, scores, layer.taps}, calibration, record);
    }
  }
  record.zeros_after = CountZeros(weights);
  if (alike) TakeAlikeZeros(layer, before, weights);
  records_.push_back(std::move(record));
}

Status Pruner::CheckResult() const {
  SWIZZLE_RETURN_IF_ERROR(status_);
  if (records_.empty()) return InvalidArgument("the model has no weights of convolutions or linear layers to prune");
  const auto unmatched = std::find(skip_matched_.begin(), skip_matched_.end(), false);
  if (unmatched == skip_matched_.end()) return options_.scores ? options_.scores->CheckAllUsed() : Status();
  return InvalidArgument("the pattern to skip '", options_.skip[unmatched - skip_matched_.begin()],
                         "' matches no layer's name; swizzle-pack inspect -o json lists them");
}

void PruneNetwork(Network& network, Pruner& pruner) {
  std::vector<std::vector<std::string>> readers(network.weights.size());
  for (const Layer& layer : network.layers) {
    if (layer.op == Op::kConv) readers[layer.weight].push_back(layer.name);
  }
  for (const Layer& layer : network.layers) {
    if (layer.op != Op::kConv || readers[layer.weight].empty()) continue;
    const std::vector<std::string> names = std::exchange(readers[layer.weight], {});
    Weight& weight = network.weights[layer.weight];
    DenseMatrix dense = weight.ToDense();
    pruner.Prune({names, {dense.rows, dense.cols}, false, layer.window().taps()}, dense.values);
    if (!pruner.Skips(names)) weight.matrix = ChooseFormat(std::move(dense));
  }
  for (NetworkValue& value : network.values) value.zeros.reset();
}

}  // namespace swizzle

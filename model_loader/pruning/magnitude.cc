#include "model_loader/pruning/magnitude.h"

#include <fnmatch.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "model_loader/passes/lower.h"

namespace swizzle {
namespace {

// The bits of |x|: ordered as the magnitudes are, and total, with what is not a number last.
uint32_t Magnitude(float value) { return std::bit_cast<uint32_t>(value) & 0x7FFFFFFFu; }

int64_t CountZeros(std::span<const float> weights) { return std::count(weights.begin(), weights.end(), 0.0f); }

// The `count`-th smallest magnitude. REQUIRES: 1 <= count <= weights.size().
uint32_t MagnitudeOfRank(std::span<const float> weights, size_t count) {
  std::vector<uint32_t> magnitudes(weights.size());
  std::transform(weights.begin(), weights.end(), magnitudes.begin(), Magnitude);
  const auto nth = magnitudes.begin() + static_cast<int64_t>(count - 1);
  std::nth_element(magnitudes.begin(), nth, magnitudes.end());
  return *nth;
}

}  // namespace

void PruneSmallest(std::span<float> weights, double sparsity) {
  SWIZZLE_CHECK(sparsity >= 0.0 && sparsity <= 1.0);
  const auto zeros = static_cast<size_t>(std::llround(sparsity * static_cast<double>(weights.size())));
  if (zeros == 0) return;
  const uint32_t threshold = MagnitudeOfRank(weights, zeros);
  const auto below = [&](float weight) { return Magnitude(weight) < threshold; };
  size_t ties = zeros - static_cast<size_t>(std::count_if(weights.begin(), weights.end(), below));
  for (float& weight : weights) {
    const bool tie = Magnitude(weight) == threshold && ties > 0;
    if (tie) --ties;
    if (tie || below(weight)) weight = 0.0f;
  }
}

MagnitudePruner::MagnitudePruner(PruneOptions options)
    : options_(std::move(options)), skip_matched_(options_.skip.size(), false) {
  SWIZZLE_CHECK(options_.sparsity >= 0.0 && options_.sparsity <= 1.0);
}

bool MagnitudePruner::Skips(std::span<const std::string> names) {
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

void MagnitudePruner::Prune(std::span<const std::string> names, const Shape& shape, std::span<float> weights) {
  PruneRecord record{names.front(), shape, static_cast<int64_t>(weights.size()), CountZeros(weights), 0, Skips(names)};
  if (!record.skipped) PruneSmallest(weights, options_.sparsity);
  record.zeros_after = CountZeros(weights);
  records_.push_back(std::move(record));
}

Status MagnitudePruner::CheckResult() const {
  if (records_.empty()) return InvalidArgument("the model has no weights of convolutions or linear layers to prune");
  const auto unmatched = std::find(skip_matched_.begin(), skip_matched_.end(), false);
  if (unmatched == skip_matched_.end()) return {};
  return InvalidArgument("the pattern to skip '", options_.skip[unmatched - skip_matched_.begin()],
                         "' matches no layer's name; swizzle-pack inspect lists them");
}

void PruneNetwork(Network& network, MagnitudePruner& pruner) {
  for (const Layer& layer : network.layers) {
    if (layer.op != Op::kConv) continue;
    Weight& weight = network.weights[layer.weight];
    DenseMatrix dense = weight.ToDense();
    pruner.Prune(std::span(&layer.name, 1), {dense.rows, dense.cols}, dense.values);
    weight.matrix = ChooseFormat(std::move(dense));
  }
}

}  // namespace swizzle

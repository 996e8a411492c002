#include "model_loader/pack/format_costs.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "kernels/format/shfl_bw.h"
#include "kernels/format/structure.h"

namespace swizzle::pack {
std::vector<Format> FormatsToPackIn(const SparseWeight& weight) {
  std::vector<Format> formats = FormatsThatHold(DetectStructure(weight.matrix, weight.taps));
  std::erase_if(formats, [](Format format) { return !IsSparse(format) || !HasValues(format); });
  // Rows that are alike without being equal are no pattern that a structure tells of.
  constexpr Format kGroups = ShflBwMatrix::kFormat;
  const bool has_groups = std::ranges::find(formats, kGroups) != formats.end();
  if (!has_groups && FindRowGrouping(weight.matrix)) formats.push_back(kGroups);
  return formats;
}

StatusOr<WeightMatrix> Smallest(const SparseWeight& weight, std::span<const Format> formats, BytesOf bytes_of) {
  const DenseMatrix dense = weight.matrix.ToDense();
  std::optional<WeightMatrix> best;
  int64_t least = std::numeric_limits<int64_t>::max();
  Status refused = InvalidArgument("no sparse format holds it");
  for (const Format format : formats) {
    StatusOr<WeightMatrix> made = WeightMatrix::FromDense(format, dense);
    if (!made.ok()) {
      refused = made.status();
      continue;
    }
    const int64_t bytes = bytes_of(*made);
    if (!best || bytes < least) best = *std::move(made), least = bytes;
  }
  if (best) return *std::move(best);
  return refused;
}

void FormatCostSum::Add(const SparseWeight& weight, BytesOf bytes_of) {
  ++sparse_;
  const DenseMatrix dense = weight.matrix.ToDense();
  std::optional<int64_t> smallest;
  for (const Format format : FormatsToPackIn(weight)) {
    const StatusOr<WeightMatrix> made = WeightMatrix::FromDense(format, dense);
    if (!made.ok()) continue;
    const int64_t more = bytes_of(*made) - weight.bytes;
    FormatCost& cost = by_format_.try_emplace(format, FormatCost{std::string(FormatName(format)), 0, 0}).first->second;
    ++cost.layers;
    cost.bytes += more;
    smallest = std::min(smallest.value_or(more), more);
  }
  if (!smallest) return;
  ++least_.layers;
  least_.bytes += weight.may_stay ? std::min<int64_t>(*smallest, 0) : *smallest;
}

FormatCosts FormatCostSum::Costs(int64_t now) const {
  FormatCosts costs{sparse_, {}};
  for (const auto& [format, cost] : by_format_) costs.formats.push_back(cost);
  if (!costs.formats.empty()) costs.formats.push_back(least_);
  for (FormatCost& cost : costs.formats) cost.bytes += now;
  return costs;
}

void ForEachSparseWeight(const Network& network, absl::FunctionRef<void(int weight, int64_t taps)> visit) {
  std::set<int> seen;
  for (const Layer& layer : network.layers) {
    if (layer.weight < 0 || !seen.insert(layer.weight).second) continue;
    const Format format = network.weights[static_cast<size_t>(layer.weight)].format();
    if (IsSparse(format) && HasValues(format)) visit(layer.weight, IsWindowed(layer.op) ? layer.window().taps() : 1);
  }
}

FormatCosts CostsOfFormats(const Network& network) {
  FormatCostSum sum;
  ForEachSparseWeight(network, [&](int index, int64_t taps) {
    const Weight& weight = network.weights[static_cast<size_t>(index)];
    sum.Add({weight.matrix, taps, static_cast<int64_t>(weight.StoredBytes())}, StoredAs(weight));
  });
  return sum.Costs(network.StoredWeightBytes());
}

}  // namespace swizzle::pack

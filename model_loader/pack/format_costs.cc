#include "model_loader/pack/format_costs.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "kernels/format/shfl_bw.h"
#include "kernels/format/structure.h"

namespace swizzle::pack {

std::vector<Format> FormatsToPackIn(const Layer& layer, const WeightMatrix& matrix) {
  std::vector<Format> formats =
      FormatsThatHold(DetectStructure(matrix, IsWindowed(layer.op) ? layer.window().taps() : 1));
  std::erase_if(formats, [](Format format) { return !IsSparse(format) || !HasValues(format); });
  // Rows that are alike without being equal are no pattern that a structure tells of.
  constexpr Format kGroups = ShflBwMatrix::kFormat;
  const bool has_groups = std::ranges::find(formats, kGroups) != formats.end();
  if (!has_groups && FindRowGrouping(matrix)) formats.push_back(kGroups);
  return formats;
}

FormatCosts CostsOfFormats(const Network& network) {
  FormatCosts costs;
  std::map<Format, FormatCost> by_format;
  std::set<int> seen;
  const int64_t now = network.StoredWeightBytes();
  FormatCost least{"auto", 0, now};
  for (const Layer& layer : network.layers) {
    if (layer.weight < 0 || !seen.insert(layer.weight).second) continue;
    const Weight& weight = network.weights[layer.weight];
    const WeightMatrix& matrix = weight.matrix;
    if (!IsSparse(matrix.format()) || !HasValues(matrix.format())) continue;
    ++costs.sparse_layers;
    const DenseMatrix dense = weight.ToDense();
    std::optional<int64_t> smallest;
    for (const Format format : FormatsToPackIn(layer, matrix)) {
      StatusOr<WeightMatrix> made = WeightMatrix::FromDense(format, dense);
      if (!made.ok()) continue;
      Weight changed = weight;
      changed.matrix = *std::move(made);
      const int64_t more = static_cast<int64_t>(changed.StoredBytes()) - static_cast<int64_t>(weight.StoredBytes());
      FormatCost& cost =
          by_format.try_emplace(format, FormatCost{std::string(FormatName(format)), 0, now}).first->second;
      ++cost.layers;
      cost.bytes += more;
      smallest = std::min(smallest.value_or(more), more);
    }
    if (!smallest) continue;
    ++least.layers;
    least.bytes += *smallest;
  }
  for (auto& [format, cost] : by_format) costs.formats.push_back(std::move(cost));
  if (!costs.formats.empty()) costs.formats.push_back(std::move(least));
  return costs;
}

}  // namespace swizzle::pack

#include "model_loader/pack/plan_totals.h"

#include <algorithm>
#include <tuple>

namespace swizzle::pack {
namespace {

using KernelTimes = LayerReport::KernelTimes;

void AddCounts(const PlanReport& plan, PlanReport& sum) {
  sum.timed_now += plan.timed_now;
  sum.timed_before += plan.timed_before;
  sum.suspect += plan.suspect;
  sum.untimed += plan.untimed;
  sum.conversions += plan.conversions;
  sum.dense_bytes += plan.dense_bytes;
  sum.stored_bytes += plan.stored_bytes;
  sum.device_bytes += plan.device_bytes;
}

template <typename TimeOf>
std::vector<double> Totals(const PlanReport& plan, const TimeOf& time_of) {
  std::vector<double> totals(plan.measured_batches.size(), 0.0);
  for (const LayerReport& layer : plan.layers) {
    for (size_t b = 0; b < totals.size(); ++b) totals[b] += time_of(layer, b);
  }
  return totals;
}

}  // namespace

std::vector<PartGroup> GroupsOf(const ModelReport& report) {
  std::vector<PartGroup> groups;
  for (size_t i = 0; i < report.parts.size(); ++i) {
    const PartReport& part = report.parts[i];
    const auto is_alike = [&](const PartGroup& group) {
      return group.together.measured_batches == part.plan.measured_batches;
    };
    auto group = std::ranges::find_if(groups, is_alike);
    if (group == groups.end()) {
      group = groups.insert(group, PartGroup());
      group->together.measured_batches = part.plan.measured_batches;
    }
    group->parts.push_back(i);
    AddCounts(part.plan, group->together);
    for (int64_t place = 0; place < part.places; ++place) {
      std::ranges::copy(part.plan.layers, std::back_inserter(group->together.layers));
    }
  }
  return groups;
}

PlanReport SumOf(const ModelReport& report) {
  PlanReport sum;
  for (const PartReport& part : report.parts) {
    AddCounts(part.plan, sum);
    std::ranges::copy(part.plan.layers, std::back_inserter(sum.layers));
  }
  return sum;
}

int64_t LargestArena(const ModelReport& report) {
  int64_t bytes = 0;
  for (const PartReport& part : report.parts) bytes = std::max(bytes, part.arena_bytes);
  return bytes;
}

double TimeOfChosen(const LayerReport& layer, size_t batch) {
  if (!layer.moves_data()) return 0.0;
  for (const KernelTimes& candidate : layer.candidates) {
    if (candidate.kernel == layer.KernelAt(batch) && batch < candidate.microseconds.size())
      return candidate.microseconds[batch];
  }
  return 0.0;
}

std::optional<double> TimeOfDense(const LayerReport& layer, size_t batch) {
  std::optional<double> least;
  for (const KernelTimes& candidate : layer.candidates) {
    if (IsSparse(candidate.weights) || batch >= candidate.microseconds.size()) continue;
    least = std::min(least.value_or(candidate.microseconds[batch]), candidate.microseconds[batch]);
  }
  return least;
}

std::vector<double> ChosenTotals(const PlanReport& plan) {
  return Totals(plan, [](const LayerReport& layer, size_t batch) { return TimeOfChosen(layer, batch); });
}

std::vector<double> DenseTotals(const PlanReport& plan) {
  return Totals(plan, [](const LayerReport& layer, size_t batch) {
    return TimeOfDense(layer, batch).value_or(TimeOfChosen(layer, batch));
  });
}

double TotalSparsity(const PlanReport& plan) {
  int64_t elements = 0, nonzeros = 0;
  for (const LayerReport& layer : plan.layers) {
    elements += layer.weight_rows * layer.weight_cols;
    nonzeros += layer.nonzeros;
  }
  return elements == 0 ? 0.0 : 1.0 - static_cast<double>(nonzeros) / static_cast<double>(elements);
}

std::vector<KernelTimes> Ranked(const LayerReport& layer) {
  std::vector<KernelTimes> ranked = layer.candidates;
  const auto rank = [&](const KernelTimes& c) {
    return std::tuple(!layer.RunsOn(c.kernel), c.microseconds.empty(), c.microseconds);
  };
  std::stable_sort(ranked.begin(), ranked.end(),
                   [&](const KernelTimes& a, const KernelTimes& b) { return rank(a) < rank(b); });
  return ranked;
}

std::string KernelsText(const LayerReport& layer) {
  std::string text;
  for (size_t i = 0; i < layer.kernels.size(); ++i) {
    if (i > 0 && layer.kernels[i] == layer.kernels[i - 1]) continue;
    text += Concat(i == 0 ? "" : ", ", layer.kernels[i]);
  }
  return text;
}

}  // namespace swizzle::pack

#include "model_loader/pack/plan_totals.h"

#include <algorithm>
#include <optional>
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

std::vector<double> ChosenTotals(const PlanReport& plan) {
  std::vector<double> totals(plan.measured_batches.size(), 0.0);
  for (const LayerReport& layer : plan.layers) {
    for (const KernelTimes& candidate : layer.candidates) {
      for (size_t b = 0; b < std::min(totals.size(), candidate.microseconds.size()); ++b) {
        if (candidate.kernel == layer.KernelAt(b)) totals[b] += candidate.microseconds[b];
      }
    }
  }
  return totals;
}

std::vector<double> DenseTotals(const PlanReport& plan) {
  std::vector<double> totals(plan.measured_batches.size(), 0.0);
  for (const LayerReport& layer : plan.layers) {
    for (size_t b = 0; b < totals.size(); ++b) {
      std::optional<double> least, chosen;
      for (const KernelTimes& candidate : layer.candidates) {
        if (b >= candidate.microseconds.size()) continue;
        const double time = candidate.microseconds[b];
        if (candidate.kernel == layer.KernelAt(b)) chosen = time;
        if (!IsSparse(candidate.weights)) least = std::min(least.value_or(time), time);
      }
      totals[b] += least.value_or(chosen.value_or(0.0));
    }
  }
  return totals;
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

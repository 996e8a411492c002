#include "model_loader/pack/advice.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "model_loader/pack/plan_totals.h"
#include "model_loader/plan/choose/median.h"

namespace swizzle::pack {
namespace {

bool AreAlike(const SparsitySample& a, const SparsitySample& b) {
  const auto same_layers = [](const PlannedPart& one, const PlannedPart& other) {
    return one.places == other.places && one.plan.measured_batches.size() == other.plan.measured_batches.size() &&
           std::ranges::equal(one.plan.layers, other.plan.layers, {}, &LayerReport::name, &LayerReport::name);
  };
  return std::ranges::equal(a.parts, b.parts, same_layers);
}

// Leaves the samples whose plans are of the same layers as the one at `wanted`; returns the others' sparsities.
std::vector<double> DropOthers(std::vector<SparsitySample>& samples, double wanted) {
  const SparsitySample like = *std::ranges::find(samples, wanted, &SparsitySample::sparsity);
  std::vector<double> dropped;
  std::erase_if(samples, [&](const SparsitySample& sample) {
    const bool is_other = !AreAlike(like, sample);
    if (is_other) dropped.push_back(sample.sparsity);
    return is_other;
  });
  return dropped;
}

// One layer of a part, in all samples.
class Samples {
 public:
  Samples(const std::vector<SparsitySample>& samples, size_t part, size_t layer, size_t batches)
      : samples_(samples), part_(part), layer_(layer), batches_(batches) {}

  const LayerReport& At(size_t sample) const { return samples_[sample].parts[part_].plan.layers[layer_]; }

  bool IsPruned() const {
    const LayerReport& last = At(samples_.size() - 1);
    return last.weight_rows > 0 && last.sparsity() >= samples_.back().sparsity / 2;
  }

  BatchTimes TimesAt(size_t sample) const {
    BatchTimes times;
    for (size_t b = 0; b < batches_; ++b) times.push_back(TimeOfChosen(At(sample), b));
    return times;
  }

  // The median over samples.
  BatchTimes Dense() const {
    BatchTimes times;
    for (size_t b = 0; b < batches_; ++b) {
      std::vector<double> of_samples;
      for (size_t s = 0; s < samples_.size(); ++s) {
        const bool pruned = IsPruned();
        of_samples.push_back((pruned ? TimeOfDense(At(s), b) : std::nullopt).value_or(TimeOfChosen(At(s), b)));
      }
      times.push_back(Median(std::move(of_samples)));
    }
    return times;
  }

 private:
  const std::vector<SparsitySample>& samples_;
  const size_t part_, layer_, batches_;
};

void Add(const BatchTimes& times, int64_t places, BatchTimes& sums) {
  for (size_t b = 0; b < sums.size(); ++b) sums[b] += static_cast<double>(places) * times[b];
}

// Of a time that is `whole` where everything is: all batches weigh the same.
double MeanShare(const BatchTimes& part, const BatchTimes& whole) {
  double share = 0.0;
  for (size_t b = 0; b < part.size(); ++b) share += whole[b] > 0.0 ? part[b] / whole[b] : 0.0;
  return share / static_cast<double>(std::max<size_t>(part.size(), 1));
}

double GainOf(const LayerAdvice& layer, size_t sample) { return 1.0 - MeanShare(layer.times[sample], layer.dense); }

LayerAdvice Describe(const Samples& layer, const std::vector<SparsitySample>& samples, int64_t places) {
  LayerAdvice advice;
  advice.name = layer.At(0).name;
  advice.places = places;
  advice.rows = layer.At(0).weight_rows;
  advice.cols = layer.At(0).weight_cols;
  advice.dense = layer.Dense();
  for (size_t s = 0; s < samples.size(); ++s) {
    advice.times.push_back(layer.TimesAt(s));
    advice.kernels.push_back(layer.At(s).moves_data() ? layer.At(s).KernelAt(0) : "");
    const auto removed = samples[s].removed_squares.find(advice.name);
    if (removed != samples[s].removed_squares.end()) advice.removed_squares.push_back(removed->second);
  }
  if (advice.removed_squares.size() < samples.size()) advice.removed_squares.clear();
  return advice;
}

double PaysFrom(const LayerAdvice& layer, size_t wanted, const std::vector<double>& sparsities) {
  const auto pays = [&](size_t sample) { return GainOf(layer, sample) >= kLeastGain; };
  size_t least = wanted;
  while (least > 0 && pays(wanted) && pays(least - 1)) --least;
  while (least < sparsities.size() && !pays(least)) ++least;
  return least < sparsities.size() ? sparsities[least] : 1.0;
}

// Judges each layer by the totals, which have to be there.
void Judge(size_t sample, Advice& advice) {
  double all = 0.0;
  int64_t layers = 0;
  const auto saved = [&](const LayerAdvice& layer) { return layer.share * GainOf(layer, sample); };
  for (LayerAdvice& layer : advice.layers) {
    layer.share = MeanShare(layer.dense, advice.dense);
    layer.pays_from = PaysFrom(layer, sample, advice.sparsities);
    if (GainOf(layer, sample) < kLeastGain) continue;
    all += static_cast<double>(layer.places) * saved(layer);
    layers += layer.places;
  }
  const double least = layers == 0 ? 0.0 : kLeastPart * all / static_cast<double>(layers);
  for (LayerAdvice& layer : advice.layers) {
    layer.verdict = GainOf(layer, sample) < kLeastGain ? Verdict::kNoFaster
                    : saved(layer) < least             ? Verdict::kHardlyCounts
                                                       : Verdict::kPrune;
  }
}

}  // namespace

std::string_view VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPrune:
      return "prune";
    case Verdict::kNoFaster:
      return "leave: no faster";
    case Verdict::kHardlyCounts:
      return "leave: hardly counts";
  }
  return "";
}

Status Advise(std::vector<SparsitySample> samples, double wanted, Advice& advice) {
  advice.apart = DropOthers(samples, wanted);
  const SparsitySample& first = samples.front();
  for (const SparsitySample& sample : samples) advice.sparsities.push_back(sample.sparsity);
  if (!first.parts.empty()) advice.batches = first.parts.front().plan.measured_batches;
  advice.wanted = wanted;
  BatchTimes rest(advice.batches.size());
  for (size_t p = 0; p < first.parts.size(); ++p) {
    const PlannedPart& part = first.parts[p];
    advice.mixes_batches = advice.mixes_batches || part.plan.measured_batches != advice.batches;
    if (part.plan.measured_batches.size() != advice.batches.size()) {
      advice.left_out += part.places * static_cast<int64_t>(part.plan.layers.size());
      continue;
    }
    for (size_t i = 0; i < part.plan.layers.size(); ++i) {
      const Samples layer(samples, p, i, advice.batches.size());
      if (layer.IsPruned()) {
        advice.layers.push_back(Describe(layer, samples, part.places));
      } else {
        Add(layer.Dense(), part.places, rest);
      }
    }
  }
  if (advice.layers.empty()) return Unimplemented("no layer of a plan has a weight that can be pruned");
  advice.rest = advice.dense = advice.advised = rest;
  for (const LayerAdvice& layer : advice.layers) Add(layer.dense, layer.places, advice.dense);
  for (size_t s = 0; s < samples.size(); ++s) {
    BatchTimes& total = advice.totals.emplace_back(rest);
    for (const LayerAdvice& layer : advice.layers) Add(layer.times[s], layer.places, total);
  }
  const size_t at = std::ranges::find(advice.sparsities, wanted) - advice.sparsities.begin();
  Judge(at, advice);
  for (const LayerAdvice& layer : advice.layers) {
    Add(layer.verdict == Verdict::kPrune ? layer.times[at] : layer.dense, layer.places, advice.advised);
  }
  for (const SparsitySample& sample : samples) {
    for (const PlannedPart& part : sample.parts) {
      advice.suspect += part.plan.suspect;
      advice.untimed += part.plan.untimed;
      advice.timed_now += part.plan.timed_now;
    }
  }
  return {};
}

}  // namespace swizzle::pack

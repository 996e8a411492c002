#include "model_loader/plan/choose/candidates.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <tuple>

#include "kernels/base/instant.h"
#include "model_loader/plan/choose/conversion.h"
#include "model_loader/plan/choose/layer_rows.h"
#include "model_loader/plan/choose/like_layers.h"

namespace swizzle {
namespace {

// Rows in FP32 of a plan in half precision that take, at every batch size, more than `most` times the fastest that is
// in half precision, where there is one. A change of type costs memory as well as a conversion.
void DropSlowWider(Precision precision, double most, std::vector<Candidate>& candidates) {
  std::vector<double> least(candidates.front().microseconds.size(), std::numeric_limits<double>::infinity());
  for (const Candidate& candidate : candidates) {
    if (IsWider(precision, *candidate.kernel)) continue;
    for (size_t b = 0; b < least.size(); ++b) least[b] = std::min(least[b], candidate.microseconds[b]);
  }
  std::erase_if(candidates, [&](const Candidate& candidate) {
    const auto is_slow = [=](double time, double narrow) { return time > most * narrow; };
    return IsWider(precision, *candidate.kernel) && std::ranges::equal(candidate.microseconds, least, is_slow);
  });
}

std::vector<const Kernel*> KernelsOf(const std::vector<Candidate>& candidates) {
  std::vector<const Kernel*> kernels;
  kernels.reserve(candidates.size());
  for (const Candidate& candidate : candidates) kernels.push_back(candidate.kernel);
  return kernels;
}

constexpr double kMostByEstimate = 2.0;  // which are off each other by as much
constexpr double kMostByTime = 0.9;

// Whoever takes so many times the least at both neighbours of a size isn't measured there.
constexpr double kFar = 1.5;

constexpr int64_t kConversionsGuess = 256;  // of a plan, at all batch sizes

// None for layers without.
std::optional<WeightShape> ShapeOfWeight(const Network& network, const Layer& layer) {
  const Weight* const weight = WeightOf(network, layer);
  return weight == nullptr ? std::nullopt : std::optional(WeightShape(*weight));
}

}  // namespace

void Measurer::EstimateLayer(const Network& network, const Layer& layer, std::vector<Candidate>& candidates) const {
  const std::optional<WeightShape> weight = ShapeOfWeight(network, layer);
  for (const BatchSize size : sizes_) {
    const Problem problem = LayerProblem(network, layer, size, settings_.threads);
    for (Candidate& candidate : candidates) {
      candidate.microseconds.push_back(
          EstimateInPlan(*candidate.kernel, problem, weight ? &*weight : nullptr, throughput_));
    }
  }
}

// A layer's weight as kernels hold it, made when a kernel is about to be measured and kept for the next batch size.
class Measurer::LayerWeight {
 public:
  // weight: null for kernels without any.
  LayerWeight(Backend& backend, const Weight* weight) : backend_(backend), weight_(weight) {}

  // Hashed when it is first asked for, which without a tuning cache is never.
  uint64_t pattern() {
    if (!pattern_) pattern_ = weight_ == nullptr ? 0 : PatternHash(*weight_);
    return *pattern_;
  }
  // Null for kernels without a weight, and where prepare makes none of this problem's blocking.
  StatusOr<const PackedWeight*> For(const Kernel& kernel, const Problem& problem) {
    if (kernel.prepare == nullptr) return nullptr;
    const auto [packed, is_new] = packed_.try_emplace({kernel.prepare, kernel.key.output.dtype, problem.blocking});
    if (is_new) {
      SWIZZLE_ASSIGN_OR_RETURN(packed->second, backend_.Prepare(kernel, *weight_, AsRowSolves(kernel, problem)));
    }
    return packed->second.get();
  }

 private:
  Backend& backend_;
  const Weight* const weight_;
  std::optional<uint64_t> pattern_;
  using Form = std::tuple<decltype(Kernel::prepare), DType, int>;  // see ReadSameForm
  std::map<Form, std::unique_ptr<PackedWeight>> packed_;
};

void Measurer::StartBudget(double share) { budget_end_ = options_.gate->Spent() + options_.tuning_budget * share; }

StatusOr<std::vector<MeasuredTime>> Measurer::Measure(std::span<const Contender> contenders, const Problem& problem) {
  constexpr absl::Duration kMost = absl::Milliseconds(24);
  const absl::Duration share = (budget_end_ - options_.gate->Spent()) / std::max<int64_t>(measurements_left_, 1);
  const MeasureOptions options{.budget = std::clamp(share, absl::ZeroDuration(), kMost),
                               .min_runs = 2,
                               .max_runs = 50,
                               .gate = options_.gate,
                               .watch = on_.watch};
  return MeasureKernels(backend_, *on_.stream, contenders, problem, options);
}

StatusOr<std::optional<std::vector<Measurer::Timing>>> Measurer::Time(std::span<const Kernel* const> kernels,
                                                                      const Problem& problem, LayerWeight& weight) {
  std::vector<Timing> timings(kernels.size());
  std::vector<Contender> contenders;
  std::vector<size_t> places;
  const bool anything_known = cache_ != nullptr && !cache_->empty();
  for (size_t i = 0; i < kernels.size(); ++i) {
    const auto known = anything_known ? cache_->Find(*kernels[i], problem, weight.pattern()) : std::nullopt;
    if (known) {
      --measurements_left_;
      ++timed_before_;
      timings[i].microseconds = *known;
      continue;
    }
    if (!MayMeasure()) return std::nullopt;
    SWIZZLE_ASSIGN_OR_RETURN(const PackedWeight* const packed, weight.For(*kernels[i], problem));
    contenders.push_back({kernels[i], packed});
    places.push_back(i);
  }
  SWIZZLE_ASSIGN_OR_RETURN(const auto measured, Measure(contenders, problem));
  for (size_t c = 0; c < contenders.size(); ++c) {
    Timing& timing = timings[places[c]];
    timing = {absl::ToDoubleMicroseconds(measured[c].time), !measured[c].suspect.empty()};
    --measurements_left_;
    ++timed_now_;
    suspect_ += timing.suspect;
    if (cache_ == nullptr || !std::isfinite(timing.microseconds)) continue;
    cache_->Add(*contenders[c].kernel, problem, weight.pattern(), timing.microseconds,
                DisturbancesText(measured[c].suspect));
  }
  return timings;
}

bool Measurer::AddsUp(const Problem& problem, const Weight* weight) const {
  constexpr int64_t kElements = int64_t{512} << 10;
  if (!HasHostMemory(backend_) || problem.input.batch != 1 || problem.output.batch != 1) return false;
  const int64_t elements = LayoutElements(problem.input, Layout::kNchw) + LayoutElements(problem.output, Layout::kNchw);
  return elements >= kElements && (weight == nullptr || elements >= weight->rows() * weight->cols());
}

bool Measurer::CannotWin(double microseconds, double least, size_t b) const {
  return microseconds * static_cast<double>(sizes_[0].tokens) > least * static_cast<double>(sizes_[b].tokens);
}

std::optional<double> Measurer::ByOtherSizes(const std::vector<double>& times, const std::vector<double>& least,
                                             const Problem& problem, bool adds_up, size_t b) const {
  if (b == 0) return std::nullopt;
  const std::optional<Neighbours> known = NeighboursOf(b, sizes_.size());
  const bool cannot_win = CannotWin(times[0], least[0], b);
  if (known && !adds_up) {
    const auto is_far = [&](size_t other) { return times[other] > kFar * least[other]; };
    if (!cannot_win && !(is_far(known->below) && is_far(known->above))) return std::nullopt;
    return Between(times, *known, b);
  }
  if (!adds_up && !cannot_win) return std::nullopt;
  const bool by_rows = problem.input.batch == sizes_[b].rows;
  const int64_t count = by_rows ? sizes_[b].rows : sizes_[b].tokens;
  const int64_t first = by_rows ? sizes_[0].rows : sizes_[0].tokens;
  return times[0] * static_cast<double>(count) / static_cast<double>(first);
}

double Measurer::Between(const std::vector<double>& times, Neighbours known, size_t b) const {
  return TimeBetween(sizes_[known.below], times[known.below], sizes_[known.above], times[known.above], sizes_[b]);
}

StatusOr<bool> Measurer::TimeLayer(const Network& network, const Layer& layer, std::vector<Candidate>& candidates) {
  LayerWeight weight(backend_, WeightOf(network, layer));
  const bool adds_up = AddsUp(LayerProblem(network, layer, sizes_[0], settings_.threads), WeightOf(network, layer));
  std::vector<Candidate> timed = candidates;
  for (Candidate& candidate : timed) candidate.microseconds.assign(sizes_.size(), 0.0);
  bool complete = true, trusted = true;  // each time, and some at each batch size
  std::vector<double> least(sizes_.size(), std::numeric_limits<double>::max());
  for (const size_t b : MeasuringOrder(sizes_.size())) {
    const Problem problem = LayerProblem(network, layer, sizes_[b], settings_.threads);
    std::vector<size_t> in;
    std::vector<const Kernel*> kernels;
    for (size_t i = 0; i < timed.size(); ++i) {
      if (const auto time = ByOtherSizes(timed[i].microseconds, least, problem, adds_up, b)) {
        timed[i].microseconds[b] = *time;
        --measurements_left_;
        continue;
      }
      in.push_back(i);
      kernels.push_back(timed[i].kernel);
    }
    SWIZZLE_ASSIGN_OR_RETURN(const auto timings, Time(kernels, problem, weight));
    const std::optional<Neighbours> known = NeighboursOf(b, sizes_.size());
    if (!timings && !known) {
      DropFailing(timed, candidates);
      return false;
    }
    trusted &= in.empty() || !timings || !std::ranges::all_of(*timings, &Timing::suspect);
    complete &= timings.has_value();
    for (size_t k = 0; k < in.size(); ++k) {
      Candidate& candidate = timed[in[k]];
      const Timing timing = timings ? (*timings)[k] : Timing{Between(candidate.microseconds, *known, b)};
      candidate.microseconds[b] = timing.microseconds;
      candidate.measured = true;
      candidates[in[k]].suspect |= timing.suspect;
      complete &= !timing.suspect;
    }
    for (const Candidate& candidate : timed) least[b] = std::min(least[b], candidate.microseconds[b]);
  }
  if (!complete) {
    DropFailing(timed, candidates);
    if (!trusted || !std::ranges::all_of(timed, Runs)) return false;
    for (size_t i = 0; i < timed.size(); ++i) candidates[i].microseconds = std::move(timed[i].microseconds);
    return false;
  }
  std::erase_if(timed, std::not_fn(Runs));
  if (timed.empty()) return Unimplemented("layer '", layer.name, "': no kernel runs at every batch size");
  candidates = std::move(timed);
  return true;
}

std::vector<size_t> Measurer::LongestFirst(const Network& network, const std::vector<std::vector<Candidate>>& layers,
                                           const std::vector<LayerLikeness>& likeness) const {
  std::vector<double> least(layers.size(), std::numeric_limits<double>::infinity());
  std::vector<size_t> order;
  for (size_t i = 0; i < layers.size(); ++i) {
    const Layer& layer = network.layers[i];
    if (layer.op == Op::kReshape) continue;
    order.push_back(i);
    if (!measures_) continue;
    const Problem problem = LayerProblem(network, layer, sizes_.back(), settings_.threads);
    const std::optional<WeightShape> weight = ShapeOfWeight(network, layer);
    for (const Candidate& candidate : layers[i]) {
      least[i] =
          std::min(least[i], EstimateInPlan(*candidate.kernel, problem, weight ? &*weight : nullptr, throughput_));
    }
  }
  if (!measures_) return order;
  std::ranges::stable_sort(order, std::greater<>(), [&](size_t i) { return least[i]; });
  LikeLayers::PutRepeatsLast(likeness, order);
  return order;
}

void Measurer::FindSuspects(const Network& network, const Layer& layer, std::vector<Candidate>& candidates) {
  if (cache_ == nullptr || cache_->empty()) return;
  LayerWeight weight(backend_, WeightOf(network, layer));
  for (const BatchSize size : sizes_) {
    const Problem problem = LayerProblem(network, layer, size, settings_.threads);
    for (Candidate& candidate : candidates) {
      if (!cache_->IsSuspect(*candidate.kernel, problem, weight.pattern())) continue;
      candidate.suspect = true;
      ++suspect_;
    }
  }
}

StatusOr<bool> Measurer::JudgeLayer(const Network& network, const Layer& layer, std::vector<Candidate>& candidates) {
  SWIZZLE_ASSIGN_OR_RETURN(const bool timed, TimeLayer(network, layer, candidates));
  if (timed) DropSlowWider(settings_.precision, kMostByTime, candidates);
  if (timed) return true;
  ++untimed_layers_;
  if (!measures_) FindSuspects(network, layer, candidates);
  return false;
}

void Measurer::AddRenames(const Network& network, const Layer& layer, std::vector<Candidate>& candidates) const {
  for (Candidate& rename : LayerRenames(network, layer)) {
    rename.microseconds.assign(sizes_.size(), 0.0);
    rename.measured = true;
    candidates.push_back(std::move(rename));
  }
}

StatusOr<std::vector<std::vector<Candidate>>> Measurer::MeasureLayers(const Network& network) {
  std::vector<std::vector<Candidate>> layers;
  measurements_left_ = 0;
  for (const Layer& layer : network.layers) {
    SWIZZLE_ASSIGN_OR_RETURN(auto candidates, LayerRows(backend_, network, layer, settings_, dense_only_));
    if (!HasHostMemory(backend_) && layer.op != Op::kReshape) {
      SettleForDevice(settings_.precision, LayerProblem(network, layer, 1, settings_.threads), candidates);
    }
    if (layer.op == Op::kReshape) {
      for (Candidate& candidate : candidates) candidate.microseconds.assign(sizes_.size(), 0.0);
    } else {
      EstimateLayer(network, layer, candidates);
      DropSlowWider(settings_.precision, kMostByEstimate, candidates);
      for (Candidate& candidate : candidates) candidate.microseconds.clear();
      measurements_left_ += static_cast<int64_t>(candidates.size() * sizes_.size());
    }
    layers.push_back(std::move(candidates));
  }
  StartBudget(TuningShare::kKernels);
  std::vector<LayerLikeness> likeness;
  for (const Layer& layer : network.layers) {
    likeness.emplace_back();
    if (layer.op == Op::kReshape) continue;
    const Problem problem = LayerProblem(network, layer, sizes_[0], settings_.threads);
    likeness.back() = LikenessOf(problem, WeightOf(network, layer));
  }
  LikeLayers like;
  std::vector<size_t> untimed;
  const std::vector<size_t> order = LongestFirst(network, layers, likeness);
  for (size_t k = 0; k < order.size(); ++k) {
    const size_t i = order[k];
    std::vector<const Kernel*> offered = KernelsOf(layers[i]);
    SWIZZLE_ASSIGN_OR_RETURN(const bool timed, JudgeLayer(network, network.layers[i], layers[i]));
    timed ? like.Add(likeness[i], std::move(offered), layers[i]) : untimed.push_back(i);
    if (!measures_ || !options_.progress) continue;
    options_.progress({PlanProgress::Stage::kMeasuring, static_cast<int64_t>(k + 1), std::ssize(order)});
  }
  for (const size_t i : untimed) {
    const bool has_times = like.TakeTimes(likeness[i], layers[i]) || !layers[i].front().microseconds.empty();
    if (!has_times) EstimateLayer(network, network.layers[i], KeepThoseOfAnyZeros(layers[i]));
  }
  for (const size_t i : order) AddRenames(network, network.layers[i], layers[i]);
  StartBudget(TuningShare::kConversions);
  measurements_left_ = kConversionsGuess;
  return layers;
}

StatusOr<std::vector<double>> Measurer::BlockingRatios(const Kernel& kernel, const Problem& problem,
                                                       LayerWeight& weight) {
  constexpr int kFirstBesideOthers = -1;  // the first one's time in the same race: others are compared with no other
  std::vector<Problem> problems(kernel.blockings.size(), problem);
  for (size_t i = 0; i < problems.size(); ++i) problems[i].blocking = i == 0 ? kFirstBesideOthers : static_cast<int>(i);
  std::vector<double> times;
  for (size_t i = 0; i < problems.size() && cache_ != nullptr; ++i) {
    const auto known = cache_->Find(kernel, problems[i], weight.pattern());
    if (!known) break;
    times.push_back(*known);
  }
  if (times.size() == problems.size()) {
    timed_before_ += static_cast<int>(times.size());
  } else {
    if (!MayMeasure()) return std::vector<double>();
    SWIZZLE_ASSIGN_OR_RETURN(times, RaceBlockings(kernel, problem, weight));
    if (times.empty()) return times;
    for (size_t i = 0; i < problems.size() && cache_ != nullptr; ++i) {
      if (std::isfinite(times[i])) cache_->Add(kernel, problems[i], weight.pattern(), times[i]);
    }
  }
  std::vector<double> ratios;
  ratios.reserve(times.size());
  for (double time : times) ratios.push_back(time / std::max(times[0], 1e-3));
  return ratios;
}

StatusOr<std::vector<double>> Measurer::RaceBlockings(const Kernel& kernel, const Problem& problem,
                                                      LayerWeight& weight) {
  std::vector<Contender> contenders;
  std::vector<size_t> places;
  for (size_t i = 0; i < kernel.blockings.size(); ++i) {
    Problem other = problem;
    other.blocking = static_cast<int>(i);
    SWIZZLE_ASSIGN_OR_RETURN(const PackedWeight* const packed, weight.For(kernel, other));
    if (packed == nullptr) continue;
    contenders.push_back({&kernel, packed});
    places.push_back(i);
  }
  SWIZZLE_ASSIGN_OR_RETURN(const auto measured, Measure(contenders, problem));
  timed_now_ += static_cast<int>(contenders.size());
  std::vector<double> times(kernel.blockings.size(), absl::ToDoubleMicroseconds(measured[0].time));
  for (size_t c = 0; c < contenders.size(); ++c) {
    if (!measured[c].suspect.empty()) {
      ++suspect_;
      return std::vector<double>();
    }
    times[places[c]] = absl::ToDoubleMicroseconds(measured[c].time);
  }
  return times;
}

StatusOr<int> Measurer::ChooseBlocking(const Network& network, const Layer& layer, const Kernel& kernel) {
  constexpr double kGain = 0.03, kMostLoss = 0.02;  // of all batch sizes on average, and of any; what is less is noise
  LayerWeight weight(backend_, &network.weights[layer.weight]);
  Problem problem = LayerProblem(network, layer, sizes_[0], settings_.threads);
  const size_t sizes = AddsUp(problem, &network.weights[layer.weight]) ? 1 : sizes_.size();
  std::vector<double> total(kernel.blockings.size());
  for (const BatchSize size : std::span(sizes_).first(sizes)) {
    problem = LayerProblem(network, layer, size, settings_.threads);
    SWIZZLE_ASSIGN_OR_RETURN(const auto ratios, BlockingRatios(kernel, problem, weight));
    measurements_left_ -= static_cast<int64_t>(total.size());
    if (ratios.empty()) return 0;
    for (size_t i = 0; i < total.size(); ++i) {
      total[i] += ratios[i];
      if (ratios[i] > 1.0 + kMostLoss) total[i] = std::numeric_limits<double>::infinity();
    }
  }
  const auto least = std::ranges::min_element(total);
  if (*least >= total[0] * (1.0 - kGain)) return 0;
  // A tuning cache of a machine with other caches may name one that is the first one again here.
  problem.blocking = static_cast<int>(least - total.begin());
  SWIZZLE_ASSIGN_OR_RETURN(const PackedWeight* const packed, weight.For(kernel, problem));
  return packed == nullptr ? 0 : problem.blocking;
}

Status Measurer::ChooseBlockings(const Network& network, std::span<Candidate> chosen) {
  const auto has_choice = [](const Candidate& candidate) {
    return candidate.measured && candidate.kernel != nullptr && !candidate.kernel->blockings.empty();
  };
  measurements_left_ = 0;
  for (const Candidate& candidate : chosen) {
    const size_t blockings = has_choice(candidate) ? candidate.kernel->blockings.size() : 0;
    measurements_left_ += static_cast<int64_t>(blockings * sizes_.size());
  }
  StartBudget(TuningShare::kBlockings);
  for (size_t i = 0; i < chosen.size(); ++i) {
    if (!has_choice(chosen[i])) continue;
    SWIZZLE_ASSIGN_OR_RETURN(chosen[i].blocking, ChooseBlocking(network, network.layers[i], *chosen[i].kernel));
  }
  return absl::OkStatus();
}

StatusOr<std::vector<double>> Measurer::MeasureConversion(const NetworkValue& value, Storage from, Storage to) {
  const std::vector<int64_t> key = {value.channels,
                                    value.height,
                                    value.width,
                                    value.per_token ? 1 : 0,
                                    static_cast<int64_t>(from.layout),
                                    static_cast<int64_t>(from.dtype),
                                    static_cast<int64_t>(to.layout),
                                    static_cast<int64_t>(to.dtype),
                                    static_cast<int64_t>(value.AsWholeNumbers().value_or(Quantised()).dtype)};
  if (auto known = conversions_.find(key); known != conversions_.end()) return known->second;
  std::vector<double> microseconds;
  if (const Kernel* kernel = FindConversion(backend_, value, from, to, settings_)) {
    LayerWeight none(backend_, nullptr);
    const bool adds_up = AddsUp(ConversionProblem(value, sizes_[0], settings_), nullptr);
    microseconds.resize(sizes_.size());
    for (const size_t b : MeasuringOrder(sizes_.size())) {
      const Problem problem = ConversionProblem(value, sizes_[b], settings_);
      if (adds_up && b > 0) {
        microseconds[b] = microseconds[0] * static_cast<double>(sizes_[b].rows) / static_cast<double>(sizes_[0].rows);
        continue;
      }
      if (const auto known = NeighboursOf(b, sizes_.size())) {
        microseconds[b] = Between(microseconds, *known, b);
        continue;
      }
      SWIZZLE_ASSIGN_OR_RETURN(const auto timings, Time({&kernel, 1}, problem, none));
      const bool timed = timings && !timings->front().suspect;
      microseconds[b] =
          timed ? timings->front().microseconds : EstimateMicroseconds(*kernel, problem, nullptr, throughput_.plan);
    }
  }
  return conversions_.emplace(key, std::move(microseconds)).first->second;
}

}  // namespace swizzle

#include "model_loader/plan/choose/like_layers.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "kernels/base/status.h"
#include "kernels/format/format.h"
#include "kernels/whole_numbers/byte_weight.h"
#include "model_loader/plan/choose/tuning_cache.h"

namespace swizzle {
namespace {

constexpr double kMostDifference = 0.1;  // in nonzeros, of the larger number

bool AreNear(int64_t a, int64_t b) {
  return static_cast<double>(std::abs(a - b)) <= kMostDifference * static_cast<double>(std::max(a, b));
}

// Null if it has none.
const Candidate* TimedFor(const Candidate& wanted, const std::vector<Candidate>& timed) {
  const auto found = std::ranges::find(timed, wanted.kernel, &Candidate::kernel);
  return found == timed.end() ? nullptr : &*found;
}

}  // namespace

LayerLikeness LikenessOf(const Problem& problem, const Weight* weight) {
  Problem without_zeros = problem;
  without_zeros.input_zeros.reset();
  std::string shape = ProblemText(without_zeros);
  if (weight == nullptr) return {std::move(shape), 0};
  const int64_t places = weight->rows() * weight->cols();
  return {Concat(shape, " by ", FormatName(weight->format()), " ", weight->rows(), "x", weight->cols()),
          IsSparse(weight->format()) ? weight->nonzeros() + CountBeyondSignedBytes(*weight) : places,
          problem.input_zeros};
}

void LikeLayers::PutRepeatsLast(const std::vector<LayerLikeness>& likeness, std::vector<size_t>& order) {
  std::map<std::string, int> seen;
  std::vector<int> repeat(likeness.size(), 0);
  for (const size_t layer : order) repeat[layer] = seen[likeness[layer].shape]++;
  std::ranges::stable_sort(order, std::less<>(), [&](size_t layer) { return repeat[layer]; });
}

void LikeLayers::Add(const LayerLikeness& likeness, std::vector<const Kernel*> offered,
                     const std::vector<Candidate>& timed) {
  by_shape_.emplace(likeness.shape, Timed{likeness, std::move(offered), timed});
}

bool LikeLayers::TakeTimes(const LayerLikeness& likeness, std::vector<Candidate>& candidates) const {
  const auto [begin, end] = by_shape_.equal_range(likeness.shape);
  for (auto like = begin; like != end; ++like) {
    const std::vector<Candidate>& timed = like->second.candidates;
    const std::vector<const Kernel*>& offered = like->second.offered;
    const bool same_zeros = like->second.likeness.input_zeros == likeness.input_zeros;
    const auto goes_by_others = [&](const Candidate& candidate) {
      return candidate.kernel->skips_input_zeros && !same_zeros;
    };
    const auto is_timed = [&](const Candidate& candidate) {
      return !goes_by_others(candidate) && TimedFor(candidate, timed) != nullptr;
    };
    const auto was_offered = [&](const Candidate& candidate) {
      return goes_by_others(candidate) || std::ranges::find(offered, candidate.kernel) != offered.end();
    };
    if (!AreNear(like->second.likeness.nonzeros, likeness.nonzeros) || !std::ranges::all_of(candidates, was_offered))
      continue;
    if (std::ranges::none_of(candidates, is_timed)) continue;
    std::erase_if(candidates, std::not_fn(is_timed));
    for (Candidate& candidate : candidates) {
      candidate.microseconds = TimedFor(candidate, timed)->microseconds;
      candidate.alike = true;
    }
    return true;
  }
  return false;
}

}  // namespace swizzle

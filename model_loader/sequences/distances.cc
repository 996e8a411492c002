#include "model_loader/sequences/distances.h"

#include <algorithm>

namespace swizzle {
namespace {

// Where distance 0 is among the samples.
size_t MiddleOf(std::span<const int64_t> samples) { return samples.size() / 2; }

std::vector<int64_t> MakeSamples() {
  constexpr int kFarthestPower = 30;
  std::vector<int64_t> positive;
  for (int64_t distance = 1; distance <= kNearDistance; ++distance) positive.push_back(distance);
  for (int power = 14; power <= kFarthestPower; ++power) {
    const int64_t far = int64_t{1} << power;
    for (const int64_t distance : {far - 1, far, far + 1, far + far / 3}) positive.push_back(distance);
  }
  std::vector<int64_t> samples;
  for (size_t i = positive.size(); i-- > 0;) samples.push_back(-positive[i]);
  samples.push_back(0);
  samples.insert(samples.end(), positive.begin(), positive.end());
  return samples;
}

}  // namespace

std::span<const int64_t> SampledDistances() {
  static const std::vector<int64_t>* const kSamples = new std::vector<int64_t>(MakeSamples());
  return *kSamples;
}

std::span<const double> DistanceNumbers::Of(int64_t state, int64_t head) const {
  const size_t count = SampledDistances().size();
  const int64_t row = (states == 1 ? 0 : state) * heads + (heads == 1 ? 0 : head);
  return std::span(numbers).subspan(static_cast<size_t>(row) * count, count);
}

SharedDistances DistancesOf(const std::function<double(int64_t distance)>& function) {
  auto made = std::make_shared<DistanceNumbers>();
  for (const int64_t distance : SampledDistances()) made->numbers.push_back(function(distance));
  return made;
}

SharedDistances DistancesOfHeads(std::span<const double> numbers) {
  auto made = std::make_shared<DistanceNumbers>();
  made->heads = static_cast<int64_t>(numbers.size());
  for (const double number : numbers) made->numbers.insert(made->numbers.end(), SampledDistances().size(), number);
  return made;
}

SharedDistances DistancesOfMask(double at_zero, double at_one) {
  auto made = std::make_shared<DistanceNumbers>();
  made->states = 2;
  for (const double number : {at_zero, at_one}) {
    made->numbers.insert(made->numbers.end(), SampledDistances().size(), number);
  }
  return made;
}

SharedDistances DistancesApplied(const PointFunction& function, DType dtype, std::span<const SharedDistances> inputs) {
  auto made = std::make_shared<DistanceNumbers>();
  for (const SharedDistances& input : inputs) {
    made->states = std::max(made->states, input->states);
    if (input->heads != 1 && made->heads != 1 && input->heads != made->heads) return nullptr;
    made->heads = std::max(made->heads, input->heads);
  }
  const size_t count = SampledDistances().size();
  made->numbers.reserve(static_cast<size_t>(made->states * made->heads) * count);
  std::vector<double> arguments(inputs.size());
  std::vector<std::span<const double>> rows(inputs.size());
  for (int64_t state = 0; state < made->states; ++state) {
    for (int64_t head = 0; head < made->heads; ++head) {
      for (size_t i = 0; i < inputs.size(); ++i) rows[i] = inputs[i]->Of(state, head);
      for (size_t at = 0; at < count; ++at) {
        for (size_t i = 0; i < inputs.size(); ++i) arguments[i] = rows[i][at];
        made->numbers.push_back(Rounded(function(arguments), dtype));
      }
    }
  }
  return made;
}

std::optional<int64_t> ReachOf(const DistanceNumbers& distances, int64_t longest) {
  const std::span<const int64_t> samples = SampledDistances();
  const size_t middle = MiddleOf(samples);
  size_t reach = 0;  // in samples from the middle
  for (int64_t state = 0; state < distances.states; ++state) {
    for (int64_t head = 0; head < distances.heads; ++head) {
      const std::span<const double> row = distances.Of(state, head);
      for (size_t i = middle; i > reach; --i) {
        if (row[middle - i + 1] == row[0] && row[middle + i - 1] == row[2 * middle]) continue;
        reach = i;
        break;
      }
    }
  }
  const int64_t found = samples[middle + reach];
  if (found <= kNearDistance) return found;
  return longest >= 1 && longest <= kNearDistance ? std::optional(longest) : std::nullopt;
}

std::vector<float> BiasesWithin(const DistanceNumbers& distances, int64_t state, int64_t heads, int64_t reach) {
  const auto middle = static_cast<int64_t>(MiddleOf(SampledDistances()));
  std::vector<float> biases;
  for (int64_t head = 0; head < heads; ++head) {
    const std::span<const double> row = distances.Of(state, head);
    for (int64_t distance = -reach; distance <= reach; ++distance) {
      biases.push_back(static_cast<float>(row[static_cast<size_t>(middle + distance)]));
    }
  }
  return biases;
}

}  // namespace swizzle

#include "model_loader/interpreter/operators/signals/fourier.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace swizzle::interpreter {

StatusOr<FourierPlan> FourierPlan::Make(Call& call, int64_t length, bool inverse) {
  FourierPlan plan;
  plan.length_ = length;
  plan.inverse_ = inverse;
  SWIZZLE_ASSIGN_OR_RETURN(plan.roots_, call.New(DType::kFloat64, {length, 2}));
  int64_t rest = length;
  for (int64_t factor = 2; rest > 1; ++factor) {
    if (factor > kMaxPrime) {
      return Unimplemented("a transform of length ", length, ", which has a prime factor above ", kMaxPrime,
                           ", is not supported");
    }
    for (; rest % factor == 0; rest /= factor) {
      plan.factors_.push_back(factor);
      plan.largest_ = factor;
    }
  }
  Complex* const roots = reinterpret_cast<Complex*>(plan.roots_.data.get());
  const double angle = (inverse ? 2.0 : -2.0) * std::numbers::pi / static_cast<double>(length);
  for (int64_t k = 0; k < length; ++k) {
    roots[k] = {std::cos(angle * static_cast<double>(k)), std::sin(angle * static_cast<double>(k))};
  }
  return plan;
}

std::span<const Complex> FourierPlan::Roots() const {
  return {reinterpret_cast<const Complex*>(roots_.data.get()), static_cast<size_t>(length_)};
}

void FourierPlan::Run(const Complex* values, Complex* room) const {
  Step(values, 1, 0, length_, room, room + length_);
  if (!inverse_) return;
  for (int64_t k = 0; k < length_; ++k) room[k] /= static_cast<double>(length_);
}

// The transform of every stride'th value: that of each residue of their places by the factor, then their sums.
void FourierPlan::Step(const Complex* values, int64_t stride, size_t factor, int64_t length, Complex* to,
                       Complex* terms) const {
  if (length == 1) {
    *to = *values;
    return;
  }
  const std::span<const Complex> roots = Roots();
  const int64_t p = factors_[factor], part = length / p;
  for (int64_t r = 0; r < p; ++r) Step(values + r * stride, stride * p, factor + 1, part, to + r * part, terms);
  for (int64_t k = 0; k < part; ++k) {
    for (int64_t r = 0; r < p; ++r) terms[r] = to[r * part + k] * roots[static_cast<size_t>(r * k * stride)];
    for (int64_t q = 0; q < p; ++q) {
      Complex sum = terms[0];
      for (int64_t r = 1; r < p; ++r) {
        sum += terms[r] * roots[static_cast<size_t>(q * r % p * (length_ / p))];
      }
      to[q * part + k] = sum;
    }
  }
}

}  // namespace swizzle::interpreter

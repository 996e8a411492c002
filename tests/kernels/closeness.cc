#include "tests/kernels/closeness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace swizzle {
namespace {

// How far results may be off.
struct Tolerance {
  double of_largest;    // difference over the largest magnitude of the output (at least 1), for sums of up to 900 terms
  double of_softmax;    // of softmax, each value relative to itself: exp is good to 1e-6, the sum adds its own rounding
  double softmax_step;  // between the type's smallest numbers
};

Tolerance ToleranceOf(const Kernel& kernel) {
  switch (kernel.numerics) {
    case Numerics::kOperandsAsBytes:
      return {3e-2, 3e-2, 6e-8};
    case Numerics::kBfloat16Factors:
      return {4.1e-3, 4.1e-3, 1e-37};  // attention_bfloat16.h
    case Numerics::kSplitFactors:
      return {3e-5, 5e-6, 1e-37};  // tensor cores cut what they add off: sums of hundreds of products are up to 1.1e-5
    case Numerics::kTf32Factors:
      return {1e-4, 5e-6, 1e-37};
    case Numerics::kOfTypes:
      break;
  }
  return VisitHalfOr(
      PrecisionOf(kernel),
      [&]<DType kHalf>() {
        if constexpr (kHalf == DType::kFloat16) return Tolerance{2e-3, 2e-3, 6e-8};
        if constexpr (kHalf == DType::kBFloat16) return Tolerance{1.6e-2, 1.6e-2, 1e-37};
      },
      [&] {
        return Tolerance{1e-5, 5e-6, 1e-37};
      });
}

}  // namespace

DType PrecisionOf(const Kernel& kernel) {
  if (IsHalf(kernel.key.input.dtype)) return kernel.key.input.dtype;
  return IsHalf(kernel.key.output.dtype) ? kernel.key.output.dtype : DType::kFloat32;
}

double LargestOf(const reference::Result& values) {
  double largest = 1;
  for (double value : values) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  return largest;
}

void ExpectClose(const Kernel& kernel, const std::vector<float>& actual, const reference::Result& expected,
                 double largest) {
  ASSERT_EQ(actual.size(), expected.size());
  const Tolerance tolerance = ToleranceOf(kernel);
  for (size_t i = 0; i < actual.size(); ++i) {
    if (static_cast<double>(actual[i]) == expected[i]) continue;  // infinities of empty windows too
    const double scale = kernel.key.op == Op::kSoftmax ? tolerance.of_softmax * expected[i] + tolerance.softmax_step
                                                       : tolerance.of_largest * largest;
    ASSERT_LE(std::abs(actual[i] - expected[i]), scale)
        << "NCHW element " << i << ": " << actual[i] << ", not " << expected[i];
  }
}

}  // namespace swizzle

#include "model_loader/plan/estimate.h"

namespace swizzle {
namespace {

// Multiply-adds and floats a microsecond, as measured on AVX-512 machines with two FMA ports; rounded.
constexpr double kSparseRate = 20e3;
constexpr double kDenseRate = 40e3;
constexpr double kDepthwiseRate = 8e3;
constexpr double kMemoryRate = 2e3;
// What a call costs before it computes anything.
constexpr double kCallMicroseconds = 2.0;

double MultiplyAdds(const Kernel& kernel, const Problem& problem, const Weight& weight) {
  const bool skips_zeros = kernel.key.weights == Format::kCsr;
  const int64_t entries = skips_zeros ? weight.nonzeros() : weight.rows() * weight.cols();
  const int64_t positions =
      kernel.key.output == Layout::kPanels ? PanelGrid(problem.output.positions()).padded_positions()
                                           : problem.output.positions();
  return static_cast<double>(entries) * static_cast<double>(positions);
}

double Rate(const Kernel& kernel) {
  if (kernel.key.op == Op::kDepthwiseConv) return kDepthwiseRate;
  return kernel.key.weights == Format::kCsr ? kSparseRate : kDenseRate;
}

}  // namespace

double EstimateMicroseconds(const Kernel& kernel, const Problem& problem, const Weight* weight) {
  if (weight != nullptr) return kCallMicroseconds + MultiplyAdds(kernel, problem, *weight) / Rate(kernel);
  const int64_t floats =
      LayoutElements(problem.input, kernel.key.input) + LayoutElements(problem.output, kernel.key.output);
  return kCallMicroseconds + static_cast<double>(floats) / kMemoryRate;
}

}  // namespace swizzle

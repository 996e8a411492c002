#include "model_loader/plan/choose/estimate.h"

namespace swizzle {
namespace {

// Multiply-adds and floats a microsecond, as measured on AVX-512 machines with two FMA ports; rounded.
constexpr double kSparseRate = 20e3;
constexpr double kDenseRate = 40e3;
constexpr double kDepthwiseRate = 8e3;
constexpr double kMemoryRate = 2e3;
// What a call costs before it computes anything.
constexpr double kCallMicroseconds = 2.0;

bool SkipsZeros(const Kernel& kernel) {
  return kernel.key.weights == Format::kCsr || kernel.key.weights == Format::kPattern;
}

double MultiplyAdds(const Kernel& kernel, const Problem& problem, const Weight& weight) {
  const int64_t entries = SkipsZeros(kernel) ? weight.nonzeros() : weight.rows() * weight.cols();
  if (problem.op == Op::kSparseAttention) {
    const double sequences = static_cast<double>(problem.input.batch) / static_cast<double>(problem.attention().length);
    const double channels = static_cast<double>(problem.input.channels + problem.output.channels);
    return sequences * static_cast<double>(entries) * channels;
  }
  const int64_t positions = kernel.key.output == Layout::kPanels
                                ? PanelGrid(problem.output.positions()).padded_positions()
                                : problem.output.positions();
  return static_cast<double>(entries) * static_cast<double>(positions);
}

double Rate(const Kernel& kernel) {
  if (kernel.key.op == Op::kDepthwiseConv) return kDepthwiseRate;
  return SkipsZeros(kernel) ? kSparseRate : kDenseRate;
}

}  // namespace

double EstimateMicroseconds(const Kernel& kernel, const Problem& problem, const Weight* weight) {
  if (weight != nullptr) return kCallMicroseconds + MultiplyAdds(kernel, problem, *weight) / Rate(kernel);
  const int64_t floats =
      LayoutElements(problem.input, kernel.key.input) + LayoutElements(problem.output, kernel.key.output);
  return kCallMicroseconds + static_cast<double>(floats) / kMemoryRate;
}

}  // namespace swizzle

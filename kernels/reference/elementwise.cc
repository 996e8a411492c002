#include <algorithm>
#include <cmath>

#include "kernels/reference/reference.h"

namespace swizzle::reference {

double ApplyEpilogue(const Epilogue& epilogue, double sum, double residual) {
  return std::min<double>(std::max<double>(sum + residual, epilogue.low), epilogue.high);
}

Result Add(const Problem& problem, const Values& a, const Values& b) {
  Result result(a.size());
  for (size_t i = 0; i < a.size(); ++i) result[i] = ApplyEpilogue(problem.epilogue, a[i], b[i]);
  return result;
}

Result Activation(const Problem& problem, const Values& input) {
  Result result(input.size());
  for (size_t i = 0; i < input.size(); ++i) result[i] = ApplyEpilogue(problem.epilogue, input[i], 0);
  return result;
}

Result Softmax(const Problem& problem, const Values& input) {
  const int64_t channels = problem.input.channels;
  const int64_t plane = problem.input.plane();
  Result result(input.size());
  for (int64_t position = 0; position < problem.input.positions(); ++position) {
    const int64_t first = position / plane * channels * plane + position % plane;
    double largest = input[first];
    for (int64_t c = 1; c < channels; ++c) largest = std::max<double>(largest, input[first + c * plane]);
    double sum = 0;
    for (int64_t c = 0; c < channels; ++c) {
      result[first + c * plane] = std::exp(input[first + c * plane] - largest);
      sum += result[first + c * plane];
    }
    for (int64_t c = 0; c < channels; ++c) result[first + c * plane] /= sum;
  }
  return result;
}

}  // namespace swizzle::reference

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/reference/reference.h"

namespace swizzle::reference {

double ApplyEpilogue(const Epilogue& epilogue, double sum, double residual) {
  const double clamped = std::min<double>(std::max<double>(sum + residual, epilogue.low), epilogue.high);
  return epilogue.function ? ApplyFunction(*epilogue.function, clamped) : clamped;
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

Result Multiply(const Problem& problem, const Values& a, const Values& b) {
  Result result(a.size());
  for (size_t i = 0; i < a.size(); ++i) result[i] = ApplyEpilogue(problem.epilogue, double{a[i]} * b[i], 0);
  return result;
}

Result Scale(const Problem& problem, const Values& input, const Values& factors) {
  const size_t plane = static_cast<size_t>(problem.input.plane());
  Result result(input.size());
  for (size_t i = 0; i < input.size(); ++i) {
    result[i] = ApplyEpilogue(problem.epilogue, double{input[i]} * factors[i / plane], 0);
  }
  return result;
}

double ApplyFunction(const swizzle::Function& function, double x) {
  const double sigmoid = 1 / (1 + std::exp(-x));
  const double hard = std::clamp(function.alpha * x + function.beta, 0.0, 1.0);
  switch (function.kind) {
    case FunctionKind::kSigmoid:
      return sigmoid;
    case FunctionKind::kSilu:
      return x * sigmoid;
    case FunctionKind::kHardSigmoid:
      return hard;
    case FunctionKind::kHardSwish:
      return x * hard;
    case FunctionKind::kLeakyRelu:
      return x < 0 ? function.alpha * x : x;
    case FunctionKind::kTanh:
      return std::tanh(x);
    case FunctionKind::kGelu:
      return x / 2 * std::erfc(-x / std::sqrt(2.0));
    case FunctionKind::kGeluTanh:
      return x / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
  }
  return x;
}

Result Function(const Problem& problem, const Values& input) {
  Result result(input.size());
  for (size_t i = 0; i < input.size(); ++i) {
    result[i] = ApplyEpilogue(problem.epilogue, ApplyFunction(problem.function(), input[i]), 0);
  }
  return result;
}

Result Transpose(const Problem& problem, const Values& input) {
  const int64_t rows = problem.input.channels, columns = problem.input.plane();
  Result result(input.size());
  for (int64_t i = 0; i < problem.input.batch; ++i) {
    const int64_t image = i * rows * columns;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) result[image + c * rows + r] = input[image + r * columns + c];
    }
  }
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

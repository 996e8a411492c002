#include "kernels/whole_numbers/steps.h"

#include <algorithm>
#include <cmath>

namespace swizzle {

OutputSteps StepsOf(const Problem& problem) {
  const Epilogue& epilogue = problem.epilogue;
  OutputSteps steps{.real_low = epilogue.low, .real_high = epilogue.high};
  if (!epilogue.requantise) return steps;
  const Quantised& output = *epilogue.requantise;
  steps.zero_point = output.zero_point;
  if (epilogue.function) return steps;
  const auto step_of = [&](float bound) {
    const float value = std::clamp(std::nearbyint(bound / output.scale), -1024.0f, 1024.0f);
    return std::clamp(static_cast<int32_t>(value) + output.zero_point, 0, 255);
  };
  steps.low = step_of(epilogue.low);
  steps.high = step_of(epilogue.high);
  if (!epilogue.residual) return steps;
  const Quantised& residual = problem.inputs_as[InputCount(problem)];
  steps.residual_scale = residual.scale / output.scale;
  steps.residual_offset = -(static_cast<float>(residual.zero_point) * steps.residual_scale);
  return steps;
}

float ScaleInSteps(float input_scale, float weight_scale, const Problem& problem) {
  const float product = input_scale * weight_scale;
  const Epilogue& epilogue = problem.epilogue;
  return epilogue.requantise && !epilogue.function ? product / epilogue.requantise->scale : product;
}

bool ReadsBytes(const Problem& problem, Layout layout) {
  return problem.from == Storage{layout, DType::kUint8} && problem.inputs_as[0].dtype == DType::kUint8;
}

bool WritesBytes(const Problem& problem, Layout layout) {
  return problem.to == Storage{layout, DType::kUint8} && problem.epilogue.requantise &&
         problem.epilogue.requantise->dtype == DType::kUint8;
}

}  // namespace swizzle

#include "kernels/cpu/conv/linear_ending.h"

#include <algorithm>

#include "kernels/cpu/elementwise/function.h"

namespace swizzle::cpu {

void FinishFeatures(const Epilogue& epilogue, const float* bias, const float* residual, int64_t begin, int64_t end,
                    float* row) {
  for (int64_t m = begin; m < end; ++m) {
    const float sum = row[m] + bias[m] + (residual == nullptr ? 0.0f : residual[m]);
    row[m] = std::min(std::max(sum, epilogue.low), epilogue.high);
  }
  if (epilogue.function) ApplyFunction(*epilogue.function, row + begin, end - begin);
}

}  // namespace swizzle::cpu

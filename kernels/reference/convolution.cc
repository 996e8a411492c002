#include "kernels/reference/reference.h"
#include "kernels/reference/sliding_window.h"

namespace swizzle::reference {
namespace {

double At(const Values& values, int64_t index) { return values.empty() ? 0.0 : values[index]; }

}  // namespace

Result Conv(const Problem& problem, const Weight& weight, const Values& input, const Values& residual) {
  const DenseMatrix matrix = weight.ToDense();
  const int64_t taps = problem.window().taps();
  const int64_t channels = problem.input.channels;
  const int64_t plane = problem.input.plane();
  Result result(problem.output.positions() * problem.output.channels);
  ForEachOutput(problem.output, [&](int64_t index, int64_t image, int64_t row, int64_t y, int64_t x) {
    double sum = At(weight.bias, row);
    ForEachTap(problem, y, x, [&](int64_t tap, int64_t position) {
      for (int64_t c = 0; c < channels; ++c) {
        sum += double{matrix.values[row * matrix.cols + c * taps + tap]} *
               input[(image * channels + c) * plane + position];
      }
    });
    result[index] = ApplyEpilogue(problem.epilogue, sum, At(residual, index));
  });
  return result;
}

Result DepthwiseConv(const Problem& problem, const Weight& weight, const Values& input, const Values& residual) {
  const DenseMatrix matrix = weight.ToDense();
  const int64_t plane = problem.input.plane();
  Result result(problem.output.positions() * problem.output.channels);
  ForEachOutput(problem.output, [&](int64_t index, int64_t image, int64_t channel, int64_t y, int64_t x) {
    double sum = At(weight.bias, channel);
    const float* input_plane = input.data() + (image * problem.input.channels + channel) * plane;
    ForEachTap(problem, y, x, [&](int64_t tap, int64_t position) {
      sum += double{matrix.values[channel * matrix.cols + tap]} * input_plane[position];
    });
    result[index] = ApplyEpilogue(problem.epilogue, sum, At(residual, index));
  });
  return result;
}

}  // namespace swizzle::reference

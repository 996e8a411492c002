#include <algorithm>
#include <limits>

#include "kernels/reference/reference.h"
#include "kernels/reference/sliding_window.h"

namespace swizzle::reference {
namespace {

const float* PlaneOf(const Problem& problem, const Values& input, int64_t image, int64_t channel) {
  return input.data() + (image * problem.input.channels + channel) * problem.input.plane();
}

}  // namespace

Result MaxPool(const Problem& problem, const Values& input) {
  Result result(problem.output.positions() * problem.output.channels);
  ForEachOutput(problem.output, [&](int64_t index, int64_t image, int64_t channel, int64_t y, int64_t x) {
    const float* plane = PlaneOf(problem, input, image, channel);
    double largest = -std::numeric_limits<double>::infinity();
    ForEachTap(problem, y, x, [&](int64_t, int64_t position) { largest = std::max<double>(largest, plane[position]); });
    result[index] = ApplyEpilogue(problem.epilogue, largest, 0);
  });
  return result;
}

Result AveragePool(const Problem& problem, const Values& input) {
  Result result(problem.output.positions() * problem.output.channels);
  ForEachOutput(problem.output, [&](int64_t index, int64_t image, int64_t channel, int64_t y, int64_t x) {
    const float* plane = PlaneOf(problem, input, image, channel);
    double sum = 0;
    int64_t count = 0;
    ForEachTap(problem, y, x, [&](int64_t, int64_t position) {
      sum += plane[position];
      ++count;
    });
    if (problem.window().count_include_pad) count = problem.window().taps();
    result[index] = ApplyEpilogue(problem.epilogue, count == 0 ? 0 : sum / static_cast<double>(count), 0);
  });
  return result;
}

}  // namespace swizzle::reference

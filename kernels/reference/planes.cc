// What moves whole channels and planes, or makes planes of other sizes.
#include "kernels/operator/resampling.h"
#include "kernels/reference/reference.h"

namespace swizzle::reference {

Result Join(const Problem& problem, const std::vector<Values>& inputs) {
  Result result;
  const int64_t rows =
      problem.parts().of_planes ? problem.output.batch * problem.output.channels : problem.output.batch;
  for (int64_t row = 0; row < rows; ++row) {
    for (const Values& input : inputs) {
      const int64_t length = static_cast<int64_t>(input.size()) / rows;
      result.insert(result.end(), input.begin() + row * length, input.begin() + (row + 1) * length);
    }
  }
  return result;
}

Result Slice(const Problem& problem, const Values& input) {
  Result result;
  const int64_t plane = problem.input.plane();
  for (int64_t image = 0; image < problem.input.batch; ++image) {
    const auto first = input.begin() + (image * problem.input.channels + problem.channel_range().first) * plane;
    result.insert(result.end(), first, first + problem.output.channels * plane);
  }
  return result;
}

Result Resize(const Problem& problem, const Values& input) {
  const Resampling& how = problem.resampling();
  const Extent &from = problem.input, &to = problem.output;
  const ResampledAxis vertical = AxisOf(from.height, to.height, how.scale_h);
  const ResampledAxis horizontal = AxisOf(from.width, to.width, how.scale_w);
  Result result;
  for (int64_t plane = 0; plane < to.batch * to.channels; ++plane) {
    const float* const values = input.data() + plane * from.plane();
    for (int64_t y = 0; y < to.height; ++y) {
      const ResampledTaps rows = TapsOf(how, vertical, y);
      for (int64_t x = 0; x < to.width; ++x) {
        const ResampledTaps columns = TapsOf(how, horizontal, x);
        const auto in_row = [&](int64_t row) {
          const float* const of_row = values + row * from.width;
          return (1.0 - columns.weight) * of_row[columns.first] + double{columns.weight} * of_row[columns.second];
        };
        result.push_back((1.0 - rows.weight) * in_row(rows.first) + double{rows.weight} * in_row(rows.second));
      }
    }
  }
  return result;
}

Result DepthToSpace(const Problem& problem, const Values& input) {
  const auto& [block, places_first] = problem.space_block();
  const Extent &from = problem.input, &to = problem.output;
  Result result;
  for (int64_t image = 0; image < to.batch; ++image) {
    for (int64_t c = 0; c < to.channels; ++c) {
      for (int64_t y = 0; y < to.height; ++y) {
        for (int64_t x = 0; x < to.width; ++x) {
          const int64_t place = y % block * block + x % block;
          const int64_t channel = places_first ? place * to.channels + c : c * block * block + place;
          result.push_back(
              input[(image * from.channels + channel) * from.plane() + y / block * from.width + x / block]);
        }
      }
    }
  }
  return result;
}

}  // namespace swizzle::reference

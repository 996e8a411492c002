#include "kernels/cuda/int8/byte_layer.h"

#include <vector>

#include "kernels/base/integers.h"

namespace swizzle::cuda {

bool AcceptsByteLayer(const Problem& problem, Layout layout) {
  if (!ReadsBytes(problem, layout) || problem.to.layout != layout) return false;
  if (problem.to.dtype != DType::kUint8) return true;
  return WritesBytes(problem, layout) && !problem.epilogue.function &&
         (!problem.epilogue.residual || problem.inputs_as[1].dtype == DType::kUint8);
}

StatusOr<RowEnds> RowEnds::Make(const ByteWeight& weight, int32_t input_shift) {
  std::vector<int32_t> start = weight.start;
  for (size_t row = 0; row < start.size(); ++row) {
    for (const ByteWeight::Entry& entry : weight.entries[row]) start[row] += input_shift * entry.value;
  }
  std::vector<float> scale = weight.scale;
  const size_t padded = RoundUp(start.size(), size_t{kRowUnit});
  start.resize(padded);
  scale.resize(padded);
  RowEnds made;
  SWIZZLE_ASSIGN_OR_RETURN(made.start_, DeviceArray<int32_t>::Upload(start));
  SWIZZLE_ASSIGN_OR_RETURN(made.scale_, DeviceArray<float>::Upload(scale));
  return made;
}

SumEnds RowEnds::Of(const KernelArgs& args) const {
  const Problem& problem = *args.problem;
  return {.start = start_.data(),
          .scale = scale_.data(),
          .residual = problem.epilogue.residual ? args.inputs[1].data : nullptr,
          .steps = StepsOf(problem),
          .dtype = problem.to.dtype,
          .epilogue = problem.epilogue};
}

}  // namespace swizzle::cuda

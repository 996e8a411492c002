#include "kernels/cuda/int8/position_ends.h"

#include <vector>

#include "kernels/base/integers.h"

namespace swizzle::cuda {

StatusOr<PositionEnds> PositionEnds::Make(const PositionWeight& weight, int32_t input_shift) {
  const size_t padded = RoundUp(weight.bias.size(), size_t{kRowUnit});
  const auto upload = [&](std::vector<float> values) {
    values.resize(padded);
    return DeviceArray<float>::Upload(values);
  };
  std::vector<int32_t> start(padded);
  for (size_t row = 0; row < weight.bytes.entries.size(); ++row) {
    for (const ByteWeight::Entry& entry : weight.bytes.entries[row]) start[row] += input_shift * entry.value;
  }
  PositionEnds made;
  SWIZZLE_ASSIGN_OR_RETURN(made.start_, DeviceArray<int32_t>::Upload(start));
  SWIZZLE_ASSIGN_OR_RETURN(made.scale_, upload(weight.bytes.scale));
  SWIZZLE_ASSIGN_OR_RETURN(made.bias_, upload(weight.bias));
  SWIZZLE_ASSIGN_OR_RETURN(made.sums_, upload(weight.sums));
  return made;
}

}  // namespace swizzle::cuda

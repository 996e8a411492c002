#include "kernels/whole_numbers/position_weight.h"

#include <utility>

namespace swizzle {
namespace {

// With a scale of 1 for inputs, and a bias that is added later.
StatusOr<ByteWeight> BytesAlone(const Weight& weight) {
  Weight plain = weight;
  plain.bias.clear();
  Problem problem;
  problem.op = Op::kConv;
  return MakeByteWeight(plain, problem);
}

}  // namespace

bool HoldsPositionBytes(const Weight& weight, const Problem& problem) {
  if (problem.inputs_as[0].dtype != DType::kFloat32 || !weight.quantisation) return false;
  return BytesAlone(weight).ok();
}

StatusOr<PositionWeight> MakePositionWeight(const Weight& weight) {
  PositionWeight made;
  SWIZZLE_ASSIGN_OR_RETURN(made.bytes, BytesAlone(weight));
  made.bias = weight.bias;
  made.bias.resize(static_cast<size_t>(made.bytes.rows));
  for (int64_t row = 0; row < made.bytes.rows; ++row) {
    int64_t sum = 0;
    for (const ByteWeight::Entry& entry : made.bytes.entries[row]) sum += entry.value;
    made.sums.push_back(static_cast<float>(sum) * made.bytes.scale[row]);
  }
  return made;
}

}  // namespace swizzle

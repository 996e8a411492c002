#include "kernels/whole_numbers/position_weight.h"

#include <utility>

namespace swizzle {
namespace {

using MakeBytes = StatusOr<ByteWeight>(const Weight&, const Problem&);

// With a scale of 1 for inputs, and a bias that is added later.
StatusOr<ByteWeight> BytesAlone(const Weight& weight, MakeBytes* make) {
  Weight plain = weight;
  plain.bias.clear();
  Problem problem;
  problem.op = Op::kConv;
  return make(plain, problem);
}

bool Holds(const Weight& weight, const Problem& problem, MakeBytes* make) {
  if (problem.inputs_as[0].dtype != DType::kFloat32 || !weight.quantisation) return false;
  return BytesAlone(weight, make).ok();
}

StatusOr<PositionWeight> Make(const Weight& weight, MakeBytes* make) {
  PositionWeight made;
  SWIZZLE_ASSIGN_OR_RETURN(made.bytes, BytesAlone(weight, make));
  made.bias = weight.bias;
  made.bias.resize(static_cast<size_t>(made.bytes.rows));
  for (int64_t row = 0; row < made.bytes.rows; ++row) {
    int64_t sum = 0;
    for (const ByteWeight::Entry& entry : made.bytes.entries[row]) sum += entry.value;
    made.sums.push_back(static_cast<float>(sum) * made.bytes.scale[row]);
  }
  return made;
}

}  // namespace

bool HoldsPositionBytes(const Weight& weight, const Problem& problem) { return Holds(weight, problem, MakeByteWeight); }

StatusOr<PositionWeight> MakePositionWeight(const Weight& weight) { return Make(weight, MakeByteWeight); }

bool HoldsWidePositionBytes(const Weight& weight, const Problem& problem) {
  return Holds(weight, problem, MakeWideByteWeight);
}

StatusOr<PositionWeight> MakeWidePositionWeight(const Weight& weight) { return Make(weight, MakeWideByteWeight); }

}  // namespace swizzle

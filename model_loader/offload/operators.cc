#include "model_loader/offload/operators.h"

#include <algorithm>

namespace swizzle::offload {
namespace {

using interpreter::Array;
using interpreter::Call;
using interpreter::Results;
using interpreter::TakesMoved;

template <StatusOr<Array> (*kFunction)(Call&)>
StatusOr<Results> One(Call& call) {
  if (call.WantsOutput(1)) return Unimplemented("a device makes its first output alone");
  SWIZZLE_ASSIGN_OR_RETURN(Array result, kFunction(call));
  return Results{std::move(result)};
}

// Sorted by name. The interpreter's own functions are here where they only say something of shapes, or copy
// (interpreter/values/strided.h): these run wherever the call does.
constexpr DeviceOperator kOperators[] = {
    {"Abs", One<Unary<PointOp::kAbs>>},
    {"Add", One<Binary<PointOp::kAdd>>},
    {"And", One<Binary<PointOp::kAnd>>},
    {"Cast", One<Cast>},
    {"Ceil", One<Unary<PointOp::kCeil>>},
    {"Clip", One<Clip>},
    {"Concat", One<interpreter::ConcatArrays>, TakesMoved::kAll},
    {"Conv", One<Conv>},
    {"ConvTranspose", One<ConvTranspose>},
    {"Cos", One<Unary<PointOp::kCos>>},
    {"CumSum", One<CumSum>},
    {"DepthToSpace", One<interpreter::DepthToSpace>},
    {"Div", One<Binary<PointOp::kDiv>>},
    {"Elu", One<Unary<PointOp::kElu>>},
    {"Equal", One<Binary<PointOp::kEqual>>},
    {"Erf", One<Unary<PointOp::kErf>>},
    {"Exp", One<Unary<PointOp::kExp>>},
    {"Expand", One<interpreter::Expand>, TakesMoved::kFirst},
    {"Flatten", One<interpreter::Flatten>, TakesMoved::kFirst},
    {"Floor", One<Unary<PointOp::kFloor>>},
    {"Gather", One<Gather>},
    {"Gelu", One<Gelu>},
    {"Gemm", One<Gemm>},
    {"GlobalAveragePool", One<ReducePlanes<RowReduction::kMean>>},
    {"GlobalMaxPool", One<ReducePlanes<RowReduction::kMax>>},
    {"Greater", One<Binary<PointOp::kGreater>>},
    {"GreaterOrEqual", One<Binary<PointOp::kGreaterOrEqual>>},
    {"GroupNormalization", One<GroupNormalization>},
    {"HardSigmoid", One<Unary<PointOp::kHardSigmoid>>},
    {"HardSwish", One<HardSwish>},
    {"Identity", One<interpreter::Identity>, TakesMoved::kFirst},
    {"InstanceNormalization", One<InstanceNormalization>},
    {"LayerNormalization", One<LayerNormalization>},
    {"LeakyRelu", One<Unary<PointOp::kLeakyRelu>>},
    {"Less", One<Binary<PointOp::kLess>>},
    {"LessOrEqual", One<Binary<PointOp::kLessOrEqual>>},
    {"Log", One<Unary<PointOp::kLog>>},
    {"MatMul", One<interpreter::MatMul>},
    {"Max", One<Joined<PointOp::kMax>>},
    {"MaxPool", One<MaxPool>},
    {"Min", One<Joined<PointOp::kMin>>},
    {"Mul", One<Binary<PointOp::kMul>>},
    {"Neg", One<Unary<PointOp::kNeg>>},
    {"Not", One<Unary<PointOp::kNot>>},
    {"Or", One<Binary<PointOp::kOr>>},
    {"PRelu", One<Binary<PointOp::kPRelu>>},
    {"Pad", One<interpreter::Pad>, TakesMoved::kFirst},
    {"Pow", One<Pow>},
    {"Reciprocal", One<Unary<PointOp::kReciprocal>>},
    {"ReduceL2", One<ReduceL2>},
    {"ReduceMax", One<Reduce<RowReduction::kMax>>},
    {"ReduceMean", One<Reduce<RowReduction::kMean>>},
    {"ReduceMin", One<Reduce<RowReduction::kMin>>},
    {"ReduceSum", One<Reduce<RowReduction::kSum>>},
    {"ReduceSumSquare", One<Reduce<RowReduction::kSumSquare>>},
    {"Relu", One<Unary<PointOp::kRelu>>},
    {"Reshape", One<interpreter::Reshape>, TakesMoved::kFirst},
    {"Resize", One<interpreter::Resize>},
    {"Sigmoid", One<Unary<PointOp::kSigmoid>>},
    {"Sin", One<Unary<PointOp::kSin>>},
    {"Slice", One<interpreter::Slice>, TakesMoved::kFirst},
    {"Softmax", One<Softmax>},
    {"Softplus", One<Unary<PointOp::kSoftplus>>},
    {"SpaceToDepth", One<interpreter::SpaceToDepth>, TakesMoved::kFirst},
    {"Split", interpreter::Split, TakesMoved::kFirst},
    {"Sqrt", One<Unary<PointOp::kSqrt>>},
    {"Squeeze", One<interpreter::Squeeze>, TakesMoved::kFirst},
    {"Sub", One<Binary<PointOp::kSub>>},
    {"Sum", One<Joined<PointOp::kAdd>>},
    {"Tanh", One<Unary<PointOp::kTanh>>},
    {"Tile", One<interpreter::Tile>},
    {"Transpose", One<interpreter::Transpose>, TakesMoved::kFirst},
    {"Unsqueeze", One<interpreter::Unsqueeze>, TakesMoved::kFirst},
    {"Upsample", One<interpreter::Upsample>},
    {"Where", One<Where>},
};
static_assert(std::ranges::is_sorted(kOperators, {}, &DeviceOperator::op));

}  // namespace

std::span<const DeviceOperator> DeviceOperators() { return kOperators; }

const DeviceOperator* FindDeviceOperator(std::string_view domain, std::string_view op) {
  if (!domain.empty()) return nullptr;
  const auto* const found = std::ranges::lower_bound(kOperators, op, {}, &DeviceOperator::op);
  return found != std::end(kOperators) && found->op == op ? found : nullptr;
}

}  // namespace swizzle::offload

#include "model_loader/fallback/operator_table.h"

#include <algorithm>
#include <limits>

namespace swizzle::fallback {
namespace {

constexpr int kMany = std::numeric_limits<int>::max();

// An operator with one result.
template <StatusOr<Array> (*kFunction)(Call&)>
StatusOr<Results> One(Call& call) {
  SWIZZLE_ASSIGN_OR_RETURN(Array result, kFunction(call));
  return Results{std::move(result)};
}

// Sorted by name. Attributes that say nothing at inference (is_test, saturate, stash_type) are read and ignored.
constexpr Operator kOperators[] = {
    {{"", "Abs", 1, 1, 1, ""}, 6, 0, RowRule::kElementwise, One<Abs>},
    {{"", "Acos", 1, 1, 1, ""}, 7, 0, RowRule::kElementwise, One<Acos>},
    {{"", "Acosh", 1, 1, 1, ""}, 9, 0, RowRule::kElementwise, One<Acosh>},
    {{"", "Add", 2, 2, 1, "axis broadcast "}, 6, 0, RowRule::kElementwise, One<Add>},
    {{"", "And", 2, 2, 1, "axis broadcast "}, 6, 0, RowRule::kElementwise, One<And>},
    {{"", "ArgMax", 1, 1, 1, "axis keepdims select_last_index "}, 6, 0, RowRule::kAxis, One<ArgMax>},
    {{"", "ArgMin", 1, 1, 1, "axis keepdims select_last_index "}, 6, 0, RowRule::kAxis, One<ArgMin>},
    {{"", "Asin", 1, 1, 1, ""}, 7, 0, RowRule::kElementwise, One<Asin>},
    {{"", "Asinh", 1, 1, 1, ""}, 9, 0, RowRule::kElementwise, One<Asinh>},
    {{"", "Atan", 1, 1, 1, ""}, 7, 0, RowRule::kElementwise, One<Atan>},
    {{"", "Atanh", 1, 1, 1, ""}, 9, 0, RowRule::kElementwise, One<Atanh>},
    {{"", "AveragePool", 1, 1, 1, "auto_pad ceil_mode dilations kernel_shape pads strides count_include_pad "},
     6, 0, RowRule::kFirstInput, One<AveragePool>},
    {{"", "BatchNormalization", 5, 5, 5, "epsilon is_test momentum spatial training_mode "},
     6, 0, RowRule::kFirstInput, One<BatchNormalization>},
    {{"", "BitShift", 2, 2, 1, "direction "}, 11, 0, RowRule::kElementwise, One<BitShift>},
    {{"", "Cast", 1, 1, 1, "to saturate "}, 6, 0, RowRule::kElementwise, One<Cast>},
    {{"", "CastLike", 2, 2, 1, "saturate "}, 15, 0, RowRule::kFirstInput, One<CastLike>},
    {{"", "Ceil", 1, 1, 1, ""}, 6, 0, RowRule::kElementwise, One<Ceil>},
    {{"", "Celu", 1, 1, 1, "alpha "}, 12, 0, RowRule::kElementwise, One<Celu>},
    {{"", "Clip", 1, 3, 1, "max min "}, 6, 0, RowRule::kFirstInput, One<Clip>},
    {{"", "Compress", 2, 2, 1, "axis "}, 9, 0, RowRule::kUnknown, One<Compress>},
    {{"", "Concat", 1, kMany, 1, "axis "}, 6, 0, RowRule::kShape, One<ConcatArrays>},
    {{"", "Constant", 0, 0, 1, "sparse_value value value_float value_floats value_int value_ints "},
     6, 0, RowRule::kUnknown, One<Constant>},
    {{"", "ConstantOfShape", 1, 1, 1, "value "}, 9, 0, RowRule::kUnknown, One<ConstantOfShape>},
    {{"", "Conv", 2, 3, 1, "auto_pad dilations group kernel_shape pads strides "},
     6, 0, RowRule::kFirstInput, One<Conv>},
    {{"", "ConvInteger", 2, 4, 1, "auto_pad dilations group kernel_shape pads strides "},
     10, 0, RowRule::kUnknown, One<ConvInteger>},
    {{"", "ConvTranspose", 2, 3, 1, "auto_pad dilations group kernel_shape pads strides output_padding output_shape "},
     6, 0, RowRule::kFirstInput, One<ConvTranspose>},
    {{"", "Cos", 1, 1, 1, ""}, 7, 0, RowRule::kElementwise, One<Cos>},
    {{"", "Cosh", 1, 1, 1, ""}, 9, 0, RowRule::kElementwise, One<Cosh>},
    {{"", "CumSum", 2, 2, 1, "exclusive reverse "}, 11, 0, RowRule::kUnknown, One<CumSum>},
    {{"", "DepthToSpace", 1, 1, 1, "blocksize mode "}, 6, 0, RowRule::kFirstInput, One<DepthToSpace>},
    {{"", "DequantizeLinear", 2, 3, 1, "axis "}, 10, 0, RowRule::kAxis, One<DequantizeLinear>},
    {{"", "Div", 2, 2, 1, "axis broadcast "}, 6, 0, RowRule::kElementwise, One<Div>},
    {{"", "Dropout", 1, 3, 2, "ratio seed is_test "}, 6, 0, RowRule::kFirstInput, Dropout},
    {{"", "DynamicQuantizeLinear", 1, 1, 3, ""}, 11, 0, RowRule::kUnknown, DynamicQuantizeLinear},
    {{"", "Elu", 1, 1, 1, "alpha "}, 6, 0, RowRule::kElementwise, One<Elu>},
    {{"", "Equal", 2, 2, 1, "axis broadcast "}, 6, 0, RowRule::kElementwise, One<Equal>},
    {{"", "Erf", 1, 1, 1, ""}, 9, 0, RowRule::kElementwise, One<Erf>},
    {{"", "Exp", 1, 1, 1, ""}, 6, 0, RowRule::kElementwise, One<Exp>},
    {{"", "Expand", 2, 2, 1, ""}, 8, 0, RowRule::kUnknown, One<Expand>},
    {{"", "EyeLike", 1, 1, 1, "dtype k "}, 9, 0, RowRule::kUnknown, One<EyeLike>},
    {{"", "Flatten", 1, 1, 1, "axis "}, 6, 0, RowRule::kShape, One<Flatten>},
    {{"", "Floor", 1, 1, 1, ""}, 6, 0, RowRule::kElementwise, One<Floor>},
    {{"", "Gather", 2, 2, 1, "axis "}, 6, 0, RowRule::kLookUp, One<Gather>},
    {{"", "GatherElements", 2, 2, 1, "axis "}, 11, 0, RowRule::kUnknown, One<GatherElements>},
    {{"", "GatherND", 2, 2, 1, "batch_dims "}, 11, 0, RowRule::kUnknown, One<GatherND>},
    {{"", "Gelu", 1, 1, 1, "approximate "}, 20, 0, RowRule::kElementwise, One<Gelu>},
    {{"", "Gemm", 2, 3, 1, "alpha beta broadcast transA transB "}, 6, 0, RowRule::kProduct, One<Gemm>},
    {{"", "GlobalAveragePool", 1, 1, 1, ""}, 1, 0, RowRule::kFirstInput, One<GlobalAveragePool>},
    {{"", "GlobalMaxPool", 1, 1, 1, ""}, 1, 0, RowRule::kFirstInput, One<GlobalMaxPool>},
    {{"", "Greater", 2, 2, 1, "axis broadcast "}, 6, 0, RowRule::kElementwise, One<Greater>},
    {{"", "GreaterOrEqual", 2, 2, 1, ""}, 12, 0, RowRule::kElementwise, One<GreaterOrEqual>},
    {{"", "GroupNormalization", 3, 3, 1, "epsilon num_groups stash_type "},
     18, 0, RowRule::kFirstInput, One<GroupNormalization>},
    {{"", "HardSigmoid", 1, 1, 1, "alpha beta "}, 6, 0, RowRule::kElementwise, One<HardSigmoid>},
    {{"", "HardSwish", 1, 1, 1, ""}, 14, 0, RowRule::kElementwise, One<HardSwish>},
    {{"", "Hardmax", 1, 1, 1, "axis "}, 6, 0, RowRule::kAxis, One<Hardmax>},
    {{"", "Identity", 1, 1, 1, ""}, 6, 0, RowRule::kElementwise, One<Identity>},
    {{"", "InstanceNormalization", 3, 3, 1, "epsilon "}, 6, 0, RowRule::kFirstInput, One<InstanceNormalization>},
    {{"", "IsInf", 1, 1, 1, "detect_negative detect_positive "}, 10, 0, RowRule::kElementwise, One<IsInf>},
    {{"", "IsNaN", 1, 1, 1, ""}, 9, 0, RowRule::kElementwise, One<IsNaN>},
    {{"", "LRN", 1, 1, 1, "alpha beta bias size "}, 6, 0, RowRule::kFirstInput, One<Lrn>},
    {{"", "LayerNormalization", 2, 3, 3, "axis epsilon stash_type "}, 17, 0, RowRule::kAxis, LayerNormalization},
    {{"", "LeakyRelu", 1, 1, 1, "alpha "}, 6, 0, RowRule::kElementwise, One<LeakyRelu>},
    {{"", "Less", 2, 2, 1, "axis broadcast "}, 6, 0, RowRule::kElementwise, One<Less>},
    {{"", "LessOrEqual", 2, 2, 1, ""}, 12, 0, RowRule::kElementwise, One<LessOrEqual>},
    {{"", "Log", 1, 1, 1, ""}, 6, 0, RowRule::kElementwise, One<Log>},
    {{"", "LogSoftmax", 1, 1, 1, "axis "}, 6, 0, RowRule::kAxis, One<LogSoftmax>},
    {{"", "LpNormalization", 1, 1, 1, "axis p "}, 6, 0, RowRule::kAxis, One<LpNormalization>},
    {{"", "MatMul", 2, 2, 1, ""}, 6, 0, RowRule::kProduct, One<MatMul>},
    {{"", "MatMulInteger", 2, 4, 1, ""}, 10, 0, RowRule::kUnknown, One<MatMulInteger>},
    {{"", "Max", 1, kMany, 1, ""}, 6, 0, RowRule::kElementwise, One<Max>},
    {{"", "MaxPool", 1, 1, 2, "auto_pad ceil_mode dilations kernel_shape pads strides storage_order "},
     6, 0, RowRule::kFirstInput, MaxPool},
    {{"", "Mean", 1, kMany, 1, ""}, 6, 0, RowRule::kElementwise, One<Mean>},
    {{"", "MeanVarianceNormalization", 1, 1, 1, "axes "}, 9, 0, RowRule::kUnknown, One<MeanVarianceNormalization>},
    {{"", "Min", 1, kMany, 1, ""}, 6, 0, RowRule::kElementwise, One<Min>},
    {{"", "Mish", 1, 1, 1, ""}, 18, 0, RowRule::kElementwise, One<Mish>},
    {{"", "Mod", 2, 2, 1, "fmod "}, 10, 0, RowRule::kElementwise, One<Mod>},
    {{"", "Mul", 2, 2, 1, "axis broadcast "}, 6, 0, RowRule::kElementwise, One<Mul>},
    {{"", "Neg", 1, 1, 1, ""}, 6, 0, RowRule::kElementwise, One<Neg>},
    {{"", "NonZero", 1, 1, 1, ""}, 9, 0, RowRule::kUnknown, One<NonZero>},
    {{"", "Not", 1, 1, 1, ""}, 1, 0, RowRule::kElementwise, One<Not>},
    {{"", "OneHot", 3, 3, 1, "axis "}, 9, 0, RowRule::kUnknown, One<OneHot>},
    {{"", "Or", 2, 2, 1, "axis broadcast "}, 6, 0, RowRule::kElementwise, One<Or>},
    {{"", "PRelu", 2, 2, 1, ""}, 6, 0, RowRule::kElementwise, One<PRelu>},
    {{"", "Pad", 1, 4, 1, "mode pads value "}, 6, 0, RowRule::kUnknown, One<Pad>},
    {{"", "Pow", 2, 2, 1, "axis broadcast "}, 6, 0, RowRule::kElementwise, One<Pow>},
    {{"", "QLinearConv", 8, 9, 1, "auto_pad dilations group kernel_shape pads strides "},
     10, 0, RowRule::kFirstInput, One<QLinearConv>},
    {{"", "QLinearMatMul", 8, 8, 1, ""}, 10, 0, RowRule::kUnknown, One<QLinearMatMul>},
    {{"", "QuantizeLinear", 2, 3, 1, "axis saturate "}, 10, 0, RowRule::kAxis, One<QuantizeLinear>},
    {{"", "Range", 3, 3, 1, ""}, 11, 0, RowRule::kUnknown, One<Range>},
    {{"", "Reciprocal", 1, 1, 1, ""}, 6, 0, RowRule::kElementwise, One<Reciprocal>},
    {{"", "ReduceL1", 1, 2, 1, "axes keepdims noop_with_empty_axes "}, 6, 0, RowRule::kAxis, One<ReduceL1>},
    {{"", "ReduceL2", 1, 2, 1, "axes keepdims noop_with_empty_axes "}, 6, 0, RowRule::kAxis, One<ReduceL2>},
    {{"", "ReduceLogSum", 1, 2, 1, "axes keepdims noop_with_empty_axes "}, 6, 0, RowRule::kAxis, One<ReduceLogSum>},
    {{"", "ReduceLogSumExp", 1, 2, 1, "axes keepdims noop_with_empty_axes "},
     6, 0, RowRule::kAxis, One<ReduceLogSumExp>},
    {{"", "ReduceMax", 1, 2, 1, "axes keepdims noop_with_empty_axes "}, 6, 0, RowRule::kAxis, One<ReduceMax>},
    {{"", "ReduceMean", 1, 2, 1, "axes keepdims noop_with_empty_axes "}, 6, 0, RowRule::kAxis, One<ReduceMean>},
    {{"", "ReduceMin", 1, 2, 1, "axes keepdims noop_with_empty_axes "}, 6, 0, RowRule::kAxis, One<ReduceMin>},
    {{"", "ReduceProd", 1, 2, 1, "axes keepdims noop_with_empty_axes "}, 6, 0, RowRule::kAxis, One<ReduceProd>},
    {{"", "ReduceSum", 1, 2, 1, "axes keepdims noop_with_empty_axes "}, 6, 0, RowRule::kAxis, One<ReduceSum>},
    {{"", "ReduceSumSquare", 1, 2, 1, "axes keepdims noop_with_empty_axes "},
     6, 0, RowRule::kAxis, One<ReduceSumSquare>},
    {{"", "Relu", 1, 1, 1, ""}, 6, 0, RowRule::kElementwise, One<Relu>},
    {{"", "Reshape", 2, 2, 1, "allowzero "}, 6, 0, RowRule::kShape, One<Reshape>},
    {{"", "Resize", 1, 4, 1,
      "antialias axes coordinate_transformation_mode cubic_coeff_a exclude_outside extrapolation_value "
      "keep_aspect_ratio_policy mode nearest_mode "},
     10, 0, RowRule::kUnknown, One<Resize>},
    {{"", "ReverseSequence", 2, 2, 1, "batch_axis time_axis "}, 10, 0, RowRule::kUnknown, One<ReverseSequence>},
    {{"", "Round", 1, 1, 1, ""}, 11, 0, RowRule::kElementwise, One<Round>},
    {{"", "Scatter", 3, 3, 1, "axis "}, 9, 10, RowRule::kUnknown, One<ScatterElements>},
    {{"", "ScatterElements", 3, 3, 1, "axis reduction "}, 11, 0, RowRule::kUnknown, One<ScatterElements>},
    {{"", "ScatterND", 3, 3, 1, "reduction "}, 11, 0, RowRule::kUnknown, One<ScatterND>},
    {{"", "Selu", 1, 1, 1, "alpha gamma "}, 6, 0, RowRule::kElementwise, One<Selu>},
    {{"", "Shape", 1, 1, 1, "start end "}, 6, 0, RowRule::kUnknown, One<ShapeOf>},
    {{"", "Shrink", 1, 1, 1, "bias lambd "}, 9, 0, RowRule::kElementwise, One<Shrink>},
    {{"", "Sigmoid", 1, 1, 1, ""}, 6, 0, RowRule::kElementwise, One<Sigmoid>},
    {{"", "Sign", 1, 1, 1, ""}, 9, 0, RowRule::kElementwise, One<Sign>},
    {{"", "Sin", 1, 1, 1, ""}, 7, 0, RowRule::kElementwise, One<Sin>},
    {{"", "Sinh", 1, 1, 1, ""}, 9, 0, RowRule::kElementwise, One<Sinh>},
    {{"", "Size", 1, 1, 1, ""}, 6, 0, RowRule::kUnknown, One<SizeOf>},
    {{"", "Slice", 1, 5, 1, "axes ends starts "}, 6, 0, RowRule::kUnknown, One<Slice>},
    {{"", "Softmax", 1, 1, 1, "axis "}, 6, 0, RowRule::kAxis, One<Softmax>},
    {{"", "Softplus", 1, 1, 1, ""}, 1, 0, RowRule::kElementwise, One<Softplus>},
    {{"", "Softsign", 1, 1, 1, ""}, 1, 0, RowRule::kElementwise, One<Softsign>},
    {{"", "SpaceToDepth", 1, 1, 1, "blocksize "}, 6, 0, RowRule::kFirstInput, One<SpaceToDepth>},
    {{"", "Split", 1, 2, kMany, "axis num_outputs split "}, 6, 0, RowRule::kAxis, Split},
    {{"", "Sqrt", 1, 1, 1, ""}, 6, 0, RowRule::kElementwise, One<Sqrt>},
    {{"", "Squeeze", 1, 2, 1, "axes "}, 6, 0, RowRule::kShape, One<Squeeze>},
    {{"", "Sub", 2, 2, 1, "axis broadcast "}, 6, 0, RowRule::kElementwise, One<Sub>},
    {{"", "Sum", 1, kMany, 1, ""}, 6, 0, RowRule::kElementwise, One<Sum>},
    {{"", "Tan", 1, 1, 1, ""}, 7, 0, RowRule::kElementwise, One<Tan>},
    {{"", "Tanh", 1, 1, 1, ""}, 6, 0, RowRule::kElementwise, One<Tanh>},
    {{"", "ThresholdedRelu", 1, 1, 1, "alpha "}, 10, 0, RowRule::kElementwise, One<ThresholdedRelu>},
    {{"", "Tile", 2, 2, 1, ""}, 6, 0, RowRule::kUnknown, One<Tile>},
    {{"", "TopK", 1, 2, 2, "axis k largest sorted "}, 6, 0, RowRule::kAxis, TopK},
    {{"", "Transpose", 1, 1, 1, "perm "}, 6, 0, RowRule::kShape, One<Transpose>},
    {{"", "Trilu", 1, 2, 1, "upper "}, 14, 0, RowRule::kUnknown, One<Trilu>},
    {{"", "Unsqueeze", 1, 2, 1, "axes "}, 6, 0, RowRule::kShape, One<Unsqueeze>},
    {{"", "Upsample", 1, 2, 1, "mode scales "}, 7, 9, RowRule::kUnknown, One<Upsample>},
    {{"", "Where", 3, 3, 1, ""}, 9, 0, RowRule::kElementwise, One<Where>},
    {{"", "Xor", 2, 2, 1, "axis broadcast "}, 6, 0, RowRule::kElementwise, One<Xor>},
};

static_assert(std::is_sorted(std::begin(kOperators), std::end(kOperators),
                             [](const Operator& a, const Operator& b) { return a.spec.op < b.spec.op; }));

}  // namespace

std::span<const Operator> OperatorTable() { return kOperators; }

const Operator* FindRow(std::string_view op) {
  const auto found = std::lower_bound(std::begin(kOperators), std::end(kOperators), op,
                                      [](const Operator& row, std::string_view name) { return row.spec.op < name; });
  return found != std::end(kOperators) && found->spec.op == op ? found : nullptr;
}

const OperatorSpec* FindSpec(std::string_view domain, std::string_view op) {
  const Operator* row = domain.empty() ? FindRow(op) : nullptr;
  return row == nullptr ? nullptr : &row->spec;
}

}  // namespace swizzle::fallback

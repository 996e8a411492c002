#include "model_loader/graph/operator_table.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace swizzle {
namespace {

constexpr int kMany = std::numeric_limits<int>::max();
constexpr std::string_view kMicrosoft = "com.microsoft";

constexpr std::string_view kBroadcastAttributes = "axis<7 broadcast<7 ";
constexpr std::string_view kConvAttributes = "auto_pad dilations group kernel_shape pads strides ";
constexpr std::string_view kReduceAttributes = "axes keepdims noop_with_empty_axes ";

using P = PlanUse;
using S = SequenceUse;
using R = RowRule;

// Sorted by domain and name. Attributes that say nothing at inference (is_test, saturate, stash_type) are read and
// ignored.
constexpr OnnxOperator kOperators[] = {
    {{"", "Abs", 1, 1, 1, ""}, P::kNone, S::kByElement, {6, 0, R::kElementwise}},
    {{"", "Acos", 1, 1, 1, ""}, P::kNone, S::kNone, {7, 0, R::kElementwise}},
    {{"", "Acosh", 1, 1, 1, ""}, P::kNone, S::kNone, {9, 0, R::kElementwise}},
    {{"", "Add", 2, 2, 1, kBroadcastAttributes}, P::kComputed, S::kByElement, {6, 0, R::kElementwise}},
    {{"", "And", 2, 2, 1, kBroadcastAttributes}, P::kNone, S::kByElement, {6, 0, R::kElementwise}},
    {{"", "ArgMax", 1, 1, 1, "axis keepdims select_last_index "}, P::kNone, S::kNone, {6, 0, R::kAxis}},
    {{"", "ArgMin", 1, 1, 1, "axis keepdims select_last_index "}, P::kNone, S::kNone, {6, 0, R::kAxis}},
    {{"", "Asin", 1, 1, 1, ""}, P::kNone, S::kNone, {7, 0, R::kElementwise}},
    {{"", "Asinh", 1, 1, 1, ""}, P::kNone, S::kNone, {9, 0, R::kElementwise}},
    {{"", "Atan", 1, 1, 1, ""}, P::kNone, S::kNone, {7, 0, R::kElementwise}},
    {{"", "Atanh", 1, 1, 1, ""}, P::kNone, S::kNone, {9, 0, R::kElementwise}},
    {{"", "Attention", 3, 6, 4,
      "is_causal kv_num_heads q_num_heads qk_matmul_output_mode scale softcap softmax_precision "},
     P::kNone,
     S::kByForm,
     {}},
    {{"", "AveragePool", 1, 1, 1, "auto_pad ceil_mode count_include_pad dilations kernel_shape pads strides "},
     P::kComputed,
     S::kNone,
     {6, 0, R::kFirstInput}},
    {{"", "BatchNormalization", 5, 5, 5, "epsilon is_test<7 momentum spatial<9 training_mode "},
     P::kComputed,
     S::kNone,
     {6, 0, R::kFirstInput}},
    {{"", "BitShift", 2, 2, 1, "direction "}, P::kNone, S::kNone, {11, 0, R::kElementwise}},
    {{"", "BlackmanWindow", 1, 1, 1, "output_datatype periodic "}, P::kNone, S::kNone, {17, 0, R::kUnknown}},
    {{"", "Cast", 1, 1, 1, "saturate to "}, P::kComputed, S::kByElement, {6, 0, R::kElementwise}},
    {{"", "CastLike", 2, 2, 1, "saturate "}, P::kNone, S::kNone, {15, 0, R::kFirstInput}},
    {{"", "Ceil", 1, 1, 1, ""}, P::kNone, S::kNone, {6, 0, R::kElementwise}},
    {{"", "Celu", 1, 1, 1, "alpha "}, P::kNone, S::kNone, {12, 0, R::kElementwise}},
    {{"", "Clip", 1, 3, 1, "max<11 min<11 "}, P::kComputed, S::kByElement, {6, 0, R::kFirstInput}},
    {{"", "Compress", 2, 2, 1, "axis "}, P::kNone, S::kNone, {9, 0, R::kUnknown}},
    {{"", "Concat", 1, kMany, 1, "axis "}, P::kFolded, S::kByForm, {6, 0, R::kShape}},
    {{"", "ConcatFromSequence", 1, 1, 1, "axis new_axis "}, P::kNone, S::kNone, {11, 0, R::kUnknown, true}},
    {{"", "Constant", 0, 0, 1, "sparse_value value value_float value_floats value_int value_ints "},
     P::kRemoved,
     S::kRemoved,
     {6, 0, R::kUnknown}},
    {{"", "ConstantOfShape", 1, 1, 1, "value "}, P::kFolded, S::kByForm, {9, 0, R::kSizes}},
    {{"", "Conv", 2, 3, 1, kConvAttributes}, P::kComputed, S::kNone, {6, 0, R::kFirstInput}},
    {{"", "ConvInteger", 2, 4, 1, kConvAttributes}, P::kNone, S::kNone, {1}},
    {{"", "ConvTranspose", 2, 3, 1, "auto_pad dilations group kernel_shape output_padding output_shape pads strides "},
     P::kNone,
     S::kNone,
     {6, 0, R::kFirstInput}},
    {{"", "Cos", 1, 1, 1, ""}, P::kNone, S::kNone, {7, 0, R::kElementwise}},
    {{"", "Cosh", 1, 1, 1, ""}, P::kNone, S::kNone, {9, 0, R::kElementwise}},
    {{"", "CumSum", 2, 2, 1, "exclusive reverse "}, P::kNone, S::kNone, {11, 0, R::kUnknown}},
    {{"", "DFT", 1, 3, 1, "axis inverse onesided "}, P::kNone, S::kNone, {17, 0, R::kUnknown}},
    {{"", "DepthToSpace", 1, 1, 1, "blocksize mode "}, P::kNone, S::kNone, {6, 0, R::kFirstInput}},
    {{"", "DequantizeLinear", 2, 3, 1, "axis "}, P::kComputed, S::kByForm, {10, 0, R::kAxis}},
    {{"", "Det", 1, 1, 1, ""}, P::kNone, S::kNone, {11, 0, R::kUnknown}},
    {{"", "Div", 2, 2, 1, kBroadcastAttributes}, P::kComputed, S::kByElement, {6, 0, R::kElementwise}},
    {{"", "Dropout", 1, 3, 2, "is_test<7 ratio seed "}, P::kRemoved, S::kRemoved, {6, 0, R::kFirstInput}},
    {{"", "DynamicQuantizeLinear", 1, 1, 3, ""}, P::kNone, S::kRemoved, {11, 0, R::kUnknown}},
    {{"", "Einsum", 1, kMany, 1, "equation "}, P::kNone, S::kNone, {12, 0, R::kEquation}},
    {{"", "Elu", 1, 1, 1, "alpha "}, P::kNone, S::kNone, {6, 0, R::kElementwise}},
    {{"", "Equal", 2, 2, 1, kBroadcastAttributes}, P::kNone, S::kByElement, {6, 0, R::kElementwise}},
    {{"", "Erf", 1, 1, 1, ""}, P::kNone, S::kByElement, {9, 0, R::kElementwise}},
    {{"", "Exp", 1, 1, 1, ""}, P::kNone, S::kByElement, {6, 0, R::kElementwise}},
    {{"", "Expand", 2, 2, 1, ""}, P::kNone, S::kByForm, {8, 0, R::kSizes}},
    {{"", "EyeLike", 1, 1, 1, "dtype k "}, P::kNone, S::kNone, {9, 0, R::kUnknown}},
    {{"", "Flatten", 1, 1, 1, "axis "}, P::kComputed, S::kByForm, {6, 0, R::kShape}},
    {{"", "Floor", 1, 1, 1, ""}, P::kNone, S::kNone, {6, 0, R::kElementwise}},
    {{"", "GRU", 3, 6, 2,
      "activation_alpha activation_beta activations clip direction hidden_size layout linear_before_reset "},
     P::kNone,
     S::kNone,
     {7, 0, R::kRecurrent}},
    {{"", "Gather", 2, 2, 1, "axis "}, P::kFolded, S::kByForm, {6, 0, R::kLookUp}},
    {{"", "GatherElements", 2, 2, 1, "axis "}, P::kNone, S::kByForm, {11, 0, R::kUnknown}},
    {{"", "GatherND", 2, 2, 1, "batch_dims "}, P::kNone, S::kByForm, {11, 0, R::kUnknown}},
    {{"", "Gelu", 1, 1, 1, "approximate "}, P::kNone, S::kByElement, {20, 0, R::kElementwise}},
    {{"", "Gemm", 2, 3, 1, "alpha beta broadcast<7 transA transB "}, P::kComputed, S::kByForm, {6, 0, R::kProduct}},
    {{"", "GlobalAveragePool", 1, 1, 1, ""}, P::kComputed, S::kNone, {1, 0, R::kFirstInput}},
    {{"", "GlobalMaxPool", 1, 1, 1, ""}, P::kComputed, S::kNone, {1, 0, R::kFirstInput}},
    {{"", "Greater", 2, 2, 1, kBroadcastAttributes}, P::kNone, S::kByElement, {6, 0, R::kElementwise}},
    {{"", "GreaterOrEqual", 2, 2, 1, ""}, P::kNone, S::kByElement, {12, 0, R::kElementwise}},
    {{"", "GridSample", 2, 2, 1, "align_corners mode padding_mode "}, P::kNone, S::kNone, {16, 0, R::kAllInputs}},
    {{"", "GroupNormalization", 3, 3, 1, "epsilon num_groups stash_type "},
     P::kNone,
     S::kNone,
     {18, 0, R::kFirstInput}},
    {{"", "HammingWindow", 1, 1, 1, "output_datatype periodic "}, P::kNone, S::kNone, {17, 0, R::kUnknown}},
    {{"", "HannWindow", 1, 1, 1, "output_datatype periodic "}, P::kNone, S::kNone, {17, 0, R::kUnknown}},
    {{"", "HardSigmoid", 1, 1, 1, "alpha beta "}, P::kComputed, S::kNone, {6, 0, R::kElementwise}},
    {{"", "HardSwish", 1, 1, 1, ""}, P::kComputed, S::kNone, {14, 0, R::kElementwise}},
    {{"", "Hardmax", 1, 1, 1, "axis "}, P::kNone, S::kNone, {6, 0, R::kAxis}},
    {{"", "Identity", 1, 1, 1, ""}, P::kRemoved, S::kRemoved, {6, 0, R::kElementwise, true}},
    {{"", "If", 1, kMany, kMany, "else_branch then_branch "}, P::kNone, S::kNone, {1, 0, R::kUnknown, true}},
    {{"", "InstanceNormalization", 3, 3, 1, "epsilon "}, P::kNone, S::kNone, {6, 0, R::kFirstInput}},
    {{"", "IsInf", 1, 1, 1, "detect_negative detect_positive "}, P::kNone, S::kNone, {10, 0, R::kElementwise}},
    {{"", "IsNaN", 1, 1, 1, ""}, P::kNone, S::kByElement, {9, 0, R::kElementwise}},
    {{"", "LRN", 1, 1, 1, "alpha beta bias size "}, P::kNone, S::kNone, {6, 0, R::kFirstInput}},
    {{"", "LSTM", 3, 8, 3,
      "activation_alpha activation_beta activations clip direction hidden_size input_forget layout "},
     P::kNone,
     S::kNone,
     {7, 0, R::kRecurrent}},
    {{"", "LayerNormalization", 2, 3, 3, "axis epsilon stash_type "}, P::kNone, S::kByForm, {17, 0, R::kAxis}},
    {{"", "LeakyRelu", 1, 1, 1, "alpha "}, P::kComputed, S::kNone, {6, 0, R::kElementwise}},
    {{"", "Less", 2, 2, 1, kBroadcastAttributes}, P::kNone, S::kByElement, {6, 0, R::kElementwise}},
    {{"", "LessOrEqual", 2, 2, 1, ""}, P::kNone, S::kByElement, {12, 0, R::kElementwise}},
    {{"", "Log", 1, 1, 1, ""}, P::kNone, S::kNone, {6, 0, R::kElementwise}},
    {{"", "LogSoftmax", 1, 1, 1, "axis "}, P::kNone, S::kNone, {6, 0, R::kAxis}},
    {{"", "Loop", 0, kMany, kMany, "body "}, P::kNone, S::kNone, {1, 0, R::kUnknown, true}},
    {{"", "LpNormalization", 1, 1, 1, "axis p "}, P::kNone, S::kNone, {6, 0, R::kAxis}},
    {{"", "MatMul", 2, 2, 1, ""}, P::kComputed, S::kByForm, {6, 0, R::kProduct}},
    {{"", "MatMulInteger", 2, 4, 1, ""}, P::kNone, S::kRemoved, {1}},
    {{"", "Max", 1, kMany, 1, ""}, P::kNone, S::kByElement, {6, 0, R::kElementwise}},
    {{"", "MaxPool", 1, 1, 2, "auto_pad ceil_mode dilations kernel_shape pads storage_order strides "},
     P::kComputed,
     S::kNone,
     {6, 0, R::kFirstInput}},
    {{"", "MaxUnpool", 2, 3, 1, "kernel_shape pads strides "}, P::kNone, S::kNone, {9, 0, R::kUnknown}},
    {{"", "Mean", 1, kMany, 1, ""}, P::kNone, S::kNone, {6, 0, R::kElementwise}},
    {{"", "MeanVarianceNormalization", 1, 1, 1, "axes "}, P::kNone, S::kNone, {9, 0, R::kUnknown}},
    {{"", "MelWeightMatrix", 5, 5, 1, "output_datatype "}, P::kNone, S::kNone, {17, 0, R::kUnknown}},
    {{"", "Min", 1, kMany, 1, ""}, P::kNone, S::kByElement, {6, 0, R::kElementwise}},
    {{"", "Mish", 1, 1, 1, ""}, P::kNone, S::kNone, {18, 0, R::kElementwise}},
    {{"", "Mod", 2, 2, 1, "fmod "}, P::kNone, S::kNone, {10, 0, R::kElementwise}},
    {{"", "Mul", 2, 2, 1, kBroadcastAttributes}, P::kComputed, S::kByElement, {6, 0, R::kElementwise}},
    {{"", "Neg", 1, 1, 1, ""}, P::kNone, S::kByElement, {6, 0, R::kElementwise}},
    {{"", "NegativeLogLikelihoodLoss", 2, 3, 1, "ignore_index reduction "}, P::kNone, S::kNone, {12, 0, R::kUnknown}},
    {{"", "NonMaxSuppression", 2, 5, 1, "center_point_box "}, P::kNone, S::kNone, {10, 0, R::kUnknown}},
    {{"", "NonZero", 1, 1, 1, ""}, P::kNone, S::kNone, {9, 0, R::kUnknown}},
    {{"", "Not", 1, 1, 1, ""}, P::kNone, S::kByElement, {1, 0, R::kElementwise}},
    {{"", "OneHot", 3, 3, 1, "axis "}, P::kNone, S::kNone, {9, 0, R::kUnknown}},
    {{"", "Or", 2, 2, 1, kBroadcastAttributes}, P::kNone, S::kByElement, {6, 0, R::kElementwise}},
    {{"", "PRelu", 2, 2, 1, ""}, P::kNone, S::kNone, {6, 0, R::kElementwise}},
    {{"", "Pad", 1, 4, 1, "mode pads<11 value<11 "}, P::kComputed, S::kNone, {6, 0, R::kUnknown}},
    {{"", "Pow", 2, 2, 1, kBroadcastAttributes}, P::kNone, S::kByElement, {6, 0, R::kElementwise}},
    {{"", "QLinearConv", 8, 9, 1, kConvAttributes}, P::kComputed, S::kNone, {10, 0, R::kFirstInput}},
    {{"", "QLinearMatMul", 8, 8, 1, ""}, P::kComputed, S::kNone, {1}},
    {{"", "QuantizeLinear", 2, 3, 1, "axis saturate "}, P::kComputed, S::kByForm, {10, 0, R::kAxis}},
    {{"", "RNN", 3, 6, 2, "activation_alpha activation_beta activations clip direction hidden_size layout "},
     P::kNone,
     S::kNone,
     {7, 0, R::kRecurrent}},
    {{"", "Range", 3, 3, 1, ""}, P::kNone, S::kByForm, {11, 0, R::kUnknown}},
    {{"", "Reciprocal", 1, 1, 1, ""}, P::kNone, S::kByElement, {6, 0, R::kElementwise}},
    {{"", "ReduceL1", 1, 2, 1, kReduceAttributes}, P::kNone, S::kNone, {6, 0, R::kAxis}},
    {{"", "ReduceL2", 1, 2, 1, kReduceAttributes}, P::kNone, S::kNone, {6, 0, R::kAxis}},
    {{"", "ReduceLogSum", 1, 2, 1, kReduceAttributes}, P::kNone, S::kNone, {6, 0, R::kAxis}},
    {{"", "ReduceLogSumExp", 1, 2, 1, kReduceAttributes}, P::kNone, S::kNone, {6, 0, R::kAxis}},
    {{"", "ReduceMax", 1, 2, 1, kReduceAttributes}, P::kNone, S::kNone, {6, 0, R::kAxis}},
    {{"", "ReduceMean", 1, 2, 1, "axes<18 keepdims noop_with_empty_axes "}, P::kComputed, S::kByForm, {6, 0, R::kAxis}},
    {{"", "ReduceMin", 1, 2, 1, kReduceAttributes}, P::kNone, S::kNone, {6, 0, R::kAxis}},
    {{"", "ReduceProd", 1, 2, 1, kReduceAttributes}, P::kNone, S::kNone, {6, 0, R::kAxis}},
    {{"", "ReduceSum", 1, 2, 1, kReduceAttributes}, P::kNone, S::kByForm, {6, 0, R::kAxis}},
    {{"", "ReduceSumSquare", 1, 2, 1, kReduceAttributes}, P::kNone, S::kNone, {6, 0, R::kAxis}},
    {{"", "Relu", 1, 1, 1, ""}, P::kComputed, S::kByElement, {6, 0, R::kElementwise}},
    {{"", "Reshape", 2, 2, 1, "allowzero "}, P::kComputed, S::kByForm, {6, 0, R::kShape}},
    {{"", "Resize", 1, 4, 1,
      "antialias axes coordinate_transformation_mode cubic_coeff_a exclude_outside extrapolation_value "
      "keep_aspect_ratio_policy mode nearest_mode "},
     P::kNone,
     S::kNone,
     {1}},
    {{"", "ReverseSequence", 2, 2, 1, "batch_axis time_axis "}, P::kNone, S::kNone, {1}},
    {{"", "RoiAlign", 3, 3, 1,
      "coordinate_transformation_mode mode output_height output_width sampling_ratio spatial_scale "},
     P::kNone,
     S::kNone,
     {10, 0, R::kUnknown}},
    {{"", "Round", 1, 1, 1, ""}, P::kNone, S::kNone, {11, 0, R::kElementwise}},
    {{"", "STFT", 2, 4, 1, "onesided "}, P::kNone, S::kNone, {17, 0, R::kUnknown}},
    {{"", "Scan", 0, kMany, kMany,
      "body num_scan_inputs scan_input_axes scan_input_directions scan_output_axes scan_output_directions "},
     P::kNone,
     S::kNone,
     {9, 0, R::kUnknown, true}},
    {{"", "Scatter", 3, 3, 1, "axis "}, P::kNone, S::kNone, {9, 10, R::kUnknown}},
    {{"", "ScatterElements", 3, 3, 1, "axis reduction "}, P::kNone, S::kNone, {11, 0, R::kUnknown}},
    {{"", "ScatterND", 3, 3, 1, "reduction "}, P::kNone, S::kNone, {11, 0, R::kUnknown}},
    {{"", "Selu", 1, 1, 1, "alpha gamma "}, P::kNone, S::kNone, {6, 0, R::kElementwise}},
    {{"", "SequenceAt", 2, 2, 1, ""}, P::kNone, S::kNone, {11, 0, R::kUnknown, true}},
    {{"", "SequenceConstruct", 1, kMany, 1, ""}, P::kNone, S::kNone, {11, 0, R::kUnknown, true}},
    {{"", "SequenceEmpty", 0, 0, 1, "dtype "}, P::kNone, S::kNone, {11, 0, R::kUnknown, true}},
    {{"", "SequenceErase", 1, 2, 1, ""}, P::kNone, S::kNone, {11, 0, R::kUnknown, true}},
    {{"", "SequenceInsert", 2, 3, 1, ""}, P::kNone, S::kNone, {11, 0, R::kUnknown, true}},
    {{"", "SequenceLength", 1, 1, 1, ""}, P::kNone, S::kNone, {11, 0, R::kUnknown, true}},
    {{"", "Shape", 1, 1, 1, "end start "}, P::kFolded, S::kByForm, {6, 0, R::kSizes}},
    {{"", "Shrink", 1, 1, 1, "bias lambd "}, P::kNone, S::kNone, {9, 0, R::kElementwise}},
    {{"", "Sigmoid", 1, 1, 1, ""}, P::kComputed, S::kByElement, {6, 0, R::kElementwise}},
    {{"", "Sign", 1, 1, 1, ""}, P::kNone, S::kNone, {9, 0, R::kElementwise}},
    {{"", "Sin", 1, 1, 1, ""}, P::kNone, S::kNone, {7, 0, R::kElementwise}},
    {{"", "Sinh", 1, 1, 1, ""}, P::kNone, S::kNone, {9, 0, R::kElementwise}},
    {{"", "Size", 1, 1, 1, ""}, P::kNone, S::kNone, {6, 0, R::kUnknown}},
    {{"", "Slice", 1, 5, 1, "axes<10 ends<10 starts<10 "}, P::kFolded, S::kByForm, {6, 0, R::kUnknown}},
    {{"", "Softmax", 1, 1, 1, "axis "}, P::kComputed, S::kByForm, {6, 0, R::kAxis}},
    {{"", "SoftmaxCrossEntropyLoss", 2, 3, 2, "ignore_index reduction "}, P::kNone, S::kNone, {12, 0, R::kUnknown}},
    {{"", "Softplus", 1, 1, 1, ""}, P::kNone, S::kNone, {1, 0, R::kElementwise}},
    {{"", "Softsign", 1, 1, 1, ""}, P::kNone, S::kNone, {1, 0, R::kElementwise}},
    {{"", "SpaceToDepth", 1, 1, 1, "blocksize "}, P::kNone, S::kNone, {6, 0, R::kFirstInput}},
    {{"", "Split", 1, 2, kMany, "axis num_outputs split "}, P::kNone, S::kByForm, {6, 0, R::kAxis}},
    {{"", "SplitToSequence", 1, 2, 1, "axis keepdims "}, P::kNone, S::kNone, {11, 0, R::kUnknown, true}},
    {{"", "Sqrt", 1, 1, 1, ""}, P::kNone, S::kByElement, {6, 0, R::kElementwise}},
    {{"", "Squeeze", 1, 2, 1, "axes<13 "}, P::kComputed, S::kByForm, {6, 0, R::kShape}},
    {{"", "StringNormalizer", 1, 1, 1, "case_change_action is_case_sensitive locale stopwords "},
     P::kNone,
     S::kNone,
     {10, 0, R::kUnknown, true}},
    {{"", "Sub", 2, 2, 1, kBroadcastAttributes}, P::kComputed, S::kByElement, {6, 0, R::kElementwise}},
    {{"", "Sum", 1, kMany, 1, ""}, P::kNone, S::kNone, {6, 0, R::kElementwise}},
    {{"", "Tan", 1, 1, 1, ""}, P::kNone, S::kNone, {7, 0, R::kElementwise}},
    {{"", "Tanh", 1, 1, 1, ""}, P::kNone, S::kByElement, {6, 0, R::kElementwise}},
    {{"", "ThresholdedRelu", 1, 1, 1, "alpha "}, P::kNone, S::kNone, {10, 0, R::kElementwise}},
    {{"", "Tile", 2, 2, 1, ""}, P::kNone, S::kNone, {6, 0, R::kUnknown}},
    {{"", "TopK", 1, 2, 2, "axis k largest sorted "}, P::kNone, S::kNone, {6, 0, R::kAxis}},
    {{"", "Transpose", 1, 1, 1, "perm "}, P::kComputed, S::kByForm, {6, 0, R::kShape}},
    {{"", "Trilu", 1, 2, 1, "upper "}, P::kNone, S::kByForm, {14, 0, R::kUnknown}},
    {{"", "Unique", 1, 1, 4, "axis sorted "}, P::kNone, S::kNone, {11, 0, R::kUnknown}},
    {{"", "Unsqueeze", 1, 2, 1, "axes<13 "}, P::kComputed, S::kByForm, {6, 0, R::kShape}},
    {{"", "Upsample", 1, 2, 1, "mode scales "}, P::kNone, S::kNone, {7, 9, R::kUnknown}},
    {{"", "Where", 3, 3, 1, ""}, P::kNone, S::kByElement, {9, 0, R::kElementwise}},
    {{"", "Xor", 2, 2, 1, kBroadcastAttributes}, P::kNone, S::kByElement, {6, 0, R::kElementwise}},
    {{kMicrosoft, "Attention", 3, 7, 3,
      "do_rotary mask_filter_value num_heads past_present_share_buffer qkv_hidden_sizes rotary_embedding_dim scale "
      "unidirectional "},
     P::kNone,
     S::kByForm,
     {}},
    {{kMicrosoft, "BiasGelu", 2, 2, 1, ""}, P::kNone, S::kByForm, {}},
    {{kMicrosoft, "EmbedLayerNormalization", 7, 9, 3, "epsilon mask_index_type "}, P::kNone, S::kByForm, {}},
    {{kMicrosoft, "FastGelu", 1, 2, 1, ""}, P::kNone, S::kByForm, {}},
    {{kMicrosoft, "FusedMatMul", 2, 2, 1, "alpha transA transB transBatchA transBatchB "}, P::kNone, S::kByForm, {}},
    {{kMicrosoft, "Gelu", 1, 1, 1, ""}, P::kNone, S::kByElement, {}},
    {{kMicrosoft, "QGemm", 6, 9, 1, "alpha transA transB "}, P::kComputed, S::kNone, {}},
    {{kMicrosoft, "QLinearAdd", 7, 8, 1, ""}, P::kComputed, S::kNone, {}},
    {{kMicrosoft, "QLinearAveragePool", 4, 5, 1,
      "auto_pad ceil_mode channels_last count_include_pad kernel_shape pads strides "},
     P::kComputed,
     S::kNone,
     {}},
    {{kMicrosoft, "QLinearGlobalAveragePool", 5, 5, 1, "channels_last "}, P::kComputed, S::kNone, {}},
    {{kMicrosoft, "QLinearLeakyRelu", 4, 5, 1, "alpha "}, P::kComputed, S::kNone, {}},
    {{kMicrosoft, "QLinearMul", 7, 8, 1, ""}, P::kComputed, S::kNone, {}},
    {{kMicrosoft, "QLinearSigmoid", 4, 5, 1, ""}, P::kComputed, S::kNone, {}},
    {{kMicrosoft, "QuickGelu", 1, 1, 1, "alpha "}, P::kNone, S::kByElement, {}},
    {{kMicrosoft, "SkipLayerNormalization", 3, 5, 4, "epsilon "}, P::kNone, S::kByForm, {}},
};

constexpr std::pair<std::string_view, std::string_view> KeyOf(const OnnxOperator& row) {
  return {row.spec.domain, row.spec.op};
}

static_assert(std::is_sorted(std::begin(kOperators), std::end(kOperators),
                             [](const OnnxOperator& a, const OnnxOperator& b) { return KeyOf(a) < KeyOf(b); }));

}  // namespace

std::span<const OnnxOperator> OnnxOperators() { return kOperators; }

const OnnxOperator* FindOnnxOperator(std::string_view domain, std::string_view op) {
  const auto key = std::pair(domain, op);
  const auto found = std::lower_bound(std::begin(kOperators), std::end(kOperators), key,
                                      [](const OnnxOperator& row, const auto& name) { return KeyOf(row) < name; });
  return found != std::end(kOperators) && KeyOf(*found) == key ? found : nullptr;
}

const OperatorSpec* FindOperator(std::string_view domain, std::string_view op) {
  if (domain == kSwizzleDomain) return FindCanonicalOperator(op);
  const OnnxOperator* row = FindOnnxOperator(domain, op);
  return row != nullptr && row->plan != PlanUse::kNone ? &row->spec : nullptr;
}

const OperatorSpec* FindSequenceOperator(std::string_view domain, std::string_view op) {
  const OnnxOperator* row = FindOnnxOperator(domain, op);
  return row != nullptr && row->sequences != SequenceUse::kNone ? &row->spec : FindOperator(domain, op);
}

const OperatorSpec* FindFallbackOperator(std::string_view domain, std::string_view op) {
  const OnnxOperator* row = FindOnnxOperator(domain, op);
  return row != nullptr && row->fallback.Runs() ? &row->spec : nullptr;
}

}  // namespace swizzle

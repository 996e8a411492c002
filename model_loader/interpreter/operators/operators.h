// The operators of the interpreter, each in the file of its kind; functions.cc says under which name, and
// graph/operator_table.cc for which opsets, each runs.
//
// Every function computes its node's results, those nobody wants included or left out at the end. Errors say what is
// wrong with the inputs or attributes: INVALID_ARGUMENT where ONNX forbids it, UNIMPLEMENTED where it is not supported
// here, RESOURCE_EXHAUSTED where a result would be too large.
#ifndef SWIZZLE_MODEL_LOADER_INTERPRETER_OPERATORS_OPERATORS_H_
#define SWIZZLE_MODEL_LOADER_INTERPRETER_OPERATORS_OPERATORS_H_

#include <vector>

#include "model_loader/interpreter/values/call.h"

namespace swizzle::interpreter {

using Results = std::vector<Array>;

// unary.cc
StatusOr<Array> Identity(Call& call);
StatusOr<Array> Abs(Call& call);
StatusOr<Array> Neg(Call& call);
StatusOr<Array> Sign(Call& call);
StatusOr<Array> Relu(Call& call);
StatusOr<Array> Floor(Call& call);
StatusOr<Array> Ceil(Call& call);
StatusOr<Array> Round(Call& call);
StatusOr<Array> Exp(Call& call);
StatusOr<Array> Log(Call& call);
StatusOr<Array> Sqrt(Call& call);
StatusOr<Array> Reciprocal(Call& call);
StatusOr<Array> Erf(Call& call);
StatusOr<Array> Sin(Call& call);
StatusOr<Array> Cos(Call& call);
StatusOr<Array> Tan(Call& call);
StatusOr<Array> Asin(Call& call);
StatusOr<Array> Acos(Call& call);
StatusOr<Array> Atan(Call& call);
StatusOr<Array> Sinh(Call& call);
StatusOr<Array> Cosh(Call& call);
StatusOr<Array> Tanh(Call& call);
StatusOr<Array> Asinh(Call& call);
StatusOr<Array> Acosh(Call& call);
StatusOr<Array> Atanh(Call& call);
StatusOr<Array> Sigmoid(Call& call);
StatusOr<Array> Softplus(Call& call);
StatusOr<Array> Softsign(Call& call);
StatusOr<Array> Mish(Call& call);
StatusOr<Array> Gelu(Call& call);
StatusOr<Array> LeakyRelu(Call& call);
StatusOr<Array> ThresholdedRelu(Call& call);
StatusOr<Array> Elu(Call& call);
StatusOr<Array> Celu(Call& call);
StatusOr<Array> Selu(Call& call);
StatusOr<Array> HardSigmoid(Call& call);
StatusOr<Array> HardSwish(Call& call);
StatusOr<Array> Shrink(Call& call);
StatusOr<Array> IsNaN(Call& call);
StatusOr<Array> IsInf(Call& call);
StatusOr<Array> Not(Call& call);
StatusOr<Array> BitwiseNot(Call& call);
StatusOr<Array> BitCast(Call& call);
StatusOr<Array> Cast(Call& call);
StatusOr<Array> CastLike(Call& call);
StatusOr<Array> Clip(Call& call);
StatusOr<Results> Dropout(Call& call);

// binary.cc
StatusOr<Array> Add(Call& call);
StatusOr<Array> Sub(Call& call);
StatusOr<Array> Mul(Call& call);
StatusOr<Array> Div(Call& call);
StatusOr<Array> Mod(Call& call);
StatusOr<Array> BitShift(Call& call);
StatusOr<Array> BitwiseAnd(Call& call);
StatusOr<Array> BitwiseOr(Call& call);
StatusOr<Array> BitwiseXor(Call& call);
StatusOr<Array> Pow(Call& call);
StatusOr<Array> PRelu(Call& call);
StatusOr<Array> Equal(Call& call);
StatusOr<Array> Greater(Call& call);
StatusOr<Array> GreaterOrEqual(Call& call);
StatusOr<Array> Less(Call& call);
StatusOr<Array> LessOrEqual(Call& call);
StatusOr<Array> And(Call& call);
StatusOr<Array> Or(Call& call);
StatusOr<Array> Xor(Call& call);
StatusOr<Array> Max(Call& call);
StatusOr<Array> Min(Call& call);
StatusOr<Array> Sum(Call& call);
StatusOr<Array> Mean(Call& call);
StatusOr<Array> Where(Call& call);

// reduce.cc
StatusOr<Array> ReduceSum(Call& call);
StatusOr<Array> ReduceMean(Call& call);
StatusOr<Array> ReduceSumSquare(Call& call);
StatusOr<Array> ReduceL1(Call& call);
StatusOr<Array> ReduceL2(Call& call);
StatusOr<Array> ReduceLogSum(Call& call);
StatusOr<Array> ReduceLogSumExp(Call& call);
StatusOr<Array> ReduceProd(Call& call);
StatusOr<Array> ReduceMax(Call& call);
StatusOr<Array> ReduceMin(Call& call);
StatusOr<Array> ArgMax(Call& call);
StatusOr<Array> ArgMin(Call& call);
StatusOr<Array> CumSum(Call& call);
StatusOr<Array> CumProd(Call& call);
StatusOr<Results> TopK(Call& call);

// softmax.cc
StatusOr<Array> Softmax(Call& call);
StatusOr<Array> LogSoftmax(Call& call);
StatusOr<Array> Hardmax(Call& call);

// matmul.cc
StatusOr<Array> MatMul(Call& call);
StatusOr<Array> Gemm(Call& call);

// shape.cc
StatusOr<Array> ShapeOf(Call& call);
StatusOr<Array> SizeOf(Call& call);
StatusOr<Array> Reshape(Call& call);
StatusOr<Array> Flatten(Call& call);
StatusOr<Array> Squeeze(Call& call);
StatusOr<Array> Unsqueeze(Call& call);
StatusOr<Array> Transpose(Call& call);
StatusOr<Array> Expand(Call& call);
StatusOr<Array> Tile(Call& call);
StatusOr<Array> Slice(Call& call);
StatusOr<Array> ConcatArrays(Call& call);
StatusOr<Array> Pad(Call& call);
StatusOr<Array> DepthToSpace(Call& call);
StatusOr<Array> SpaceToDepth(Call& call);
StatusOr<Results> Split(Call& call);

// gather.cc
StatusOr<Array> Gather(Call& call);
StatusOr<Array> GatherElements(Call& call);
StatusOr<Array> ScatterElements(Call& call);
StatusOr<Array> GatherND(Call& call);
StatusOr<Array> ScatterND(Call& call);
StatusOr<Array> TensorScatter(Call& call);
StatusOr<Array> OneHot(Call& call);
StatusOr<Array> NonZero(Call& call);
StatusOr<Array> Compress(Call& call);

// generate.cc
StatusOr<Array> Constant(Call& call);
StatusOr<Array> ConstantOfShape(Call& call);
StatusOr<Array> Range(Call& call);
StatusOr<Array> EyeLike(Call& call);
StatusOr<Array> Trilu(Call& call);
StatusOr<Array> ReverseSequence(Call& call);

// conv.cc
StatusOr<Array> Conv(Call& call);
StatusOr<Array> ConvTranspose(Call& call);

// deform_conv.cc
StatusOr<Array> DeformConv(Call& call);
StatusOr<Array> AffineGrid(Call& call);
StatusOr<Array> Col2Im(Call& call);

// random.cc
StatusOr<Array> RandomNormal(Call& call);
StatusOr<Array> RandomUniform(Call& call);
StatusOr<Array> Bernoulli(Call& call);
StatusOr<Array> Multinomial(Call& call);

// encode.cc: of ai.onnx.ml
StatusOr<Array> LabelEncoder(Call& call);

// pool.cc
StatusOr<Array> AveragePool(Call& call);
StatusOr<Array> GlobalAveragePool(Call& call);
StatusOr<Array> GlobalMaxPool(Call& call);
StatusOr<Results> MaxPool(Call& call);
StatusOr<Array> MaxUnpool(Call& call);

// normalise.cc
StatusOr<Array> BatchNormalization(Call& call);
StatusOr<Array> InstanceNormalization(Call& call);
StatusOr<Array> GroupNormalization(Call& call);
StatusOr<Array> Lrn(Call& call);
StatusOr<Array> LpNormalization(Call& call);
StatusOr<Array> MeanVarianceNormalization(Call& call);
StatusOr<Results> LayerNormalization(Call& call);
// ONNX Runtime's SimplifiedLayerNormalization, too.
StatusOr<Results> RmsNormalization(Call& call);

// quantise.cc
StatusOr<Array> QuantizeLinear(Call& call);
StatusOr<Array> DequantizeLinear(Call& call);
StatusOr<Array> MatMulInteger(Call& call);
StatusOr<Array> ConvInteger(Call& call);
StatusOr<Array> QLinearMatMul(Call& call);
StatusOr<Array> QLinearConv(Call& call);
StatusOr<Array> QGemm(Call& call);
StatusOr<Array> MatMulIntegerToFloat(Call& call);
StatusOr<Array> DynamicQuantizeMatMul(Call& call);
StatusOr<Results> DynamicQuantizeLinear(Call& call);

// quantise_around.cc
StatusOr<Array> QLinearAdd(Call& call);
StatusOr<Array> QLinearMul(Call& call);
StatusOr<Array> QLinearSigmoid(Call& call);
StatusOr<Array> QLinearLeakyRelu(Call& call);
StatusOr<Array> QLinearAveragePool(Call& call);
StatusOr<Array> QLinearGlobalAveragePool(Call& call);
StatusOr<Array> QLinearSoftmax(Call& call);
StatusOr<Array> QLinearConcat(Call& call);

// resize.cc
StatusOr<Array> Resize(Call& call);
StatusOr<Array> Upsample(Call& call);

// cells.cc
StatusOr<Results> Lstm(Call& call);
StatusOr<Results> Gru(Call& call);
StatusOr<Results> Rnn(Call& call);

// einsum.cc
StatusOr<Array> Einsum(Call& call);

// detect.cc
StatusOr<Array> NonMaxSuppression(Call& call);
StatusOr<Array> RoiAlign(Call& call);

// grid_sample.cc
StatusOr<Array> GridSample(Call& call);

// signal.cc
StatusOr<Array> HannWindow(Call& call);
StatusOr<Array> HammingWindow(Call& call);
StatusOr<Array> BlackmanWindow(Call& call);
StatusOr<Array> Dft(Call& call);
StatusOr<Array> Stft(Call& call);
StatusOr<Array> MelWeightMatrix(Call& call);

// unique.cc
StatusOr<Results> Unique(Call& call);

// determinant.cc
StatusOr<Array> Det(Call& call);

// loss.cc
StatusOr<Array> NegativeLogLikelihoodLoss(Call& call);
StatusOr<Results> SoftmaxCrossEntropyLoss(Call& call);

// control.cc
StatusOr<Results> If(Call& call);
StatusOr<Results> Loop(Call& call);
StatusOr<Results> Scan(Call& call);

// sequence.cc
StatusOr<Array> SequenceEmpty(Call& call);
StatusOr<Array> SequenceConstruct(Call& call);
StatusOr<Array> SequenceInsert(Call& call);
StatusOr<Array> SequenceErase(Call& call);
StatusOr<Array> SequenceAt(Call& call);
StatusOr<Array> SequenceLength(Call& call);
StatusOr<Array> ConcatFromSequence(Call& call);
StatusOr<Array> SplitToSequence(Call& call);

// text.cc
StatusOr<Array> StringNormalizer(Call& call);

}  // namespace swizzle::interpreter

#endif  // SWIZZLE_MODEL_LOADER_INTERPRETER_OPERATORS_OPERATORS_H_

// The graph passes, one file each; passes/pipeline.cc lists them in order.
//
// Each rewrites a verified graph into a verified graph that computes the same outputs, and returns how many times it
// applied. Errors name the node: INVALID_ARGUMENT where the model breaks an operator's rules, UNIMPLEMENTED where it is
// right but beyond what is supported.
#ifndef SWIZZLE_MODEL_LOADER_PASSES_PASSES_H_
#define SWIZZLE_MODEL_LOADER_PASSES_PASSES_H_

#include "model_loader/graph/graph.h"

namespace swizzle {

// Constant nodes become constant values.
StatusOr<int> ResolveConstants(Graph& graph);

// Nodes that give what they are given disappear: Identity, Dropout at inference, a Cast to the own type, a Reshape,
// Expand, Slice, Pad or Transpose to the own shape or order, arithmetic with 0 or 1, what undoes the node before it,
// and the like. Shapes that the graph computes are followed in symbols (shapes/symbolic_walk.h), so that sizes may
// be free. Of graphs for the interpreter, too. An Add of 0 is taken to keep -0.
StatusOr<int> RemoveNoOps(Graph& graph);

// Constants that files hold in halves, doubles or bytes become FP32 where the graph casts or scales them, whatever
// their size; so do rows that Gather takes of them, whose casts and scales by channels are done to the whole constant.
// What DequantizeLinear scales by FP32 stays behind it, as others remember its whole numbers.
StatusOr<int> WidenConstants(Graph& graph);

// Products of whole numbers whose sums are made real numbers in operators of their own (semantics/integer_products.h)
// become convolutions and products of real numbers, behind DequantizeLinear where their input has a constant scale.
// Where the scale goes by the values (DynamicQuantizeLinear), the input is not rounded here: a scale of the whole
// tensor would join what requests batches hold. Linear layers may round each position by itself when they run. A
// ConvInteger that reads an input of the graph takes its scale for 1. Of graphs for the interpreter, too.
StatusOr<int> UnroundProducts(Graph& graph);

// Graph inputs of bytes that the graph only casts to FP32, or dequantises by one scale, become FP32 values that arrive
// as these bytes, as images do, and the casts disappear. Whatever stands between the two moves elements alone.
StatusOr<int> ReadByteInputs(Graph& graph);

// ConvTransposes whose outputs are whole numbers of their strides become convolutions of as many channels more as a
// step has positions, with DepthToSpace behind them; what reads these element by element comes to stand between the
// two. Of ONNX's operators, and of graphs for the interpreter, too.
StatusOr<int> ExpandTransposed(Graph& graph);

// QuantizeLinear and DequantizeLinear of one scale, one behind the other, come to stand before what moves elements to
// them alone (Transpose, Reshape and kin) where convolutions read it. What makes the value can then end in bytes. Of
// ONNX's operators, and of graphs for the interpreter.
StatusOr<int> HoistRoundings(Graph& graph);

// GELU that is written out in several operators (semantics/written_functions.h) becomes a canonical Function.
StatusOr<int> RecogniseWritten(Graph& graph);

// One walk that computes nodes with known inputs (constants and shape arithmetic), infers every shape, and turns each
// remaining ONNX operator into canonical ones (graph/operators.h). The three need each other: a Reshape's target is
// computed from shapes before it, shapes after it follow from the target. Canonical nodes that stand beside ONNX's are
// of one activation, and have results of its shape. Counts the nodes computed.
StatusOr<int> Canonicalise(Graph& graph);

// Transposes, which exporters of NHWC models write around convolutions, move towards the outputs through element-wise
// operators, means, pads, softmax, and layers and norms of the channels that they put last, where they meet and cancel.
// What is left stands before what needs it.
StatusOr<int> FoldTransposes(Graph& graph);

// Sigmoid, SiLU, HardSigmoid and HardSwish that are written out in several operators become one.
StatusOr<int> RecogniseFunctions(Graph& graph);

// A convolution with as many groups as input and output channels becomes a DepthwiseConv. One with other groups loses
// them: its weight becomes that of all input channels, zero between groups, which sparse kernels make no work of.
StatusOr<int> RecogniseDepthwise(Graph& graph);

// A Pad goes into the window of the convolution or pool that alone reads it, where that gives the same result; any
// other Pad by zeros becomes a depthwise 1x1 convolution with that padding.
StatusOr<int> FoldPad(Graph& graph);

// Per-channel scale and shift (batch norm, normalisation, bias) goes into the convolution or the embedding table before
// it, or into the convolution after it where no padding of zeros is in between.
StatusOr<int> FoldAffine(Graph& graph);

// An Affine that stays becomes a depthwise 1x1 convolution.
StatusOr<int> LowerAffine(Graph& graph);

// y = conv(x) + r becomes the convolution's residual. Where conv(x) is rounded to whole numbers before it is added, it
// is added as it is: nearer to what the numbers stand for, by half a step at most unless it would be clamped.
StatusOr<int> FuseResidual(Graph& graph);

// A Clamp (ReLU, ReLU6, Clip) goes into the epilogue of the convolution, addition or clamp before it.
StatusOr<int> FuseActivation(Graph& graph);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PASSES_PASSES_H_

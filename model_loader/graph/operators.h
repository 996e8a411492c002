// What is known of an operator that a graph may hold, and the canonical ones, which passes make (domain "swizzle");
// those read from ONNX are in graph/operator_table.h.
//
// The reader refuses every operator and every attribute not listed, so that nothing is ever silently ignored.
#ifndef SWIZZLE_MODEL_LOADER_GRAPH_OPERATORS_H_
#define SWIZZLE_MODEL_LOADER_GRAPH_OPERATORS_H_

#include <string_view>

#include "model_loader/graph/graph.h"

namespace swizzle {

// The domain of the canonical ops that passes produce and lowering consumes:
//   Conv(x, weight [M,C/group,kh,kw], bias [M]?, residual?)  {window; group; low, high; swizzle_by_position?}
//   DepthwiseConv(x, weight [C,1,kh,kw], bias [C]?, residual?)  {window; low, high}
//   Affine(x, scale [C], shift [C])   y = x * scale + shift, per channel
//   Add(a, b)  {low, high}            equal shapes
//   Multiply(a, b)  {low, high}       equal shapes
//   Scale(x, factors)  {low, high}    factors [N,C,1,1]: y = x * factors, per image and channel
//   Clamp(x)  {low, high}
//   Function(x)  {function, alpha, beta; low, high}  semantics/functions.h
//   Transpose(x)  {rows}              each row of the batch, as a matrix of so many rows, transposed
//   Concat(a, b, ...)  {of_planes, sizes}  along dimension 1, or, where of_planes is 1, of each channel; the operands'
//                                          sizes there
//   Slice(x)  {first}                 as many channels as its output has, from that one on
//   Resize(x)  {linear, coordinates, nearest, scale_h, scale_w}  height and width; see Resampling
//   DepthToSpace(x)  {block, places_first}  see SpaceBlock
//   Pad(x)  {pads [top, left, bottom, right], value}
//   MaxPool(x), AveragePool(x)  {window; count_include_pad}
//   Softmax(x)                        over channels
//   Reshape(x)                        to the shape of its output
// of token sequences (graph/graph.h), all on matrices:
//   Embedding(ids?, table [V,C]) {offset}  row ids[t] of the table, or, without ids, row position + offset
//   LayerNorm(x, scale [C], shift [C]) {epsilon; centred; groups}  centred is 1 unless given; 0: by the root mean
//   square;
//                                                                  groups are 1 unless given, see Normalisation
//   Attention(q, k, v) {heads, scale; group_size}  softmax(q k^T * scale + bias of masked keys) v, per sequence and
//                                          head; group_size is 1 unless given, see Attention
//   SparseAttention(q, k, v, row offsets, column indices) {heads, scale; group_size}  to the keys of a pattern
//   BiasedAttention(q, k, v, biases [heads, N]) {heads, scale, length, reach; windows, group_size}  see
//                                          Op::kBiasedAttention; windows are 1 unless given
//   DisentangledAttention(q, k, v, vectors [2 * C + 1, N]) {heads, scale, places}  see Op::kDisentangledAttention
//   PermuteTokens(x, places [length, 1])   the token at each place of a sequence, by its own place
//   Rotary(x, table [positions, 2 * pairs]) {heads, size, pairs}  see Rotation
//   SelectToken(x) {token}                 one token of each sequence, from 0, or from -1 backwards
//   MeanTokens(x)                          over the tokens of each sequence whose mask is 1; zeros where there is none
// where {window} is kernel_shape, strides, pads and dilations, all present (semantics/windows.h). A linear layer is a
// Conv with a 1x1 window on [batch, channels]; its weight is [M,K,1,1].
inline constexpr std::string_view kSwizzleDomain = "swizzle";

struct OperatorSpec {
  std::string_view domain;
  std::string_view op;
  int min_inputs;
  int max_inputs;
  int max_outputs;
  // Names, each followed by a space; "min<11" is known below opset 11 only.
  std::string_view attributes;
};

// Null if there is no canonical operator of this name.
const OperatorSpec* FindCanonicalOperator(std::string_view op);

// `opset` 0 stands for any: attributes of all opsets are known.
bool HasAttribute(const OperatorSpec& spec, std::string_view attribute, int64_t opset);

// How a reader or verifier looks an operator up (graph/operator_table.h).
using OperatorFinder = const OperatorSpec* (*)(std::string_view domain, std::string_view op);

// Whether `node` is the canonical op of this name.
inline bool Is(const Node& node, std::string_view op) { return node.domain == kSwizzleDomain && node.op == op; }

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_GRAPH_OPERATORS_H_

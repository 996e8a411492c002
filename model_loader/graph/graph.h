// The graph of a model as read, and as passes rewrite it: nodes and values that refer to each other by index.
//
// Nodes stand in execution order. A value is a graph input, a constant, or made by exactly one node (graph/verify.h
// checks this and the rest). Ops of the ONNX standard have the domain ""; passes turn them into the few ops of the
// domain "swizzle" that lowering knows (graph/operator_table.h and operators.h list both). A Graph is a value type,
// thread-compatible.
#ifndef SWIZZLE_MODEL_LOADER_GRAPH_GRAPH_H_
#define SWIZZLE_MODEL_LOADER_GRAPH_GRAPH_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kernels/base/quantisation.h"
#include "kernels/base/status.h"
#include "kernels/base/tensor.h"
#include "kernels/operator/input_zeros.h"

namespace swizzle {

// An owned, dense, row-major tensor. bytes.size() is the element count times the element's size.
struct Tensor {
  DType dtype = DType::kFloat32;
  Shape shape;
  std::vector<std::byte> bytes;

  int64_t elements() const;
  // REQUIRES: dtype is kFloat32.
  std::span<const float> floats() const;
  std::span<float> floats();

  // REQUIRES: as many values as the shape has elements.
  static Tensor Floats(Shape shape, std::span<const float> values);
  static Tensor Int64s(Shape shape, std::span<const int64_t> values);
  bool operator==(const Tensor&) const = default;
};

// In place of a dimension: the batch size, where it is free. Only dimension 0 ever has it.
inline constexpr int64_t kFreeBatch = -1;

// Whole numbers that stand for a value's real ones, which is FP32 in the graph: exactly for a constant. An activation
// is held to their range by what makes it, and may be rounded to them.
struct WholeNumbers {
  Quantisation quantisation;
  int64_t axis = 1;  // the dimension of its channels, where there are several
  bool operator==(const WholeNumbers&) const = default;
};

struct Value {
  std::string name;
  DType dtype = DType::kFloat32;
  std::optional<Shape> shape;               // absent until inferred
  std::optional<Tensor> constant;           // of the same dtype and shape
  bool per_token = false;                   // dimension 0 counts the tokens of all sequences; see GraphSequences
  std::optional<WholeNumbers> wholes = {};  // of canonical graphs, where the model quantises the value
  bool arrives_whole = false;               // a graph input that requests bring as `wholes`
  std::optional<InputZeros> zeros = {};     // on calibration data
};

struct Body;

using Attribute = std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<float>,
                               std::vector<std::string>, Tensor, std::shared_ptr<const Body>>;

// In place of a value: an optional input or output that is left out.
inline constexpr int kNoValue = -1;

struct Node {
  std::string op;
  std::string domain;        // "" is the ONNX standard
  std::string name;          // never empty
  std::vector<int> inputs;   // values or kNoValue
  std::vector<int> outputs;  // values or kNoValue
  std::map<std::string, Attribute> attributes;

  // The input, or kNoValue where it is left out.
  int Input(size_t i) const { return i < inputs.size() ? inputs[i] : kNoValue; }
};

struct GraphOutput {
  std::string name;
  int value = kNoValue;
  // As the file declares it, unchecked; free dimensions are -1.
  std::optional<DType> dtype = std::nullopt;
  std::optional<Shape> shape = std::nullopt;
};

// What a graph of token sequences, once its operators are canonical, has besides its nodes. Its activations are
// matrices [kFreeBatch, channels], per token or per row, its inputs [kFreeBatch, 1] whole numbers per token.
struct GraphSequences {
  int64_t batch = kFreeBatch;   // as the model declares its inputs: [batch, length]
  int64_t length = kFreeBatch;  // likewise; kFreeBatch: free
  int mask = kNoValue;          // the graph input that says which tokens are attended to
  float masked_bias = 0.0f;     // what is added to a key's scores where the mask is 0
  bool skips_masked = false;    // nothing else reads what is computed of masked tokens
  // Positions count, from 1, the tokens of which this graph input holds another number than `padding`, and are 0 where
  // it holds that; kNoValue: all tokens, from 0.
  int counted = kNoValue;
  int64_t padding = 0;
  int64_t longest = 0;  // tokens that a sequence may have; 0: any number
  // Nothing is read of what stands behind the first token of which this graph input holds `end_id`, or, if
  // ends_at_largest, its largest number; behind the first of all where none does. kNoValue: sequences end with rows.
  int ends = kNoValue;
  bool ends_at_largest = false;
  int64_t end_id = 0;
};

struct Graph {
  std::string name;
  std::string producer;  // "pytorch 2.11.0"; informative
  int64_t opset = 0;     // of the domain ""
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<int> inputs;                  // values
  std::vector<GraphOutput> outputs;         // several may name one value
  std::optional<GraphSequences> sequences;  // of graphs whose inputs are token sequences

  int AddValue(Value value);
  // Adds a constant value.
  int AddConstant(std::string constant_name, Tensor tensor);

  bool IsConstant(int value) const { return value != kNoValue && values[value].constant.has_value(); }
  // REQUIRES: the shape is known.
  const Shape& ShapeOf(int value) const { return *values[value].shape; }
};

// What somebody makes of a graph that was read, before anything else is.
using GraphRevision = std::function<Status(Graph&)>;

// A graph that a node runs: If's branches, what Loop and Scan repeat. Its inputs are those that the node's operator
// gives it and then, of the values around it that it reads, one for each of `captured`, which is an input of the node.
struct Body {
  Graph graph;
  std::vector<size_t> captured;
};

// "Conv node 'features.0'", for messages.
std::string Describe(const Node& node);

// The attribute, or `absent` where the node has none. INVALID_ARGUMENT where it has another type.
StatusOr<int64_t> IntAttribute(const Node& node, const std::string& name, int64_t absent);
StatusOr<float> FloatAttribute(const Node& node, const std::string& name, float absent);
StatusOr<std::string> StringAttribute(const Node& node, const std::string& name, const std::string& absent);
StatusOr<std::vector<int64_t>> IntsAttribute(const Node& node, const std::string& name, std::vector<int64_t> absent);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_GRAPH_GRAPH_H_

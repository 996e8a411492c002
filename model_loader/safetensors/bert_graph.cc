#include "model_loader/safetensors/bert_graph.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace swizzle {
namespace {

constexpr int64_t kOpset = 17;
// Of ONNX's TensorProto.
constexpr int64_t kOnnxFloat = 1, kOnnxInt64 = 7;

// [rows, columns] as [columns, rows].
Tensor Transposed(const Tensor& matrix) {
  constexpr size_t kBlock = 32;
  const auto rows = static_cast<size_t>(matrix.shape[0]), columns = static_cast<size_t>(matrix.shape[1]);
  Tensor result{DType::kFloat32, {matrix.shape[1], matrix.shape[0]}, std::vector<std::byte>(matrix.bytes.size())};
  const std::span<const float> from = matrix.floats();
  const std::span<float> to = result.floats();
  for (size_t row_block = 0; row_block < rows; row_block += kBlock) {
    for (size_t column_block = 0; column_block < columns; column_block += kBlock) {
      for (size_t row = row_block; row < std::min(rows, row_block + kBlock); ++row) {
        for (size_t column = column_block; column < std::min(columns, column_block + kBlock); ++column) {
          to[column * rows + row] = from[row * columns + column];
        }
      }
    }
  }
  return result;
}

// The encoder's tensors, each to be taken once.
class Weights {
 public:
  static StatusOr<Weights> From(BertFamily family, TensorMap tensors) {
    Weights weights;
    while (!tensors.empty()) {
      auto node = tensors.extract(tensors.begin());
      const std::string name = CanonicalName(family, node.key());
      if (name.empty()) continue;
      if (!weights.tensors_.emplace(name, std::move(node.mapped())).second) {
        return InvalidArgument("the checkpoint has the tensor '", name, "' twice, under two prefixes");
      }
    }
    return weights;
  }

  bool Has(const std::string& name) const { return tensors_.contains(name); }

  // In FP32 and of this shape, in which -1 stands for any number from 1 on.
  StatusOr<Tensor> Take(const std::string& name, const Shape& shape) {
    auto node = tensors_.extract(name);
    if (node.empty()) return InvalidArgument("the checkpoint lacks the tensor '", name, "'");
    const Shape& given = node.mapped().shape;
    const auto fits = [](int64_t is, int64_t wanted) { return wanted == -1 || is == wanted; };
    if (!std::ranges::equal(given, shape, fits)) {
      return InvalidArgument("the tensor '", name, "' has the shape ", ShapeText(given), "; it must be ",
                             ShapeText(shape));
    }
    if (std::ranges::find(given, 0) != given.end()) {
      return Unimplemented("the tensor '", name, "' has the shape ", ShapeText(given),
                           ": layers that have lost all their heads or rows are not supported");
    }
    return ToFloat32(std::move(node.mapped()), Concat("the tensor '", name, "'"));
  }

  Status CheckAllTaken() const {
    if (tensors_.empty()) return {};
    return InvalidArgument("the checkpoint has the tensor '", tensors_.begin()->first,
                           "', which is of no part of the encoder that config.json describes");
  }

 private:
  TensorMap tensors_;
};

class BertGraphBuilder {
 public:
  BertGraphBuilder(const BertConfig& config, Weights weights) : config_(config), weights_(std::move(weights)) {
    graph_.name = "encoder";
    graph_.producer = "safetensors";
    graph_.opset = kOpset;
  }

  StatusOr<Graph> Build() {
    input_ids_ = Input("input_ids");
    AddMask(Input("attention_mask"));
    SWIZZLE_ASSIGN_OR_RETURN(int hidden, AddEmbeddings());
    for (int64_t layer = 0; layer < config_.num_hidden_layers; ++layer) {
      SWIZZLE_ASSIGN_OR_RETURN(hidden, AddLayer(Concat("encoder.layer.", layer), hidden));
    }
    Output("last_hidden_state", hidden, {-1, -1, config_.hidden_size});
    if (weights_.Has("pooler.dense.weight")) SWIZZLE_RETURN_IF_ERROR(AddPooler(hidden));
    SWIZZLE_RETURN_IF_ERROR(weights_.CheckAllTaken());
    return std::move(graph_);
  }

 private:
  int Input(const std::string& name) {
    graph_.inputs.push_back(graph_.AddValue({name, DType::kInt64, Shape{-1, -1}, std::nullopt}));
    return graph_.inputs.back();
  }

  void Output(const std::string& name, int value, Shape shape) {
    graph_.values[static_cast<size_t>(value)].name = name;
    graph_.outputs.push_back({name, value, DType::kFloat32, std::move(shape)});
  }

  int Scalar(const std::string& name, float value) {
    return graph_.AddConstant(name, Tensor::Floats({}, std::span(&value, 1)));
  }

  int List(const std::string& name, const std::vector<int64_t>& values) {
    return graph_.AddConstant(name, Tensor::Int64s({static_cast<int64_t>(values.size())}, values));
  }

  // Adds a node called `place`/`op` and returns its output. A place has each operator once.
  int Add(const std::string& place, const std::string& op, std::vector<int> inputs,
          std::map<std::string, Attribute> attributes = {}) {
    const std::string name = place + "/" + op;
    const int output = graph_.AddValue({name + "_output", DType::kFloat32, std::nullopt, std::nullopt});
    graph_.nodes.push_back({op, "", name, std::move(inputs), {output}, std::move(attributes)});
    return output;
  }

  StatusOr<int> Constant(const std::string& name, const Shape& shape) {
    SWIZZLE_ASSIGN_OR_RETURN(Tensor tensor, weights_.Take(name, shape));
    return graph_.AddConstant(name, std::move(tensor));
  }

  // 0 where the mask is 1, the lowest float where it is 0: [batch, 1, 1, sequence], added to the scores.
  void AddMask(int attention_mask) {
    const int unsqueezed = Add("mask", "Unsqueeze", {attention_mask, List("mask.axes", {1, 2})});
    const int floats = Add("mask", "Cast", {unsqueezed}, {{"to", kOnnxFloat}});
    const int excluded = Add("mask", "Sub", {Scalar("mask.one", 1.0f), floats});
    mask_ = Add("mask", "Mul", {excluded, Scalar("mask.lowest", std::numeric_limits<float>::lowest())});
  }

  // The first positions, as many as the sequence has: [1, sequence].
  int AddPositions(int64_t max_positions) {
    std::vector<int64_t> ids(static_cast<size_t>(max_positions));
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(i);
    const int all = graph_.AddConstant("embeddings.position_ids", Tensor::Int64s({1, max_positions}, ids));
    const int shape = Add("positions", "Shape", {input_ids_});
    const int length = Add("positions", "Gather", {shape, List("positions.dimension", {1})}, {{"axis", int64_t{0}}});
    const int axis = List("positions.axis", {1});
    return Add("positions", "Slice", {all, List("positions.begin", {0}), length, axis});
  }

  // RoBERTa's: tokens that are not padding count from pad_token_id + 1, padding stays at pad_token_id.
  int AddPositionsPastPadding() {
    const int pad = graph_.AddConstant("positions.pad", Tensor::Int64s({}, std::span(&config_.pad_token_id, 1)));
    const int is_padding = Add("positions", "Equal", {input_ids_, pad});
    const int is_token = Add("positions", "Cast", {Add("positions", "Not", {is_padding})}, {{"to", kOnnxInt64}});
    const int64_t kSequence = 1;
    const int axis = graph_.AddConstant("positions.axis", Tensor::Int64s({}, std::span(&kSequence, 1)));
    const int count = Add("positions", "CumSum", {is_token, axis});
    return Add("positions", "Add", {Add("positions", "Mul", {count, is_token}), pad});
  }

  StatusOr<int> AddEmbeddings() {
    const int64_t hidden = config_.hidden_size, max_positions = config_.max_position_embeddings;
    SWIZZLE_ASSIGN_OR_RETURN(const int words, Constant("embeddings.word_embeddings.weight", {-1, hidden}));
    int sum = Add("embeddings.word_embeddings", "Gather", {words, input_ids_}, {{"axis", int64_t{0}}});
    if (config_.family != BertFamily::kDistilBert) {
      SWIZZLE_ASSIGN_OR_RETURN(const int types, AddTokenTypes());
      sum = Add("embeddings.token_type_embeddings", "Add", {sum, types});
    }
    SWIZZLE_ASSIGN_OR_RETURN(const int table,
                             Constant("embeddings.position_embeddings.weight", {max_positions, hidden}));
    const int ids = config_.family == BertFamily::kRoberta ? AddPositionsPastPadding() : AddPositions(max_positions);
    const int positions = Add("embeddings.position_embeddings", "Gather", {table, ids}, {{"axis", int64_t{0}}});
    sum = Add("embeddings.position_embeddings", "Add", {sum, positions});
    return AddLayerNorm("embeddings.LayerNorm", sum);
  }

  // RoBERTa has no input for them: all its tokens are of the first type.
  StatusOr<int> AddTokenTypes() {
    const std::string name = "embeddings.token_type_embeddings";
    SWIZZLE_ASSIGN_OR_RETURN(Tensor table, weights_.Take(name + ".weight", {-1, config_.hidden_size}));
    if (config_.family == BertFamily::kRoberta) {
      const auto row = table.floats().first(static_cast<size_t>(config_.hidden_size));
      return graph_.AddConstant(name + ".weight", Tensor::Floats({config_.hidden_size}, row));
    }
    const int types = graph_.AddConstant(name + ".weight", std::move(table));
    return Add(name, "Gather", {types, Input("token_type_ids")}, {{"axis", int64_t{0}}});
  }

  StatusOr<int> AddLayerNorm(const std::string& name, int x) {
    SWIZZLE_ASSIGN_OR_RETURN(const int scale, Constant(name + ".weight", {config_.hidden_size}));
    SWIZZLE_ASSIGN_OR_RETURN(const int bias, Constant(name + ".bias", {config_.hidden_size}));
    return Add(name, "LayerNormalization", {x, scale, bias},
               {{"axis", int64_t{-1}}, {"epsilon", config_.layer_norm_eps}});
  }

  // A linear layer of x [.., in], and how many outputs it has.
  struct Linear {
    int value;
    int64_t outputs;
  };

  // `outputs` is -1 where any number will do.
  StatusOr<Linear> AddLinear(const std::string& name, int x, int64_t inputs, int64_t outputs) {
    SWIZZLE_ASSIGN_OR_RETURN(const Tensor weight, weights_.Take(name + ".weight", {outputs, inputs}));
    SWIZZLE_ASSIGN_OR_RETURN(const int bias, Constant(name + ".bias", {weight.shape[0]}));
    const int transposed = graph_.AddConstant(name + ".weight", Transposed(weight));
    return Linear{Add(name, "Add", {bias, Add(name, "MatMul", {x, transposed})}), weight.shape[0]};
  }

  // [batch, sequence, heads x head size] as [batch, heads, sequence, head size], or with `order`.
  int AddHeads(const std::string& name, int x, int64_t heads, std::vector<int64_t> order) {
    const int target = List(name + ".heads", {0, 0, heads, config_.head_size()});
    return Add(name, "Transpose", {Add(name, "Reshape", {x, target})}, {{"perm", std::move(order)}});
  }

  StatusOr<int> AddAttention(const std::string& name, int x) {
    const int64_t hidden = config_.hidden_size, head_size = config_.head_size();
    SWIZZLE_ASSIGN_OR_RETURN(const Linear query, AddLinear(name + ".self.query", x, hidden, -1));
    if (query.outputs % head_size != 0) {
      return InvalidArgument("the tensor '", name, ".self.query.weight' has ", query.outputs,
                             " rows, which are no whole heads of ", head_size);
    }
    const int64_t rows = query.outputs, heads = rows / head_size;
    SWIZZLE_ASSIGN_OR_RETURN(const Linear key, AddLinear(name + ".self.key", x, hidden, rows));
    SWIZZLE_ASSIGN_OR_RETURN(const Linear value, AddLinear(name + ".self.value", x, hidden, rows));
    const int q = AddHeads(name + ".self.query", query.value, heads, {0, 2, 1, 3});
    const int k = AddHeads(name + ".self.key", key.value, heads, {0, 2, 3, 1});
    const int v = AddHeads(name + ".self.value", value.value, heads, {0, 2, 1, 3});
    const std::string scores = name + ".self.scores", context = name + ".self.context";
    const int root = Scalar(scores + ".root", std::sqrt(static_cast<float>(head_size)));
    const int scaled = Add(scores, "Div", {Add(scores, "MatMul", {q, k}), root});
    const int share = Add(scores, "Softmax", {Add(scores, "Add", {scaled, mask_})}, {{"axis", int64_t{-1}}});
    const int by_head = Add(context, "MatMul", {share, v});
    const int joined = Add(context, "Transpose", {by_head}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
    const int flat = Add(context, "Reshape", {joined, List(context + ".rows", {0, 0, rows})});
    SWIZZLE_ASSIGN_OR_RETURN(const Linear output, AddLinear(name + ".output.dense", flat, rows, hidden));
    return AddLayerNorm(name + ".output.LayerNorm", Add(name + ".output.residual", "Add", {output.value, x}));
  }

  int AddActivation(const std::string& name, int x) {
    if (config_.activation == BertActivation::kRelu) return Add(name, "Relu", {x});
    const int half = Scalar(name + ".half", 0.5f), one = Scalar(name + ".one", 1.0f);
    int inner;
    if (config_.activation == BertActivation::kGelu) {
      const int scaled = Add(name, "Div", {x, Scalar(name + ".root", std::sqrt(2.0f))});
      inner = Add(name, "Erf", {scaled});
    } else {
      const int cube = Add(name + ".cube", "Pow", {x, Scalar(name + ".three", 3.0f)});
      const int small = Add(name + ".cube", "Mul", {cube, Scalar(name + ".factor", 0.044715f)});
      const int sum = Add(name + ".cube", "Add", {x, small});
      const float root = std::sqrt(2.0f / 3.14159265358979f);
      inner = Add(name, "Tanh", {Add(name + ".argument", "Mul", {sum, Scalar(name + ".root", root)})});
    }
    const int product = Add(name, "Mul", {x, Add(name, "Add", {inner, one})});
    return Add(name + ".halved", "Mul", {product, half});
  }

  StatusOr<int> AddLayer(const std::string& name, int x) {
    const int64_t hidden = config_.hidden_size;
    SWIZZLE_ASSIGN_OR_RETURN(x, AddAttention(name + ".attention", x));
    SWIZZLE_ASSIGN_OR_RETURN(const Linear inner, AddLinear(name + ".intermediate.dense", x, hidden, -1));
    const int activated = AddActivation(name + ".intermediate.activation", inner.value);
    SWIZZLE_ASSIGN_OR_RETURN(const Linear outer, AddLinear(name + ".output.dense", activated, inner.outputs, hidden));
    return AddLayerNorm(name + ".output.LayerNorm", Add(name + ".output.residual", "Add", {outer.value, x}));
  }

  // Of the first token.
  Status AddPooler(int hidden_state) {
    const int64_t hidden = config_.hidden_size, kFirst = 0;
    const int first = graph_.AddConstant("pooler.first", Tensor::Int64s({}, std::span(&kFirst, 1)));
    const int token = Add("pooler", "Gather", {hidden_state, first}, {{"axis", int64_t{1}}});
    SWIZZLE_ASSIGN_OR_RETURN(const int weight, Constant("pooler.dense.weight", {hidden, hidden}));
    SWIZZLE_ASSIGN_OR_RETURN(const int bias, Constant("pooler.dense.bias", {hidden}));
    const int dense = Add("pooler.dense", "Gemm", {token, weight, bias}, {{"transB", int64_t{1}}});
    Output("pooler_output", Add("pooler", "Tanh", {dense}), {-1, hidden});
    return {};
  }

  const BertConfig& config_;
  Weights weights_;
  Graph graph_;
  int input_ids_ = kNoValue;
  int mask_ = kNoValue;
};

}  // namespace

StatusOr<Graph> BuildBertGraph(const BertConfig& config, TensorMap tensors) {
  SWIZZLE_ASSIGN_OR_RETURN(Weights weights, Weights::From(config.family, std::move(tensors)));
  return BertGraphBuilder(config, std::move(weights)).Build();
}

}  // namespace swizzle

#include "model_loader/safetensors/bert_graph.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model_loader/safetensors/relative_buckets.h"

namespace swizzle {
namespace {

constexpr int64_t kOpset = 17;
// Of ONNX's TensorProto.
constexpr int64_t kOnnxFloat = 1, kOnnxInt64 = 7;

template <typename T>
void Transpose(const std::byte* from, size_t rows, size_t columns, std::byte* to) {
  constexpr size_t kBlock = 32;
  for (size_t row_block = 0; row_block < rows; row_block += kBlock) {
    for (size_t column_block = 0; column_block < columns; column_block += kBlock) {
      for (size_t row = row_block; row < std::min(rows, row_block + kBlock); ++row) {
        for (size_t column = column_block; column < std::min(columns, column_block + kBlock); ++column) {
          std::memcpy(to + (column * rows + row) * sizeof(T), from + (row * columns + column) * sizeof(T), sizeof(T));
        }
      }
    }
  }
}

// [rows, columns] of FP32 or INT8 as [columns, rows].
Tensor Transposed(const Tensor& matrix) {
  const auto rows = static_cast<size_t>(matrix.shape[0]), columns = static_cast<size_t>(matrix.shape[1]);
  Tensor result{matrix.dtype, {matrix.shape[1], matrix.shape[0]}, std::vector<std::byte>(matrix.bytes.size())};
  const auto transpose = matrix.dtype == DType::kInt8 ? Transpose<int8_t> : Transpose<float>;
  transpose(matrix.bytes.data(), rows, columns, result.bytes.data());
  return result;
}

class BertGraphBuilder {
 public:
  BertGraphBuilder(const BertConfig& config, CheckpointWeights weights)
      : config_(config), weights_(std::move(weights)) {
    graph_.name = "encoder";
    graph_.producer = "safetensors";
    graph_.opset = kOpset;
  }

  StatusOr<Graph> Build() {
    input_ids_ = Input("input_ids");
    AddMask(Input("attention_mask"));
    if (config_.family == BertFamily::kMpnet) {
      SWIZZLE_RETURN_IF_ERROR(AddRelativePositions());
    }
    SWIZZLE_ASSIGN_OR_RETURN(int hidden, AddEmbeddings());
    for (int64_t layer = 0; layer < config_.num_hidden_layers; ++layer) {
      SWIZZLE_ASSIGN_OR_RETURN(hidden, AddLayer(Concat("encoder.layer.", layer), hidden));
    }
    Output("last_hidden_state", hidden, {-1, -1, config_.hidden_size});
    int pooled = kNoValue;
    if (weights_.Has("pooler.dense.weight")) {
      SWIZZLE_ASSIGN_OR_RETURN(pooled, AddPooler(hidden));
    }
    if (weights_.Has("classifier.weight") || weights_.Has("classifier.out_proj.weight")) {
      SWIZZLE_RETURN_IF_ERROR(AddClassifier(hidden, pooled));
    }
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
          std::map<std::string, Attribute> attributes = {}, DType dtype = DType::kFloat32) {
    const std::string name = place + "/" + op;
    const int output = graph_.AddValue({name + "_output", dtype, std::nullopt, std::nullopt});
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

  // The length of the sequences, INT64 [1].
  int AddLength(const std::string& place) {
    const int shape = Add(place, "Shape", {input_ids_}, {}, DType::kInt64);
    return Add(place, "Gather", {shape, List(place + ".dimension", {1})}, {{"axis", int64_t{0}}}, DType::kInt64);
  }

  // MPNet's: a bias of each head for how far a key is from its query, the same in all layers, is added to the scores as
  // the mask is. Distances share buckets, the farther the more, which are as T5's (Raffel et al., 2020).
  Status AddRelativePositions() {
    const std::string place = "relative_positions", name = "encoder.relative_attention_bias.weight";
    const int64_t heads = config_.num_attention_heads;
    SWIZZLE_ASSIGN_OR_RETURN(const Tensor by_bucket, weights_.Take(name, {kRelativeBuckets, heads}));
    const std::vector<float> by_distance = BiasesByDistance(by_bucket);
    const auto number = [&](const char* what, int64_t value) {
      return graph_.AddConstant(place + what, Tensor::Int64s({}, std::span(&value, 1)));
    };
    const auto add = [&](const char* step, const char* op, std::vector<int> inputs) {
      return Add(place + step, op, std::move(inputs), {}, DType::kInt64);
    };
    const int length = add(".length", "Squeeze", {AddLength(place), List(place + ".first", {0})});
    const int places = add("", "Range", {number(".begin", 0), length, number(".step", 1)});
    const int of_queries = add(".queries", "Unsqueeze", {places, List(place + ".columns", {1})});
    const int of_keys = add(".keys", "Unsqueeze", {places, List(place + ".rows", {0})});
    const int moved = add("", "Add", {add("", "Sub", {of_keys, of_queries}), number(".middle", kFarthestBucket)});
    const int bounded =
        add("", "Max", {add("", "Min", {moved, number(".last", 2 * kFarthestBucket)}), number(".least", 0)});
    const int table = graph_.AddConstant(name, Tensor::Floats({2 * kFarthestBucket + 1, heads}, by_distance));
    const int biases = Add(place + ".biases", "Gather", {table, bounded}, {{"axis", int64_t{0}}});
    const int by_head = Add(place, "Transpose", {biases}, {{"perm", std::vector<int64_t>{2, 0, 1}}});
    relative_positions_ = Add(place, "Unsqueeze", {by_head, List(place + ".batch", {0})});
    return {};
  }

  // The first positions, as many as the sequence has: [1, sequence].
  int AddPositions(int64_t max_positions) {
    std::vector<int64_t> ids(static_cast<size_t>(max_positions));
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(i);
    const int all = graph_.AddConstant("embeddings.position_ids", Tensor::Int64s({1, max_positions}, ids));
    const int length = AddLength("positions");
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
    const int64_t size = config_.embedding_size, max_positions = config_.max_position_embeddings;
    SWIZZLE_ASSIGN_OR_RETURN(const int words, Constant("embeddings.word_embeddings.weight", {-1, size}));
    int sum = Add("embeddings.word_embeddings", "Gather", {words, input_ids_}, {{"axis", int64_t{0}}});
    if (config_.family == BertFamily::kBert || config_.family == BertFamily::kRoberta) {
      SWIZZLE_ASSIGN_OR_RETURN(const int types, AddTokenTypes());
      sum = Add("embeddings.token_type_embeddings", "Add", {sum, types});
    }
    SWIZZLE_ASSIGN_OR_RETURN(const int table, Constant("embeddings.position_embeddings.weight", {max_positions, size}));
    const bool past_padding = config_.family == BertFamily::kRoberta || config_.family == BertFamily::kMpnet;
    const int ids = past_padding ? AddPositionsPastPadding() : AddPositions(max_positions);
    const int positions = Add("embeddings.position_embeddings", "Gather", {table, ids}, {{"axis", int64_t{0}}});
    sum = Add("embeddings.position_embeddings", "Add", {sum, positions});
    SWIZZLE_ASSIGN_OR_RETURN(const int norm, AddLayerNorm("embeddings.LayerNorm", sum, size));
    if (size == config_.hidden_size) return norm;
    SWIZZLE_ASSIGN_OR_RETURN(const Linear wide, AddLinear("embeddings_project", norm, size, config_.hidden_size));
    return wide.value;
  }

  // RoBERTa has no input for them: all its tokens are of the first type.
  StatusOr<int> AddTokenTypes() {
    const std::string name = "embeddings.token_type_embeddings";
    SWIZZLE_ASSIGN_OR_RETURN(Tensor table, weights_.Take(name + ".weight", {-1, config_.embedding_size}));
    if (config_.family == BertFamily::kRoberta) {
      const auto row = table.floats().first(static_cast<size_t>(config_.embedding_size));
      return graph_.AddConstant(name + ".weight", Tensor::Floats({config_.embedding_size}, row));
    }
    const int types = graph_.AddConstant(name + ".weight", std::move(table));
    return Add(name, "Gather", {types, Input("token_type_ids")}, {{"axis", int64_t{0}}});
  }

  StatusOr<int> AddLayerNorm(const std::string& name, int x, int64_t size) {
    SWIZZLE_ASSIGN_OR_RETURN(const int scale, Constant(name + ".weight", {size}));
    SWIZZLE_ASSIGN_OR_RETURN(const int bias, Constant(name + ".bias", {size}));
    return Add(name, "LayerNormalization", {x, scale, bias},
               {{"axis", int64_t{-1}}, {"epsilon", config_.layer_norm_eps}});
  }

  // What DynamicQuantizeLinear makes of a value.
  struct Rounded {
    int wholes, scale, zero_point;
  };

  // Made once for all layers that read the value.
  const Rounded& Round(int x) {
    const auto [found, is_new] = rounded_.try_emplace(x);
    if (is_new) {
      const std::string name = graph_.values[static_cast<size_t>(x)].name + "/DynamicQuantizeLinear";
      const auto add = [&](const char* ending, DType dtype) {
        return graph_.AddValue({name + ending, dtype, std::nullopt, std::nullopt});
      };
      found->second = {add("_wholes", DType::kUint8), add("_scale", DType::kFloat32), add("_zero", DType::kUint8)};
      const Rounded& to = found->second;
      graph_.nodes.push_back({"DynamicQuantizeLinear", "", name, {x}, {to.wholes, to.scale, to.zero_point}, {}});
    }
    return found->second;
  }

  // The constants that follow whole numbers: a scale, and a zero point if there is one.
  std::vector<int> AddScaling(const std::string& name, Scaling scaling) {
    std::vector<int> constants = {graph_.AddConstant(name + "_scale", std::move(scaling.scales))};
    if (scaling.zero_points) {
      constants.push_back(graph_.AddConstant(name + "_zero_point", *std::move(scaling.zero_points)));
    }
    return constants;
  }

  // x, rounded as the scaling says.
  int AddRounding(const std::string& name, int x, Scaling scaling) {
    if (!scaling.zero_points) {  // ONNX would take them for UINT8
      scaling.zero_points = Tensor{DType::kInt8, {}, std::vector<std::byte>(1)};
    }
    const std::vector<int> by = AddScaling(name, std::move(scaling));
    const int wholes = Add(name, "QuantizeLinear", {x, by[0], by[1]}, {}, DType::kInt8);
    return Add(name, "DequantizeLinear", {wholes, by[0], by[1]});
  }

  // x [.., in] times the weight [out, in].
  int AddProduct(const std::string& name, int x, LinearWeight weight) {
    const int matrix = graph_.AddConstant(name + ".weight", Transposed(weight.matrix));
    if (!weight.numbers) return Add(name, "MatMul", {x, matrix});
    const std::vector<int> by = AddScaling(name + ".weight", *std::move(weight.numbers));
    if (weight.input) {
      std::vector<int> inputs = {matrix};
      inputs.insert(inputs.end(), by.begin(), by.end());
      const int real = Add(name + ".weight", "DequantizeLinear", inputs, {{"axis", int64_t{1}}});
      return Add(name, "MatMul", {AddRounding(name + ".input", x, *std::move(weight.input)), real});
    }
    const Rounded& rounded = Round(x);
    std::vector<int> inputs = {rounded.wholes, matrix, rounded.zero_point};
    if (by.size() > 1) inputs.push_back(by[1]);
    const int sums = Add(name, "MatMulInteger", inputs, {}, DType::kInt32);
    const int scale = Add(name + ".scale", "Mul", {rounded.scale, by[0]});
    return Add(name, "Mul", {Add(name, "Cast", {sums}, {{"to", kOnnxFloat}}), scale});
  }

  // A linear layer of x [.., in], and how many outputs it has.
  struct Linear {
    int value;
    int64_t outputs;
  };

  // `outputs` is -1 where any number will do.
  StatusOr<Linear> AddLinear(const std::string& name, int x, int64_t inputs, int64_t outputs) {
    SWIZZLE_ASSIGN_OR_RETURN(LinearWeight weight, weights_.TakeLinear(name, {outputs, inputs}));
    outputs = weight.matrix.shape[0];
    SWIZZLE_ASSIGN_OR_RETURN(const int bias, Constant(name + ".bias", {outputs}));
    return Linear{Add(name, "Add", {bias, AddProduct(name, x, std::move(weight))}), outputs};
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
    int scaled = Add(scores, "Div", {Add(scores, "MatMul", {q, k}), root});
    if (relative_positions_ != kNoValue) {
      if (heads != config_.num_attention_heads) {
        return InvalidArgument("the tensor '", name, ".self.query.weight' has ", heads,
                               " heads, and relative positions ", config_.num_attention_heads,
                               ": export the model to ONNX");
      }
      scaled = Add(scores + ".biased", "Add", {scaled, relative_positions_});
    }
    const int share = Add(scores, "Softmax", {Add(scores, "Add", {scaled, mask_})}, {{"axis", int64_t{-1}}});
    const int by_head = Add(context, "MatMul", {share, v});
    const int joined = Add(context, "Transpose", {by_head}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
    const int flat = Add(context, "Reshape", {joined, List(context + ".rows", {0, 0, rows})});
    SWIZZLE_ASSIGN_OR_RETURN(const Linear output, AddLinear(name + ".output.dense", flat, rows, hidden));
    return AddLayerNorm(name + ".output.LayerNorm", Add(name + ".output.residual", "Add", {output.value, x}), hidden);
  }

  // x / 2 (1 + erf(x / sqrt 2)), or with a hyperbolic tangent in place of erf.
  int AddGelu(const std::string& name, int x, bool by_tanh) {
    const int half = Scalar(name + ".half", 0.5f), one = Scalar(name + ".one", 1.0f);
    int inner;
    if (!by_tanh) {
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

  int AddClip(const std::string& name, int x, float low, float high) {
    return Add(name, "Clip", {x, Scalar(name + ".low", low), Scalar(name + ".high", high)});
  }

  int AddActivation(const std::string& name, int x) {
    switch (config_.activation) {
      case BertActivation::kGelu:
        return AddGelu(name, x, /*by_tanh=*/false);
      case BertActivation::kGeluTanh:
        return AddGelu(name, x, /*by_tanh=*/true);
      case BertActivation::kGelu10:
        return AddClip(name, AddGelu(name, x, /*by_tanh=*/false), -10.0f, 10.0f);
      case BertActivation::kQuickGelu: {
        const int scaled = Add(name + ".argument", "Mul", {x, Scalar(name + ".factor", 1.702f)});
        return Add(name, "Mul", {x, Add(name, "Sigmoid", {scaled})});
      }
      case BertActivation::kSilu:
        return Add(name, "Mul", {x, Add(name, "Sigmoid", {x})});
      case BertActivation::kMish:
        return Add(name, "Mul", {x, Add(name, "Tanh", {Add(name, "Softplus", {x})})});
      case BertActivation::kRelu:
        return Add(name, "Relu", {x});
      case BertActivation::kRelu2: {
        const int positive = Add(name, "Relu", {x});
        return Add(name, "Mul", {positive, positive});
      }
      case BertActivation::kRelu6:
        return AddClip(name, x, 0.0f, 6.0f);
      case BertActivation::kLeakyRelu:
        return Add(name, "LeakyRelu", {x}, {{"alpha", 0.01f}});
      case BertActivation::kTanh:
        return Add(name, "Tanh", {x});
      case BertActivation::kSigmoid:
        return Add(name, "Sigmoid", {x});
      case BertActivation::kLinear:
        return x;
    }
    SWIZZLE_CHECK(false);
  }

  StatusOr<int> AddLayer(const std::string& name, int x) {
    const int64_t hidden = config_.hidden_size;
    SWIZZLE_ASSIGN_OR_RETURN(x, AddAttention(name + ".attention", x));
    SWIZZLE_ASSIGN_OR_RETURN(const Linear inner, AddLinear(name + ".intermediate.dense", x, hidden, -1));
    const int activated = AddActivation(name + ".intermediate.activation", inner.value);
    SWIZZLE_ASSIGN_OR_RETURN(const Linear outer, AddLinear(name + ".output.dense", activated, inner.outputs, hidden));
    return AddLayerNorm(name + ".output.LayerNorm", Add(name + ".output.residual", "Add", {outer.value, x}), hidden);
  }

  int AddFirstToken(const std::string& name, int hidden_state) {
    const int64_t kFirst = 0;
    const int first = graph_.AddConstant(name + ".first", Tensor::Int64s({}, std::span(&kFirst, 1)));
    return Add(name, "Gather", {hidden_state, first}, {{"axis", int64_t{1}}});
  }

  StatusOr<int> AddPooler(int hidden_state) {
    const int64_t hidden = config_.hidden_size;
    const int token = AddFirstToken("pooler", hidden_state);
    SWIZZLE_ASSIGN_OR_RETURN(const Linear dense, AddLinear("pooler.dense", token, hidden, hidden));
    const int pooled = Add("pooler", "Tanh", {dense.value});
    Output("pooler_output", pooled, {-1, hidden});
    return pooled;
  }

  // What the scores of labels are made of: `pooled`, or what the classifier itself makes of the first token.
  StatusOr<Linear> AddClassifierInput(int hidden_state, int pooled) {
    const int64_t hidden = config_.hidden_size;
    if (config_.classifier == BertClassifier::kPooler) {
      if (pooled == kNoValue) return InvalidArgument("the checkpoint lacks the tensor 'pooler.dense.weight'");
      return Linear{pooled, hidden};
    }
    const bool is_distil = config_.classifier == BertClassifier::kRelu;
    const int token = AddFirstToken("classifier", hidden_state);
    SWIZZLE_ASSIGN_OR_RETURN(Linear dense,
                             AddLinear(is_distil ? "pre_classifier" : "classifier.dense", token, hidden, -1));
    dense.value = config_.classifier == BertClassifier::kGelu
                      ? AddGelu("classifier.activation", dense.value, /*by_tanh=*/false)
                      : Add("classifier.activation", is_distil ? "Relu" : "Tanh", {dense.value});
    return dense;
  }

  Status AddClassifier(int hidden_state, int pooled) {
    SWIZZLE_ASSIGN_OR_RETURN(const Linear input, AddClassifierInput(hidden_state, pooled));
    const bool projects = config_.classifier == BertClassifier::kTanh || config_.classifier == BertClassifier::kGelu;
    const char* const name = projects ? "classifier.out_proj" : "classifier";
    SWIZZLE_ASSIGN_OR_RETURN(const Linear scores, AddLinear(name, input.value, input.outputs, -1));
    Output("logits", scores.value, {-1, scores.outputs});
    return {};
  }

  const BertConfig& config_;
  CheckpointWeights weights_;
  Graph graph_;
  int input_ids_ = kNoValue;
  int mask_ = kNoValue;
  int relative_positions_ = kNoValue;  // [1, heads, sequence, sequence], or none
  std::map<int, Rounded> rounded_;
};

}  // namespace

StatusOr<Graph> BuildBertGraph(const BertConfig& config, CheckpointWeights weights) {
  return BertGraphBuilder(config, std::move(weights)).Build();
}

}  // namespace swizzle

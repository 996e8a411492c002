#include "model_loader/safetensors/bert_graph.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "model_loader/safetensors/encoder_builder.h"
#include "model_loader/safetensors/relative_buckets.h"

namespace swizzle {
namespace {

class BertGraphBuilder : private EncoderBuilder {
 public:
  BertGraphBuilder(const BertConfig& config, CheckpointWeights weights)
      : EncoderBuilder(std::move(weights), config.layer_norm_eps), config_(config) {}

  StatusOr<Graph> Build() {
    input_ids_ = Input("input_ids");
    mask_ = AddMask(Input("attention_mask"));
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
      SWIZZLE_ASSIGN_OR_RETURN(pooled, AddPooler(hidden, config_.hidden_size));
    }
    if (weights_.Has("classifier.weight") || weights_.Has("classifier.out_proj.weight")) {
      SWIZZLE_RETURN_IF_ERROR(AddClassifier(hidden, pooled));
    }
    return Finish();
  }

 private:
  // MPNet's: a bias of each head for how far a key is from its query, the same in all layers, is added to the scores as
  // the mask is. Distances share buckets, the farther the more, which are as T5's (Raffel et al., 2020).
  Status AddRelativePositions() {
    const std::string place = "relative_positions", name = "encoder.relative_attention_bias.weight";
    const int64_t heads = config_.num_attention_heads;
    SWIZZLE_ASSIGN_OR_RETURN(const Tensor by_bucket, weights_.Take(name, {kRelativeBuckets, heads}));
    const std::vector<float> by_distance = BiasesByDistance(by_bucket);
    const auto add = [&](const char* step, const char* op, std::vector<int> inputs) {
      return Add(place + step, op, std::move(inputs), {}, DType::kInt64);
    };
    const int places = AddRange(place, input_ids_);
    const int of_queries = add(".queries", "Unsqueeze", {places, List(place + ".columns", {1})});
    const int of_keys = add(".keys", "Unsqueeze", {places, List(place + ".rows", {0})});
    const int distances = add("", "Sub", {of_keys, of_queries});
    const int moved = add("", "Add", {distances, Number(place + ".middle", kFarthestBucket)});
    const int below = add("", "Min", {moved, Number(place + ".last", 2 * kFarthestBucket)});
    const int bounded = add("", "Max", {below, Number(place + ".least", 0)});
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
    const int length = AddLength("positions", input_ids_);
    const int axis = List("positions.axis", {1});
    return Add("positions", "Slice", {all, List("positions.begin", {0}), length, axis});
  }

  // RoBERTa's: tokens that are not padding count from pad_token_id + 1, padding stays at pad_token_id.
  int AddPositionsPastPadding() {
    const int pad = Number("positions.pad", config_.pad_token_id);
    const int is_padding = Add("positions", "Equal", {input_ids_, pad});
    const int is_token = Add("positions", "Cast", {Add("positions", "Not", {is_padding})}, {{"to", kOnnxInt64}});
    const int count = Add("positions", "CumSum", {is_token, Number("positions.axis", 1)});
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
    const int q = AddHeads(name + ".self.query", query.value, heads, head_size, {0, 2, 1, 3});
    const int k = AddHeads(name + ".self.key", key.value, heads, head_size, {0, 2, 3, 1});
    const int v = AddHeads(name + ".self.value", value.value, heads, head_size, {0, 2, 1, 3});
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
    const int flat = AddJoinedHeads(context, Add(context, "MatMul", {share, v}), rows);
    SWIZZLE_ASSIGN_OR_RETURN(const Linear output, AddLinear(name + ".output.dense", flat, rows, hidden));
    return AddLayerNorm(name + ".output.LayerNorm", Add(name + ".output.residual", "Add", {output.value, x}), hidden);
  }

  StatusOr<int> AddLayer(const std::string& name, int x) {
    const int64_t hidden = config_.hidden_size;
    SWIZZLE_ASSIGN_OR_RETURN(x, AddAttention(name + ".attention", x));
    SWIZZLE_ASSIGN_OR_RETURN(const Linear inner, AddLinear(name + ".intermediate.dense", x, hidden, -1));
    const int activated = AddActivation(name + ".intermediate.activation", inner.value, config_.activation);
    SWIZZLE_ASSIGN_OR_RETURN(const Linear outer, AddLinear(name + ".output.dense", activated, inner.outputs, hidden));
    return AddLayerNorm(name + ".output.LayerNorm", Add(name + ".output.residual", "Add", {outer.value, x}), hidden);
  }

  EncoderActivation ClassifierActivation() const {
    if (config_.classifier == BertClassifier::kGelu) return EncoderActivation::kGelu;
    return config_.classifier == BertClassifier::kRelu ? EncoderActivation::kRelu : EncoderActivation::kTanh;
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
    dense.value = AddActivation("classifier.activation", dense.value, ClassifierActivation());
    return dense;
  }

  Status AddClassifier(int hidden_state, int pooled) {
    SWIZZLE_ASSIGN_OR_RETURN(const Linear input, AddClassifierInput(hidden_state, pooled));
    const bool projects = config_.classifier == BertClassifier::kTanh || config_.classifier == BertClassifier::kGelu;
    return AddLogits(projects ? "classifier.out_proj" : "classifier", input);
  }

  const BertConfig& config_;
  int input_ids_ = kNoValue;
  int mask_ = kNoValue;
  int relative_positions_ = kNoValue;  // [1, heads, sequence, sequence], or none
};

}  // namespace

StatusOr<Graph> BuildEncoderGraph(const BertConfig& config, CheckpointWeights weights) {
  return BertGraphBuilder(config, std::move(weights)).Build();
}

}  // namespace swizzle

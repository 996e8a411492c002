#include "model_loader/safetensors/deberta_graph.h"

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "model_loader/safetensors/encoder_builder.h"

namespace swizzle {
namespace {

class DebertaGraphBuilder : private EncoderBuilder {
 public:
  DebertaGraphBuilder(const DebertaConfig& config, CheckpointWeights weights)
      : EncoderBuilder(std::move(weights), config.layer_norm_eps), config_(config) {}

  StatusOr<Graph> Build() {
    input_ids_ = Input("input_ids");
    const int attention_mask = Input("attention_mask");
    AddPairMask(attention_mask);
    SWIZZLE_ASSIGN_OR_RETURN(int x, AddEmbeddings(attention_mask));
    SWIZZLE_RETURN_IF_ERROR(AddPlaces());
    for (int64_t layer = 0; layer < config_.num_hidden_layers; ++layer) {
      SWIZZLE_ASSIGN_OR_RETURN(x, AddLayer(Concat("encoder.layer.", layer), x));
    }
    Output("last_hidden_state", x, {-1, -1, config_.hidden_size});
    if (config_.classifies) SWIZZLE_RETURN_IF_ERROR(AddClassifier(x));
    return Finish();
  }

 private:
  // Of pairs of tokens that are both there. Queries that are not attend to all alike: transformers computes them so.
  void AddPairMask(int attention_mask) {
    const auto add = [&](const char* place, const char* op, std::vector<int> inputs) {
      return Add(place, op, std::move(inputs), {}, DType::kInt64);
    };
    const int of_keys = add("mask.keys", "Unsqueeze", {attention_mask, List("mask.keys.axes", {1, 2})});
    const int of_queries = add("mask.queries", "Unsqueeze", {attention_mask, List("mask.queries.axes", {1, 3})});
    const int both = add("mask", "Mul", {of_queries, of_keys});
    mask_ = Add("mask", "Cast", {both}, {{"to", kOnnxBool}}, DType::kBool);
    lowest_ = Scalar("mask.lowest", std::numeric_limits<float>::lowest());
  }

  // Those of masked tokens are 0.
  StatusOr<int> AddEmbeddings(int attention_mask) {
    const std::string place = "embeddings", types = place + ".token_type_embeddings";
    const int64_t size = config_.embedding_size, hidden = config_.hidden_size;
    SWIZZLE_ASSIGN_OR_RETURN(const int words, Constant(place + ".word_embeddings.weight", {-1, size}));
    int x = Add(place + ".word_embeddings", "Gather", {words, input_ids_}, {{"axis", int64_t{0}}});
    if (weights_.Has(types + ".weight")) {
      SWIZZLE_ASSIGN_OR_RETURN(const int table, Constant(types + ".weight", {-1, size}));
      x = Add(types, "Add", {x, Add(types, "Gather", {table, Input("token_type_ids")}, {{"axis", int64_t{0}}})});
    }
    if (size != hidden) {
      SWIZZLE_ASSIGN_OR_RETURN(const Linear wide, AddLinear(place + ".embed_proj", x, size, hidden, false));
      x = wide.value;
    }
    SWIZZLE_ASSIGN_OR_RETURN(x, AddLayerNorm(place + ".LayerNorm", x, hidden));
    const int column = Add(place, "Unsqueeze", {attention_mask, List(place + ".column", {2})}, {}, DType::kInt64);
    return Add(place, "Mul", {x, Add(place, "Cast", {column}, {{"to", kOnnxFloat}})});
  }

  // The vectors of places, and which of them each pair has, [1, 1, sequence, sequence]: of a query's products by how
  // far it is behind the key, of a key's by how far it is behind the query.
  Status AddPlaces() {
    const std::string place = "encoder.rel_embeddings";
    const int64_t span = config_.span;
    SWIZZLE_ASSIGN_OR_RETURN(vectors_, Constant(place + ".weight", {2 * span, config_.hidden_size}));
    if (config_.norms_places) {
      SWIZZLE_ASSIGN_OR_RETURN(vectors_, AddLayerNorm("encoder.LayerNorm", vectors_, config_.hidden_size));
    }
    const int range = AddRange(place, input_ids_);
    const int rows = Add(place + ".rows", "Unsqueeze", {range, List(place + ".column", {1})}, {}, DType::kInt64);
    const int columns = Add(place + ".columns", "Unsqueeze", {range, List(place + ".row", {0})}, {}, DType::kInt64);
    const int apart = Add(place, "Sub", {rows, columns}, {}, DType::kInt64);
    const int bucket = config_.in_buckets ? AddBuckets(place + ".buckets", apart) : apart;
    of_queries_ = AddIndex(place + ".of_queries", bucket);
    of_keys_ = AddIndex(place + ".of_keys", Add(place, "Neg", {bucket}, {}, DType::kInt64));
    return {};
  }

  // In FP32 as transformers computes it: up to half of the span each distance has a bucket, then they grow by their
  // logarithm.
  int AddBuckets(const std::string& place, int apart) {
    const auto middle = static_cast<float>(config_.span / 2);
    const int mid = Scalar(place + ".middle", middle);
    const int distance = Add(place + ".distance", "Cast", {apart}, {{"to", kOnnxFloat}});
    const int away = Add(place, "Abs", {distance});
    // What is near is taken as it is: its logarithm is of no use, and may be infinite.
    const int far = Add(place + ".far", "Max", {away, Scalar(place + ".least", middle - 1.0f)});
    const int share = Add(place, "Log", {Add(place + ".ratio", "Div", {far, mid})});
    const float all = std::log(static_cast<float>(config_.farthest - 1) / middle);
    const int grown = Add(place + ".grown", "Div", {share, Scalar(place + ".all", all)});
    const int steps = Add(place, "Ceil", {Add(place, "Mul", {grown, Scalar(place + ".steps", middle - 1.0f)})});
    const int bucket = Add(place, "Add", {steps, mid});
    const int turned = Add(place + ".turned", "Mul", {bucket, Add(place, "Sign", {distance})});
    const int near = Add(place, "LessOrEqual", {away, mid}, {}, DType::kBool);
    return Add(place, "Cast", {Add(place, "Where", {near, distance, turned})}, {{"to", kOnnxInt64}}, DType::kInt64);
  }

  int AddIndex(const std::string& place, int bucket) {
    const auto add = [&](const char* op, std::vector<int> inputs) {
      return Add(place, op, std::move(inputs), {}, DType::kInt64);
    };
    const int moved = add("Add", {bucket, Number(place + ".span", config_.span)});
    const int bounded = add("Min", {moved, Number(place + ".last", 2 * config_.span - 1)});
    const int index = add("Max", {bounded, Number(place + ".first", 0)});
    return add("Unsqueeze", {index, List(place + ".heads", {0, 1})});
  }

  // [heads, head size, places] of what projected the vectors, [places, heads x head size].
  int AddVectors(const std::string& name, int projected) {
    const int64_t heads = config_.num_attention_heads;
    const int split = Add(name, "Reshape", {projected, List(name + ".heads", {-1, heads, config_.head_size()})});
    const int by_head = Add(name, "Transpose", {split}, {{"perm", std::vector<int64_t>{1, 2, 0}}});
    return Add(name, "Unsqueeze", {by_head, List(name + ".batch", {0})});
  }

  // The heads' products with the vectors, at the places that `index` says, as scores have the rows.
  int AddProducts(const std::string& name, int heads, int vectors, int index, int scores) {
    const int products = Add(name, "MatMul", {heads, vectors});
    const int shape = Add(name, "Shape", {scores}, {}, DType::kInt64);
    const int all = Add(name, "Expand", {index, shape}, {}, DType::kInt64);
    return Add(name, "GatherElements", {products, all}, {{"axis", int64_t{-1}}});
  }

  // What a layer makes of its tokens, and of places where these meet it.
  struct Projected {
    int tokens;
    int places = kNoValue;
  };
  StatusOr<Projected> AddProjection(const std::string& name, const std::string& of_places, int x, bool meets) {
    const int64_t hidden = config_.hidden_size;
    if (meets && config_.shares_projections) {
      SWIZZLE_ASSIGN_OR_RETURN(const std::vector<int> both, AddSharedLinear(name, {x, vectors_}, hidden, hidden));
      return Projected{both[0], both[1]};
    }
    SWIZZLE_ASSIGN_OR_RETURN(const Linear tokens, AddLinear(name, x, hidden, hidden));
    if (!meets) return Projected{tokens.value};
    SWIZZLE_ASSIGN_OR_RETURN(const Linear places, AddLinear(of_places, vectors_, hidden, hidden));
    return Projected{tokens.value, places.value};
  }

  StatusOr<int> AddAttention(const std::string& name, int x) {
    const int64_t hidden = config_.hidden_size, size = config_.head_size(), heads = config_.num_attention_heads;
    const std::string self = name + ".self.", q_name = self + "query_proj", k_name = self + "key_proj";
    // Keys are projected as the vectors that queries meet are.
    SWIZZLE_ASSIGN_OR_RETURN(const Projected query, AddProjection(q_name, self + "pos_query_proj", x, config_.of_keys));
    SWIZZLE_ASSIGN_OR_RETURN(const Projected key, AddProjection(k_name, self + "pos_key_proj", x, config_.of_queries));
    SWIZZLE_ASSIGN_OR_RETURN(const Linear value, AddLinear(self + "value_proj", x, hidden, hidden));
    const int q = AddHeads(q_name, query.tokens, heads, size, {0, 2, 1, 3});
    const int k = AddHeads(k_name, key.tokens, heads, size, {0, 2, 1, 3});
    const int v = AddHeads(self + "value_proj", value.value, heads, size, {0, 2, 1, 3});
    const std::string scores = self + "scores", context = self + "context";
    const int turned = Add(scores + ".keys", "Transpose", {k}, {{"perm", std::vector<int64_t>{0, 1, 3, 2}}});
    const int products = Add(scores, "MatMul", {q, turned});
    int sum = products;
    if (config_.of_queries) {
      const std::string place = self + "of_queries";
      const int vectors = AddVectors(place + ".vectors", key.places);
      sum = Add(place, "Add", {sum, AddProducts(place, q, vectors, of_queries_, products)});
    }
    if (config_.of_keys) {
      const std::string place = self + "of_keys";
      const int by_key = AddProducts(place, k, AddVectors(place + ".vectors", query.places), of_keys_, products);
      sum = Add(place, "Add", {sum, Add(place, "Transpose", {by_key}, {{"perm", std::vector<int64_t>{0, 1, 3, 2}}})});
    }
    const int64_t terms = 1 + (config_.of_queries ? 1 : 0) + (config_.of_keys ? 1 : 0);
    const int scaled = Add(scores, "Div", {sum, Scalar(scores + ".root", std::sqrt(static_cast<float>(size * terms)))});
    const int share = Add(scores, "Softmax", {Add(scores, "Where", {mask_, scaled, lowest_})}, {{"axis", int64_t{-1}}});
    const int flat = AddJoinedHeads(context, Add(context, "MatMul", {share, v}), hidden);
    return AddOutput(name + ".output", flat, hidden, x);
  }

  // A linear layer of `from`, added to what the block read.
  StatusOr<int> AddOutput(const std::string& name, int from, int64_t inputs, int x) {
    SWIZZLE_ASSIGN_OR_RETURN(const Linear output, AddLinear(name + ".dense", from, inputs, config_.hidden_size));
    return AddLayerNorm(name + ".LayerNorm", Add(name + ".residual", "Add", {output.value, x}), config_.hidden_size);
  }

  StatusOr<int> AddLayer(const std::string& name, int x) {
    SWIZZLE_ASSIGN_OR_RETURN(x, AddAttention(name + ".attention", x));
    SWIZZLE_ASSIGN_OR_RETURN(const Linear inner, AddLinear(name + ".intermediate.dense", x, config_.hidden_size, -1));
    const int activated = AddActivation(name + ".intermediate.activation", inner.value, config_.activation);
    return AddOutput(name + ".output", activated, inner.outputs, x);
  }

  Status AddClassifier(int hidden_state) {
    const int64_t hidden = config_.hidden_size;
    SWIZZLE_ASSIGN_OR_RETURN(Linear x, AddLinear("pooler.dense", AddFirstToken("pooler", hidden_state), hidden, -1));
    x.value = AddActivation("pooler.activation", x.value, config_.pooler_activation);
    return AddLogits("classifier", x);
  }

  const DebertaConfig& config_;
  int input_ids_ = kNoValue;
  int mask_ = kNoValue, lowest_ = kNoValue;  // [batch, 1, sequence, sequence], and the score of pairs without it
  int vectors_ = kNoValue;                   // [places, hidden size]
  int of_queries_ = kNoValue, of_keys_ = kNoValue;
};

}  // namespace

StatusOr<Graph> BuildEncoderGraph(const DebertaConfig& config, CheckpointWeights weights) {
  return DebertaGraphBuilder(config, std::move(weights)).Build();
}

}  // namespace swizzle

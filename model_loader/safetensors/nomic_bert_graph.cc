#include "model_loader/safetensors/nomic_bert_graph.h"

#include <string>
#include <utility>

#include "model_loader/safetensors/rotary_builder.h"

namespace swizzle {
namespace {

class NomicBertGraphBuilder : private RotaryBuilder {
 public:
  NomicBertGraphBuilder(const NomicBertConfig& config, CheckpointWeights weights)
      : RotaryBuilder(std::move(weights), config.norm_eps), config_(config) {}

  StatusOr<Graph> Build() {
    const int64_t hidden = config_.hidden_size;
    const int input_ids = Input("input_ids");
    mask_ = AddMask(Input("attention_mask"));
    SWIZZLE_ASSIGN_OR_RETURN(int x, AddEmbeddings(input_ids));
    const RotaryOrder order = config_.interleaved ? RotaryOrder::kInterleaved : RotaryOrder::kHalves;
    angles_ = AddAngles("angles", AddRange("positions", input_ids), config_.theta, config_.head_size(), order,
                        {config_.scaling_factor, config_.trained_positions});
    for (int64_t layer = 0; layer < config_.num_hidden_layers; ++layer) {
      SWIZZLE_ASSIGN_OR_RETURN(x, AddLayer(Concat("encoder.layers.", layer), x));
    }
    Output("last_hidden_state", x, {-1, -1, hidden});
    int pooled = kNoValue;
    if (weights_.Has("pooler.dense.weight")) {
      SWIZZLE_ASSIGN_OR_RETURN(pooled, AddPooler(x, hidden));
    }
    if (config_.classifies) {
      if (pooled == kNoValue) return InvalidArgument("the checkpoint lacks the tensor 'pooler.dense.weight'");
      SWIZZLE_RETURN_IF_ERROR(AddLogits("classifier", {pooled, hidden}));
    }
    return Finish();
  }

 private:
  StatusOr<int> AddEmbeddings(int input_ids) {
    const int64_t hidden = config_.hidden_size;
    SWIZZLE_ASSIGN_OR_RETURN(const int words, Constant("embeddings.word_embeddings.weight", {-1, hidden}));
    int sum = Add("embeddings.word_embeddings", "Gather", {words, input_ids}, {{"axis", int64_t{0}}});
    const std::string types = "embeddings.token_type_embeddings";
    if (weights_.Has(types + ".weight")) {
      SWIZZLE_ASSIGN_OR_RETURN(const int table, Constant(types + ".weight", {-1, hidden}));
      sum = Add(types, "Add", {sum, Add(types, "Gather", {table, Input("token_type_ids")}, {{"axis", int64_t{0}}})});
    }
    return AddLayerNorm("emb_ln", sum, hidden);
  }

  StatusOr<int> AddLayer(const std::string& name, int x) {
    const int64_t hidden = config_.hidden_size;
    SWIZZLE_ASSIGN_OR_RETURN(const int seen, AddAttention(name + ".attn", x));
    SWIZZLE_ASSIGN_OR_RETURN(x, AddLayerNorm(name + ".norm1", Add(name + ".attn.residual", "Add", {seen, x}), hidden));
    SWIZZLE_ASSIGN_OR_RETURN(const int made, AddPerceptron(name + ".mlp", x));
    return AddLayerNorm(name + ".norm2", Add(name + ".mlp.residual", "Add", {made, x}), hidden);
  }

  StatusOr<int> AddAttention(const std::string& name, int x) {
    const int64_t hidden = config_.hidden_size, head_size = config_.head_size();
    SWIZZLE_ASSIGN_OR_RETURN(const Linear all, AddLinear(name + ".Wqkv", x, hidden, -1, config_.attention_bias));
    SWIZZLE_ASSIGN_OR_RETURN(const PackedHeads heads, AddPackedHeads(name + ".Wqkv", all, head_size));
    const int query = AddRotation(name + ".query", heads.query, angles_);
    const int key = AddRotation(name + ".key", heads.key, angles_);
    const int64_t rows = all.outputs / 3;
    const int seen = AddScaledAttention(name, {query, key, heads.value}, mask_, head_size);
    const int joined = AddJoinedHeads(name + ".context", seen, rows);
    SWIZZLE_ASSIGN_OR_RETURN(const Linear output,
                             AddLinear(name + ".out_proj", joined, rows, hidden, config_.attention_bias));
    return output.value;
  }

  StatusOr<int> AddPerceptron(const std::string& name, int x) {
    const int64_t hidden = config_.hidden_size;
    const std::string active = name + (config_.is_gated ? ".fc12" : ".fc1");
    int64_t units = -1;
    int made = kNoValue;
    if (config_.is_gated) {
      SWIZZLE_ASSIGN_OR_RETURN(const Linear gated, AddLinear(name + ".fc11", x, hidden, -1, config_.inner_bias));
      units = gated.outputs;
      made = gated.value;
    }
    SWIZZLE_ASSIGN_OR_RETURN(const Linear inner, AddLinear(active, x, hidden, units, config_.inner_bias));
    const int activated = AddActivation(name + ".act", inner.value, config_.activation);
    const int read = config_.is_gated ? Add(name, "Mul", {made, activated}) : activated;
    SWIZZLE_ASSIGN_OR_RETURN(const Linear outer,
                             AddLinear(name + ".fc2", read, inner.outputs, hidden, config_.outer_bias));
    return outer.value;
  }

  const NomicBertConfig& config_;
  int mask_ = kNoValue;
  Angles angles_{};
};

}  // namespace

StatusOr<Graph> BuildEncoderGraph(const NomicBertConfig& config, CheckpointWeights weights) {
  return NomicBertGraphBuilder(config, std::move(weights)).Build();
}

}  // namespace swizzle

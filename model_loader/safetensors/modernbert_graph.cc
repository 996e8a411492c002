#include "model_loader/safetensors/modernbert_graph.h"

#include <string>
#include <utility>
#include <vector>

#include "model_loader/safetensors/rotary_builder.h"

namespace swizzle {
namespace {

class ModernBertGraphBuilder : private RotaryBuilder {
 public:
  ModernBertGraphBuilder(const ModernBertConfig& config, CheckpointWeights weights)
      : RotaryBuilder(std::move(weights), config.norm_eps), config_(config) {}

  StatusOr<Graph> Build() {
    const int64_t hidden = config_.hidden_size;
    const int input_ids = Input("input_ids");
    attention_mask_ = Input("attention_mask");
    SWIZZLE_ASSIGN_OR_RETURN(const int words, Constant("embeddings.tok_embeddings.weight", {-1, hidden}));
    int x = Add("embeddings.tok_embeddings", "Gather", {words, input_ids}, {{"axis", int64_t{0}}});
    SWIZZLE_ASSIGN_OR_RETURN(x, AddNorm("embeddings.norm", x));
    const int positions = AddRange("positions", input_ids);
    global_ = {AddMask(attention_mask_), AddAngles("angles.global", positions, config_.global_theta, HeadSize())};
    local_ = {AddWindow("window", positions, config_.reach, global_.mask),
              AddAngles("angles.local", positions, config_.local_theta, HeadSize())};
    for (size_t layer = 0; layer < config_.is_local.size(); ++layer) {
      SWIZZLE_ASSIGN_OR_RETURN(x, AddLayer(layer, x));
    }
    SWIZZLE_ASSIGN_OR_RETURN(x, AddNorm("final_norm", x));
    Output("last_hidden_state", x, {-1, -1, hidden});
    if (config_.classifies) SWIZZLE_RETURN_IF_ERROR(AddClassifier(x));
    return Finish();
  }

 private:
  int64_t HeadSize() const { return config_.head_size(); }

  StatusOr<int> AddNorm(const std::string& name, int x) {
    return AddLayerNorm(name, x, config_.hidden_size, config_.norm_bias);
  }

  // The first layer's attention reads what the embeddings' norm made.
  StatusOr<int> AddLayer(size_t layer, int x) {
    const std::string name = Concat("layers.", layer);
    int normed = x;
    if (layer > 0) {
      SWIZZLE_ASSIGN_OR_RETURN(normed, AddNorm(name + ".attn_norm", x));
    }
    const Sight& sight = config_.is_local[layer] ? local_ : global_;
    SWIZZLE_ASSIGN_OR_RETURN(const int seen, AddAttention(name + ".attn", normed, sight));
    x = Add(name + ".attn.residual", "Add", {x, seen});
    SWIZZLE_ASSIGN_OR_RETURN(normed, AddNorm(name + ".mlp_norm", x));
    SWIZZLE_ASSIGN_OR_RETURN(const int made, AddPerceptron(name + ".mlp", normed));
    return Add(name + ".mlp.residual", "Add", {x, made});
  }

  // What a layer sees, and the angles of positions in it.
  struct Sight {
    int mask;
    Angles angles;
  };

  StatusOr<int> AddAttention(const std::string& name, int x, const Sight& sight) {
    const int64_t hidden = config_.hidden_size;
    SWIZZLE_ASSIGN_OR_RETURN(const Linear all, AddLinear(name + ".Wqkv", x, hidden, -1, config_.attention_bias));
    SWIZZLE_ASSIGN_OR_RETURN(const PackedHeads heads, AddPackedHeads(name + ".Wqkv", all, HeadSize()));
    const int query = AddRotation(name + ".query", heads.query, sight.angles);
    const int key = AddRotation(name + ".key", heads.key, sight.angles);
    const int seen = AddScaledAttention(name, {query, key, heads.value}, sight.mask, HeadSize());
    const int64_t rows = all.outputs / 3;
    const int joined = AddJoinedHeads(name + ".context", seen, rows);
    SWIZZLE_ASSIGN_OR_RETURN(const Linear output,
                             AddLinear(name + ".Wo", joined, rows, hidden, config_.attention_bias));
    return output.value;
  }

  // One product makes what is activated and what gates it.
  StatusOr<int> AddPerceptron(const std::string& name, int x) {
    const int64_t hidden = config_.hidden_size;
    SWIZZLE_ASSIGN_OR_RETURN(const Linear both, AddLinear(name + ".Wi", x, hidden, -1, config_.mlp_bias));
    if (both.outputs % 2 != 0) {
      return InvalidArgument("the tensor '", name, ".Wi.weight' has ", both.outputs,
                             " rows, of which one half cannot gate the other");
    }
    const int64_t inner = both.outputs / 2;
    const std::vector<int> halves = AddSplit(name, both.value, {inner, inner}, -1);
    const int activated = AddActivation(name + ".act", halves[0], config_.activation);
    const int gated = Add(name, "Mul", {activated, halves[1]});
    SWIZZLE_ASSIGN_OR_RETURN(const Linear output, AddLinear(name + ".Wo", gated, inner, hidden, config_.mlp_bias));
    return output.value;
  }

  Status AddClassifier(int hidden_state) {
    const int64_t hidden = config_.hidden_size;
    const bool first = config_.pooling == ClassifierPooling::kFirst;
    const int pooled =
        first ? AddFirstToken("head", hidden_state) : AddMeanToken("head", hidden_state, attention_mask_);
    SWIZZLE_ASSIGN_OR_RETURN(Linear x, AddLinear("head.dense", pooled, hidden, hidden, config_.classifier_bias));
    x.value = AddActivation("head.act", x.value, config_.classifier_activation);
    SWIZZLE_ASSIGN_OR_RETURN(x.value, AddNorm("head.norm", x.value));
    return AddLogits("classifier", x);
  }

  const ModernBertConfig& config_;
  int attention_mask_ = kNoValue;
  Sight global_{}, local_{};
};

}  // namespace

StatusOr<Graph> BuildEncoderGraph(const ModernBertConfig& config, CheckpointWeights weights) {
  return ModernBertGraphBuilder(config, std::move(weights)).Build();
}

}  // namespace swizzle

#include "model_loader/safetensors/qwen_graph.h"

#include <string>
#include <utility>
#include <vector>

#include "model_loader/safetensors/rotary_builder.h"

namespace swizzle {
namespace {

class QwenGraphBuilder : private RotaryBuilder {
 public:
  QwenGraphBuilder(const QwenConfig& config, CheckpointWeights weights)
      : RotaryBuilder(std::move(weights), config.norm_eps), config_(config) {}

  StatusOr<Graph> Build() {
    const int64_t hidden = config_.hidden_size;
    const int input_ids = Input("input_ids");
    SWIZZLE_ASSIGN_OR_RETURN(const int words, Constant("embed_tokens.weight", {-1, hidden}));
    int x = Add("embed_tokens", "Gather", {words, input_ids}, {{"axis", int64_t{0}}});
    const int positions = AddRange("positions", input_ids);
    mask_ = AddMask(Input("attention_mask"));
    if (config_.is_causal) mask_ = AddCausal("causal", positions, mask_);
    angles_ = AddAngles("angles", positions, config_.theta, config_.head_size);
    for (int64_t layer = 0; layer < config_.num_hidden_layers; ++layer) {
      SWIZZLE_ASSIGN_OR_RETURN(x, AddLayer(Concat("layers.", layer), x));
    }
    SWIZZLE_ASSIGN_OR_RETURN(x, AddRootMeanSquareNorm("norm", x, hidden));
    Output("last_hidden_state", x, {-1, -1, hidden});
    return Finish();
  }

 private:
  StatusOr<int> AddLayer(const std::string& name, int x) {
    const int64_t hidden = config_.hidden_size;
    SWIZZLE_ASSIGN_OR_RETURN(int normed, AddRootMeanSquareNorm(name + ".input_layernorm", x, hidden));
    SWIZZLE_ASSIGN_OR_RETURN(const int seen, AddAttention(name + ".self_attn", normed));
    x = Add(name + ".self_attn.residual", "Add", {x, seen});
    SWIZZLE_ASSIGN_OR_RETURN(normed, AddRootMeanSquareNorm(name + ".post_attention_layernorm", x, hidden));
    SWIZZLE_ASSIGN_OR_RETURN(const int made, AddPerceptron(name + ".mlp", normed));
    return Add(name + ".mlp.residual", "Add", {x, made});
  }

  // A linear layer's heads, [batch, heads, sequence, size], and how many there are.
  struct Heads {
    int value;
    int64_t count;
  };

  // `norm` is empty for none.
  StatusOr<Heads> AddOwnHeads(const std::string& name, int x, int64_t rows, const std::string& norm) {
    const int64_t size = config_.head_size;
    SWIZZLE_ASSIGN_OR_RETURN(const Linear all, AddLinear(name, x, config_.hidden_size, rows, config_.input_bias));
    if (all.outputs % size != 0) {
      return InvalidArgument("the tensor '", name, ".weight' has ", all.outputs, " rows, which are no whole heads of ",
                             size);
    }
    const int64_t count = all.outputs / size;
    int heads = Add(name, "Reshape", {all.value, List(name + ".heads", {0, 0, count, size})});
    if (!norm.empty()) {
      SWIZZLE_ASSIGN_OR_RETURN(heads, AddRootMeanSquareNorm(norm, heads, size));
    }
    return Heads{Add(name, "Transpose", {heads}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}}), count};
  }

  StatusOr<int> AddAttention(const std::string& name, int x) {
    const int64_t size = config_.head_size;
    const auto norm = [&](const char* norm_name) { return config_.norms_heads ? name + norm_name : std::string(); };
    SWIZZLE_ASSIGN_OR_RETURN(const Heads queries, AddOwnHeads(name + ".q_proj", x, -1, norm(".q_norm")));
    SWIZZLE_ASSIGN_OR_RETURN(const Heads keys, AddOwnHeads(name + ".k_proj", x, -1, norm(".k_norm")));
    SWIZZLE_ASSIGN_OR_RETURN(const Heads values, AddOwnHeads(name + ".v_proj", x, keys.count * size, ""));
    if (queries.count % keys.count != 0) {
      return InvalidArgument("the tensor '", name, ".q_proj.weight' has ", queries.count, " heads, which ", keys.count,
                             " of keys cannot share evenly");
    }
    const int query = AddRotation(name + ".query", queries.value, angles_);
    const int key = AddRepeatedHeads(name + ".key.repeated", AddRotation(name + ".key", keys.value, angles_),
                                     keys.count, queries.count);
    const int value = AddRepeatedHeads(name + ".value.repeated", values.value, keys.count, queries.count);
    const int seen = AddScaledAttention(name, {query, key, value}, mask_, size);
    const int64_t rows = queries.count * size;
    SWIZZLE_ASSIGN_OR_RETURN(const Linear output,
                             AddLinear(name + ".o_proj", AddJoinedHeads(name + ".context", seen, rows), rows,
                                       config_.hidden_size, config_.output_bias));
    return output.value;
  }

  // Each of `from` heads as often as it takes to have `to` of them.
  int AddRepeatedHeads(const std::string& name, int x, int64_t from, int64_t to) {
    if (from == to) return x;
    const int apart = Add(name, "Unsqueeze", {x, List(name + ".axis", {2})});
    const int repeated = Add(name, "Expand", {apart, List(name + ".shape", {1, 1, to / from, 1, 1})});
    return Add(name, "Reshape", {repeated, List(name + ".heads", {0, to, -1, config_.head_size})});
  }

  StatusOr<int> AddPerceptron(const std::string& name, int x) {
    const int64_t hidden = config_.hidden_size;
    SWIZZLE_ASSIGN_OR_RETURN(const Linear gate, AddLinear(name + ".gate_proj", x, hidden, -1, /*has_bias=*/false));
    const int activated = AddActivation(name + ".act", gate.value, config_.activation);
    SWIZZLE_ASSIGN_OR_RETURN(const Linear made, AddLinear(name + ".up_proj", x, hidden, gate.outputs, false));
    const int gated = Add(name, "Mul", {activated, made.value});
    SWIZZLE_ASSIGN_OR_RETURN(const Linear output, AddLinear(name + ".down_proj", gated, gate.outputs, hidden, false));
    return output.value;
  }

  const QwenConfig& config_;
  int mask_ = kNoValue;
  Angles angles_{};
};

}  // namespace

StatusOr<Graph> BuildEncoderGraph(const QwenConfig& config, CheckpointWeights weights) {
  return QwenGraphBuilder(config, std::move(weights)).Build();
}

}  // namespace swizzle

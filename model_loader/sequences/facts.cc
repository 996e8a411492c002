#include "model_loader/sequences/facts.h"

namespace swizzle::sequences {
namespace {

constexpr float kExcludes = -1e4f;

// Whether it is attention to whose scores numbers by distance are added that exclude all keys behind a query.
bool IsCausal(const Graph& graph, const Node& node) {
  if (node.op != "BiasedAttention") return false;
  const auto length = IntAttribute(node, "length", 0), reach = IntAttribute(node, "reach", 0);
  if (!length.ok() || *length != 0 || !reach.ok()) return false;
  const Tensor& biases = *graph.values[node.inputs[3]].constant;
  const int64_t columns = biases.shape[1];
  for (int64_t i = 0; i < biases.elements(); ++i) {
    const bool is_behind = i % columns > *reach;
    if (is_behind && !(biases.floats()[static_cast<size_t>(i)] <= kExcludes)) return false;
  }
  return columns == 2 * *reach + 1 && *reach > 0;
}

}  // namespace

Status SequenceFacts::ReadAsMask(const Graph& graph, int input) {
  if (sequences_.mask != kNoValue && sequences_.mask != input) {
    return Unimplemented("two inputs are read as masks, '", graph.values[input].name, "' and '",
                         graph.values[sequences_.mask].name, "'");
  }
  sequences_.mask = input;
  return {};
}

Status SequenceFacts::AttendWithMask(const Graph& graph, int input, float bias) {
  SWIZZLE_RETURN_IF_ERROR(ReadAsMask(graph, input));
  if (masks_attention_ && bias != sequences_.masked_bias) {
    return Unimplemented("its mask's bias is not that of the others");
  }
  sequences_.masked_bias = bias;
  masks_attention_ = true;
  return {};
}

Status SequenceFacts::CountTokens(int input, int64_t padding) {
  const bool other = sequences_.counted != kNoValue && (sequences_.counted != input || sequences_.padding != padding);
  if (other) return Unimplemented("its positions count other tokens than those of another table");
  sequences_.counted = input;
  sequences_.padding = padding;
  return {};
}

Status SequenceFacts::TakeMaskedMean(const Graph& graph, int input) {
  masked_mean_ = true;
  return ReadAsMask(graph, input);
}

Status SequenceFacts::ReadMaskedTokens(const Graph& graph, int input) {
  masked_tokens_ = true;
  return ReadAsMask(graph, input);
}

Status SequenceFacts::EndAt(int input, bool at_largest, int64_t number) {
  const bool other = sequences_.ends != kNoValue && (sequences_.ends != input || sequences_.end_id != number ||
                                                     sequences_.ends_at_largest != at_largest);
  if (other) return Unimplemented("its sequences are read at two ends");
  sequences_.ends = input;
  sequences_.ends_at_largest = at_largest;
  sequences_.end_id = number;
  return {};
}

Status SequenceFacts::CheckEnds(const Graph& graph) const {
  if (sequences_.ends == kNoValue) return {};
  if (sequences_.ends == sequences_.mask) return Unimplemented("sequences are read at ends that their mask tells");
  if (masked_mean_ || plain_mean_ || later_token_ || masked_tokens_) {
    return Unimplemented("sequences are read at their ends and elsewhere");
  }
  for (const GraphOutput& output : graph.outputs) {
    if (graph.values[output.value].per_token) {
      return Unimplemented("sequences are read at their ends, but output '", output.name, "' is of all tokens");
    }
  }
  for (const Node& node : graph.nodes) {
    const bool mixes = node.op.ends_with("Attention") || node.op == "PermuteTokens";
    if (mixes && !IsCausal(graph, node)) {
      return Unimplemented("sequences are read at their ends, but tokens attend to what is behind these");
    }
  }
  return {};
}

Status SequenceFacts::Finish(const Graph& graph) {
  for (const int input : ids_) {
    if (input == sequences_.mask) {
      return Unimplemented("input '", graph.values[input].name, "' is read both as ids and as a mask");
    }
  }
  if (plain_positions_ && sequences_.counted != kNoValue) {
    return Unimplemented("some positions count tokens that are not padding, and some count all");
  }
  if (permutes_ && sequences_.mask != kNoValue) {
    return Unimplemented("tokens are put into another order, and a mask may leave some out");
  }
  if (masks_attention_ && plain_attention_) return Unimplemented("some attention is masked and some is not");
  if (masked_mean_ && !masks_attention_) return Unimplemented("the mean of tokens is masked, attention is not");
  if (plain_mean_ && sequences_.mask != kNoValue) {
    return Unimplemented("attention is masked, but the mean of tokens is of masked ones too");
  }
  sequences_.skips_masked = masks_attention_ && sequences_.masked_bias <= kExcludes;
  if (masked_tokens_ && !sequences_.skips_masked) {
    return Unimplemented("tokens are multiplied by the mask, and attention does not leave masked ones out");
  }
  if (masked_tokens_ && later_token_) {
    return Unimplemented("tokens are multiplied by the mask, and one is read that may be masked");
  }
  return CheckEnds(graph);
}

}  // namespace swizzle::sequences

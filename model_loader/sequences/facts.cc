#include "model_loader/sequences/facts.h"

namespace swizzle::sequences {

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

Status SequenceFacts::Finish(const Graph& graph) {
  for (const int input : ids_) {
    if (input == sequences_.mask) {
      return Unimplemented("input '", graph.values[input].name, "' is read both as ids and as a mask");
    }
  }
  if (plain_positions_ && sequences_.counted != kNoValue) {
    return Unimplemented("some positions count tokens that are not padding, and some count all");
  }
  if (masks_attention_ && plain_attention_) return Unimplemented("some attention is masked and some is not");
  if (masked_mean_ && !masks_attention_) return Unimplemented("the mean of tokens is masked, attention is not");
  if (plain_mean_ && sequences_.mask != kNoValue) {
    return Unimplemented("attention is masked, but the mean of tokens is of masked ones too");
  }
  constexpr float kExcludes = -1e4f;
  sequences_.skips_masked = masks_attention_ && sequences_.masked_bias <= kExcludes;
  if (masked_tokens_ && !sequences_.skips_masked) {
    return Unimplemented("tokens are multiplied by the mask, and attention does not leave masked ones out");
  }
  if (masked_tokens_ && later_token_) {
    return Unimplemented("tokens are multiplied by the mask, and one is read that may be masked");
  }
  return {};
}

}  // namespace swizzle::sequences

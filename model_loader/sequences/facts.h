// What a graph says of its sequences as a whole: which input masks tokens, what the mask does, and what reads tokens
// that it leaves out. Internal to the recogniser (recognise.h). Single-owner.
#ifndef SWIZZLE_MODEL_LOADER_SEQUENCES_FACTS_H_
#define SWIZZLE_MODEL_LOADER_SEQUENCES_FACTS_H_

#include <algorithm>
#include <vector>

#include "model_loader/graph/graph.h"

namespace swizzle::sequences {

class SequenceFacts {
 public:
  explicit SequenceFacts(const GraphSequences& declared) : sequences_(declared) {}

  const GraphSequences& sequences() const { return sequences_; }

  // Inputs are those of `graph`, the canonical one. UNIMPLEMENTED where what is seen contradicts what was seen before;
  // messages go behind a node's name.
  void ReadAsIds(int input) { ids_.push_back(input); }
  Status ReadAsMask(const Graph& graph, int input);
  Status AttendWithMask(const Graph& graph, int input, float bias);
  void AttendWithoutMask() { plain_attention_ = true; }
  // Positions of one network are all counted (GraphSequences::counted) or none is.
  Status CountTokens(int input, int64_t padding);
  void ReadPositions() { plain_positions_ = true; }
  void BoundLength(int64_t longest) {
    sequences_.longest = sequences_.longest == 0 ? longest : std::min(sequences_.longest, longest);
  }
  Status TakeMaskedMean(const Graph& graph, int input);
  void TakePlainMean() { plain_mean_ = true; }
  // Tokens times the mask, whose masked ones nothing reads but what is left out.
  Status ReadMaskedTokens(const Graph& graph, int input);
  // Tokens are put into another order, for which all have to be there.
  void PermuteTokens() { permutes_ = true; }
  // A token that is not the first, which the mask may leave out.
  void ReadLaterToken() { later_token_ = true; }
  // Sequences are read at their ends alone (GraphSequences::ends).
  Status EndAt(int input, bool at_largest, int64_t number);

  // Once all nodes are seen: whether that goes together, and whether masked tokens may be left out.
  Status Finish(const Graph& graph);

 private:
  // Whether nothing that is read depends on what stands behind the ends.
  Status CheckEnds(const Graph& graph) const;

  GraphSequences sequences_;
  std::vector<int> ids_;
  bool masks_attention_ = false, plain_attention_ = false;
  bool masked_mean_ = false, plain_mean_ = false;
  bool plain_positions_ = false, permutes_ = false;
  bool masked_tokens_ = false, later_token_ = false;
};

}  // namespace swizzle::sequences

#endif  // SWIZZLE_MODEL_LOADER_SEQUENCES_FACTS_H_

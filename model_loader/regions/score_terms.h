// What attention adds to its scores before softmax: numbers, a condition that leaves keys out, and products of queries
// or keys with vectors of relative places, of which an index names one for each pair (DeBERTa). Their sum is one array,
// which attention reads as its bias.
#ifndef SWIZZLE_MODEL_LOADER_REGIONS_SCORE_TERMS_H_
#define SWIZZLE_MODEL_LOADER_REGIONS_SCORE_TERMS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kernels/backend/backend.h"
#include "kernels/cpu/tokens/view_attention.h"
#include "model_loader/interpreter/values/array.h"

namespace swizzle::regions {

using Order = std::vector<size_t>;  // dimension i of a view is the tensor's order[i]

Shape Permuted(const Shape& shape, const Order& order);

// Of a dense tensor's dimensions, of which the two last are [tokens, channels]. Nothing unless channels are neighbours.
template <typename Float>
std::optional<cpu::TokenView<Float>> ViewOf(const Shape& shape, const Shape& strides) {
  const size_t rank = shape.size();
  if (shape[rank - 1] > 1 && strides[rank - 1] != 1) return std::nullopt;
  cpu::TokenView<Float> view;
  view.token_stride = strides[rank - 2];
  if (rank > 2) view.head_stride = strides[rank - 3];
  if (rank > 3) view.sequence_stride = strides[rank - 4];
  return view;
}

// Value type.
struct ScoreTerm {
  enum class Kind : uint8_t {
    kNumbers,          // one input, which broadcasts to the scores, or is by turns
    kCondition,        // likewise, of truth values: nothing where it is `keeps`, else `number`
    kPlacesOfQueries,  // inputs tokens, places [..., channels, places], index: token q times place index[q, k]
    kPlacesOfKeys,     // the same: token k times place index[k, q]
  };
  Kind kind = Kind::kNumbers;
  float number = 1.0f;  // a factor, but for conditions
  bool keeps = true;
  // Numbers [1, turns, heads or 1, queries or 1, keys]: sequences have those of a turn each, again and again, as the
  // windows of each image have masks (Swin). Else they broadcast to the scores.
  bool by_turns = false;
  Order order;            // of tokens, as the product reads them
  bool expanded = false;  // whether an index of fewer sequences or heads is the same for all

  bool HasPlaces() const { return kind == Kind::kPlacesOfQueries || kind == Kind::kPlacesOfKeys; }
  size_t inputs() const { return HasPlaces() ? 3 : 1; }
};

// The terms' sum for scores of this shape, [..., queries, keys] of 2 to 4 dimensions: of as many dimensions, of 1 where
// it does not vary, but for the last, and of a turn's sequences where it varies by turns alone. What is finite stays
// so. `inputs` are those of all terms. Nothing where the terms do not take them.
StatusOr<std::optional<interpreter::Array>> SumTerms(std::span<const ScoreTerm> terms,
                                                     std::span<const interpreter::Array> inputs, const Shape& scores,
                                                     interpreter::Memory& memory, Stream& stream);

// Whether they take inputs of these types and shapes.
bool TakeTerms(std::span<const ScoreTerm> terms, std::span<const DType> types, std::span<const Shape> shapes,
               const Shape& scores);

}  // namespace swizzle::regions

#endif  // SWIZZLE_MODEL_LOADER_REGIONS_SCORE_TERMS_H_

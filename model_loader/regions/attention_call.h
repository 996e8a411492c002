// A call of attention between a program's layers: which dimensions of its inputs are sequences, heads, tokens and
// channels, and what is added to its scores.
#ifndef SWIZZLE_MODEL_LOADER_REGIONS_ATTENTION_CALL_H_
#define SWIZZLE_MODEL_LOADER_REGIONS_ATTENTION_CALL_H_

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "model_loader/interpreter/run/executor.h"
#include "model_loader/regions/score_terms.h"

namespace swizzle::regions {

// Inputs of a call, in this order; the last may be missing. Of a part, those of its terms stand in its place.
enum Input : size_t { kQueries, kKeys, kValues, kBias };

// A tensor read in another order, or one of its slices: dimension `fixed.dimension` at `fixed.index`, which may count
// from the end. Value type.
struct View {
  struct Fixed {
    size_t dimension = 0;
    int64_t index = 0;
  };
  Order order;               // of what is left
  std::vector<Fixed> fixed;  // dimensions that are not in the order

  size_t rank() const { return order.size() + fixed.size(); }  // of the tensor
};

// Where a product's operands and result are. Value type.
struct Views {
  View queries, keys, values;  // as the products read them: keys are [..., channels, tokens]
  Order output;                // of what the products make: dimension i of the output is theirs order[i]
  float scale = 1.0f;
  std::vector<ScoreTerm> terms;

  // Whether what is added to scores is an input as it is.
  bool AddsInput() const { return terms.size() == 1 && AddsNumbers() && !terms[0].by_turns; }
  // Whether nothing but inputs as they are.
  bool AddsNumbers() const {
    return std::ranges::all_of(
        terms, [](const ScoreTerm& term) { return term.kind == ScoreTerm::Kind::kNumbers && term.number == 1.0f; });
  }
  bool HasTurns() const { return std::ranges::any_of(terms, &ScoreTerm::by_turns); }
};

// Whether a call takes inputs of these types and shapes.
bool Takes(const Views& views, std::span<const DType> types, const std::vector<Shape>& shapes);

// The call, which takes no inputs that broadcast along sequences or heads, but for what is added.
std::shared_ptr<const interpreter::Part> MakeAttention(Views views);

}  // namespace swizzle::regions

#endif  // SWIZZLE_MODEL_LOADER_REGIONS_ATTENTION_CALL_H_

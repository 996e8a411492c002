// Every operator of ONNX and of com.microsoft that models may hold, in one table: what is read of it, and what the
// optimised plan, the recogniser of token sequences and the fallback make of it.
//
// The functions that do it lie in their folders, by the same names: passes/canonicalise.cc, sequences/handlers.cc and
// fallback/functions.cc; tests hold them against the columns. model_loader/OPERATORS.md shows the table.
#ifndef SWIZZLE_MODEL_LOADER_GRAPH_OPERATOR_TABLE_H_
#define SWIZZLE_MODEL_LOADER_GRAPH_OPERATOR_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "model_loader/graph/operators.h"

namespace swizzle {

// What the passes make of it.
enum class PlanUse : uint8_t {
  kNone,      // it is not read
  kRemoved,   // it disappears before all else
  kFolded,    // computed when the model is loaded, of constants and shapes only
  kComputed,  // canonical operators, or folded where its inputs are known
};

// What the recogniser of token sequences makes of it, beside folding it.
enum class SequenceUse : uint8_t {
  kNone,       // nothing: its results are unknown
  kRemoved,    // it disappears before all else
  kByElement,  // a function of each element (semantics/point_function.h)
  kByForm,     // a function of its own that knows forms of values (sequences/handlers.h)
};

// What is known of a result's rows, given inputs of which each row (the slice along the dimension of the batch, mostly
// dimension 0) is one request's. fallback/batch_proof.h says what follows.
enum class RowRule : uint8_t {
  kUnknown,      // nothing
  kElementwise,  // inputs broadcast; each element depends on the same element of each
  kFirstInput,   // row i depends on row i of input 0 alone; the other inputs are the same for all
  kAxis,         // as kFirstInput, if attribute "axis", or the axes, don't include dimension 0
  kProduct,      // MatMul
  kMoved,        // Reshape, Concat, Slice, Gather and the like: as elements are moved
  kAllInputs,    // row i depends on row i of each input
  kEquation,     // Einsum: as its labels are
  kRecurrent,    // LSTM and its kin: as the layout says
  kShared,       // the same for all, where inputs are; ScatterND and the like are as large as their first
};

struct FallbackUse {
  int64_t first_opset = 0;  // from which it runs; 0: it doesn't
  int64_t last_opset = 0;   // in which the operator exists; 0: still there
  RowRule rows = RowRule::kUnknown;
  bool takes_any_value = false;  // sequences and strings, too

  bool Runs() const { return first_opset != 0; }
};

// What the elements of an operator's inputs decide, where their shapes alone don't. Every row has to say it, which is
// why there is no default: results whose sizes were wrongly taken to follow from shapes would be kept, and recorded,
// for inputs that make others.
class ElementUse {
 public:
  // `sizes`: the inputs whose elements say how large a result is, in bits, of which the last stands for all that
  // follow. `results`: whether elements of results depend on those of any input.
  constexpr explicit ElementUse(uint32_t sizes, bool results = true) : sizes_(sizes), results_(results) {}

  constexpr bool DecidesSizes(size_t input) const { return (sizes_ >> (input < 31 ? input : 31) & 1) != 0; }
  constexpr bool DecidesResults() const { return results_; }

 private:
  uint32_t sizes_;
  bool results_;
};

struct OnnxOperator {
  OperatorSpec spec;
  PlanUse plan;
  SequenceUse sequences;
  FallbackUse fallback;
  ElementUse elements;
  bool is_expanded = false;  // the reader writes it out where the columns do not take it (expansions/expand.h)
};

// Sorted by domain and name.
std::span<const OnnxOperator> OnnxOperators();

// Null if there is none.
const OnnxOperator* FindOnnxOperator(std::string_view domain, std::string_view op);

// What may be read for a plan, canonical operators included; likewise of a model of token sequences, whose nodes may be
// of any kind where nothing reads them; and for the fallback. Null if there is no such operator.
const OperatorSpec* FindOperator(std::string_view domain, std::string_view op);
const OperatorSpec* FindSequenceOperator(std::string_view domain, std::string_view op);
const OperatorSpec* FindFallbackOperator(std::string_view domain, std::string_view op);
// Of those that may be written out.
const OperatorSpec* FindExpandedOperator(std::string_view domain, std::string_view op);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_GRAPH_OPERATOR_TABLE_H_

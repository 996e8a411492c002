// Every operator of ONNX and of com.microsoft that models may hold, in one table: what is read of it, and what the
// optimised plan, the recogniser of token sequences and the interpreter make of it.
//
// The functions that do it lie in their folders, by the same names: passes/canonicalise.cc, sequences/handlers.cc and
// interpreter/operators/functions.cc; tests hold them against the columns. model_loader/OPERATORS.md shows the table.
#ifndef SWIZZLE_MODEL_LOADER_GRAPH_OPERATOR_TABLE_H_
#define SWIZZLE_MODEL_LOADER_GRAPH_OPERATOR_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "kernels/base/dtype.h"
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
// dimension 0) is one request's. shapes/batch_proof.h says what follows.
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

struct InterpreterUse {
  int64_t first_opset = 0;  // from which it runs; 0: it doesn't
  int64_t last_opset = 0;   // in which the operator exists; 0: still there
  RowRule rows = RowRule::kUnknown;
  bool takes_any_value = false;  // sequences and strings, too

  bool Runs() const { return first_opset != 0; }
};

// The type of an operator's first result; nothing is known of it by default.
class ResultType {
 public:
  constexpr ResultType() = default;
  // That of this input.
  static constexpr ResultType Of(uint8_t input) { return ResultType(Source::kInput, input, {}); }
  static constexpr ResultType Always(DType dtype) { return ResultType(Source::kFixed, 0, dtype); }

  constexpr bool IsKnown() const { return source_ != Source::kUnknown; }
  constexpr std::optional<size_t> Input() const {
    return source_ == Source::kInput ? std::optional<size_t>(input_) : std::nullopt;
  }
  constexpr std::optional<DType> Fixed() const {
    return source_ == Source::kFixed ? std::optional<DType>(dtype_) : std::nullopt;
  }

 private:
  enum class Source : uint8_t { kUnknown, kInput, kFixed };
  constexpr ResultType(Source source, uint8_t input, DType dtype) : source_(source), input_(input), dtype_(dtype) {}

  Source source_ = Source::kUnknown;
  uint8_t input_ = 0;
  DType dtype_ = DType::kFloat32;
};

// What is true of an operator whatever it is given. What a row does not tell is not known, and nothing is kept,
// recorded or left out because of it. tests/conformance/operator_facts.cc holds each fact against what the interpreter
// computes.
//
// Every row has to say what the elements of inputs decide, where their shapes alone don't, which is why there is no
// default: results whose sizes were wrongly taken to follow from shapes would be kept, and recorded, for inputs that
// make others.
//
// Inputs are bits, of which the last stands for all that follow.
class OperatorFacts {
 public:
  // `sizes`: the inputs whose elements say how large a result is. `settings`: those that say how it is computed (axes,
  // shapes, bounds) and are no part of it: few numbers, which a host reads wherever the operator runs. `results`:
  // whether elements of results depend on those of any input.
  constexpr explicit OperatorFacts(uint32_t sizes, uint32_t settings = 0, bool results = true)
      : sizes_(sizes), settings_(settings), results_(results) {}

  // All that either says.
  friend constexpr OperatorFacts operator|(OperatorFacts a, const OperatorFacts& b) {
    a.sizes_ |= b.sizes_;
    a.settings_ |= b.settings_;
    a.results_ &= b.results_;
    a.keeps_shape_ |= b.keeps_shape_;
    if (b.type_.IsKnown()) a.type_ = b.type_;
    return a;
  }
  constexpr OperatorFacts WithFirstShape() const {
    OperatorFacts facts = *this;
    facts.keeps_shape_ = true;
    return facts;
  }
  constexpr OperatorFacts WithType(ResultType type) const {
    OperatorFacts facts = *this;
    facts.type_ = type;
    return facts;
  }

  constexpr bool DecidesSizes(size_t input) const { return Has(sizes_, input); }
  constexpr bool DecidesResults() const { return results_; }
  constexpr bool IsSetting(size_t input) const { return Has(settings_, input); }
  // Whether the first result has the shape of the first input. Where RowRule is kElementwise it has the one that all
  // inputs broadcast to.
  constexpr bool KeepsShape() const { return keeps_shape_; }
  constexpr const ResultType& Type() const { return type_; }

 private:
  static constexpr bool Has(uint32_t bits, size_t input) { return (bits >> (input < 31 ? input : 31) & 1) != 0; }

  uint32_t sizes_;
  uint32_t settings_;
  bool results_;
  bool keeps_shape_ = false;
  ResultType type_;
};

struct OnnxOperator {
  OperatorSpec spec;
  PlanUse plan;
  SequenceUse sequences;
  InterpreterUse interpreter;
  OperatorFacts facts;
  bool is_expanded = false;  // the reader writes it out where the columns do not take it (expansions/expand.h)
};

// Sorted by domain and name.
std::span<const OnnxOperator> OnnxOperators();

// Null if there is none.
const OnnxOperator* FindOnnxOperator(std::string_view domain, std::string_view op);

// The facts of its row. Of an operator that has none nothing is known: sizes go by all elements.
OperatorFacts FactsOf(std::string_view domain, std::string_view op);

// What may be read for a plan, canonical operators included; likewise of a model of token sequences, whose nodes may be
// of any kind where nothing reads them; and for the interpreter. Null if there is no such operator.
const OperatorSpec* FindOperator(std::string_view domain, std::string_view op);
const OperatorSpec* FindSequenceOperator(std::string_view domain, std::string_view op);
const OperatorSpec* FindInterpretedOperator(std::string_view domain, std::string_view op);
// Of those that may be written out.
const OperatorSpec* FindExpandedOperator(std::string_view domain, std::string_view op);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_GRAPH_OPERATOR_TABLE_H_

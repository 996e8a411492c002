// Every operator that the fallback executor runs, in one table: what is read, what is checked, what runs it.
#ifndef SWIZZLE_MODEL_LOADER_FALLBACK_OPERATOR_TABLE_H_
#define SWIZZLE_MODEL_LOADER_FALLBACK_OPERATOR_TABLE_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "model_loader/fallback/operators.h"
#include "model_loader/graph/operators.h"

namespace swizzle::fallback {

// The opsets that the executor reads. Before opset 6 few operators are as they are now, and most rows begin there.
inline constexpr int64_t kFirstOpset = 1;
inline constexpr int64_t kLastOpset = 23;

// What is known of a result's rows, given inputs of which each row (the slice along dimension 0) is one request's.
// batch_proof.h says what follows.
enum class RowRule {
  kUnknown,      // nothing
  kElementwise,  // inputs broadcast; each element depends on the same element of each
  kFirstInput,   // row i depends on row i of input 0 alone; the other inputs are the same for all
  kAxis,         // as kFirstInput, if attribute "axis", or the axes, don't include dimension 0
  kProduct,      // MatMul
  kShape,        // Reshape and its kin, and Concat: as their shapes are
  kLookUp,       // Gather: data that is the same for all, one index a request
};

struct Operator {
  OperatorSpec spec;    // domain "", name, numbers of inputs and outputs, attributes
  int64_t first_opset;  // from which the operator is supported
  int64_t last_opset;   // in which it exists; 0: still there
  RowRule rows;
  StatusOr<Results> (*run)(Call&);
};

std::span<const Operator> OperatorTable();

// Null if there is none of this name.
const Operator* FindRow(std::string_view op);

// For the reader: the operator's specification, null if there is none.
const OperatorSpec* FindSpec(std::string_view domain, std::string_view op);

}  // namespace swizzle::fallback

#endif  // SWIZZLE_MODEL_LOADER_FALLBACK_OPERATOR_TABLE_H_

// The function that runs each operator in the interpreter; graph/operator_table.h says what is read of them.
#ifndef SWIZZLE_MODEL_LOADER_INTERPRETER_OPERATORS_FUNCTIONS_H_
#define SWIZZLE_MODEL_LOADER_INTERPRETER_OPERATORS_FUNCTIONS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "model_loader/interpreter/operators/operators.h"

namespace swizzle::interpreter {

// The opsets that the executor reads. Before opset 6 few operators are as they are now, and most rows begin there.
inline constexpr int64_t kFirstOpset = 1;
inline constexpr int64_t kLastOpset = 26;

using RunOperator = StatusOr<Results> (*)(Call&);

// Which inputs may be arrays that are not made yet (moved.h).
enum class TakesMoved : uint8_t { kNone, kFirst, kAll };
constexpr bool Takes(TakesMoved moved, size_t input) {
  return moved == TakesMoved::kAll || (moved == TakesMoved::kFirst && input == 0);
}

// Of the standard or of com.microsoft, where no two are called the same.
struct OperatorFunction {
  std::string_view op;
  RunOperator run;
  TakesMoved moved = TakesMoved::kNone;
};

std::span<const OperatorFunction> OperatorFunctions();

// Null if there is none of this name.
const OperatorFunction* FindFunction(std::string_view op);

}  // namespace swizzle::interpreter

#endif  // SWIZZLE_MODEL_LOADER_INTERPRETER_OPERATORS_FUNCTIONS_H_

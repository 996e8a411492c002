// Einsum's equation: which dimensions of operands and result have the same index. Pure functions.
//
//   bij,bjk->bik   labels 1,8,9 and 1,9,10 give 1,8,10
#ifndef SWIZZLE_MODEL_LOADER_SEMANTICS_EQUATION_H_
#define SWIZZLE_MODEL_LOADER_SEMANTICS_EQUATION_H_

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/base/status.h"

namespace swizzle {

// One a dimension. Those of letters are below kFirstDot, those of "..." count from there, from the last dimension on,
// so that they meet as shapes broadcast.
using Labels = std::vector<int>;
inline constexpr int kFirstDot = 52;

struct Equation {
  std::vector<Labels> operands;  // a label may stand twice: the diagonal
  Labels result;                 // each once, and in some operand
};

// What `text` says of operands of these ranks. Without "->" the result is what "..." stands for, then, by the alphabet,
// the letters that stand once. INVALID_ARGUMENT where it is no equation of so many operands, or ranks differ.
StatusOr<Equation> ReadEquation(std::string_view text, std::span<const int64_t> ranks);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_SEMANTICS_EQUATION_H_

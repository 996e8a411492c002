// What one layer computes at one batch size: its operator and extents. Plain values.
#ifndef SWIZZLE_KERNELS_OPERATOR_PROBLEM_H_
#define SWIZZLE_KERNELS_OPERATOR_PROBLEM_H_

#include <array>
#include <cstdint>
#include <optional>

#include "kernels/base/storage.h"
#include "kernels/operator/input_zeros.h"
#include "kernels/operator/operator.h"

namespace swizzle {

inline constexpr int kMaxKernelInputs = kMaxParts;
static_assert(kMaxKernelInputs >= 3, "an attention has three");

struct Problem : Operator {
  Extent input;  // the first one's
  Extent output;
  int threads = 1;    // of the stream it will run on
  int blocking = 0;   // of the weight, of Kernel::blockings
  Storage from = {};  // of the inputs but the residual; that of the row which solves it (AsRowSolves)
  Storage to = {};    // of the output and the residual
  // What each input, the residual behind the others, may be stored as beside real numbers; once a row is known, what it
  // is stored as. The output's is Epilogue::requantise.
  std::array<Quantised, kMaxKernelInputs> inputs_as = {};
  // Of the first input, where calibration data told; once a row is known, only where its time goes by them.
  std::optional<InputZeros> input_zeros = {};
};

// Channels of v, of q and of k in an attention, which are apart or side by side in one operand. REQUIRES: they are
// whole heads.
inline int64_t ValueChannels(const Problem& problem) {
  return problem.output.channels / problem.attention().group_size;
}
inline int64_t QueryChannels(const Problem& problem) {
  if (!problem.attention().packed) return problem.input.channels;
  const int64_t group_size = problem.attention().group_size;
  return (problem.input.channels - ValueChannels(problem)) / (group_size + 1) * group_size;
}
inline int64_t KeyChannels(const Problem& problem) { return QueryChannels(problem) / problem.attention().group_size; }

// Of operand `i`, without a residual.
inline Extent InputExtent(const Problem& problem, int i) {
  if (const auto* const parts = std::get_if<ConcatParts>(&problem.attributes)) {
    Extent part = problem.output;
    if (parts->of_planes) {
      part.height = 1;
      part.width = parts->sizes[i];
    } else {
      part.channels = parts->sizes[i];
    }
    return part;
  }
  if (i == 0) return problem.input;
  if (IsAttention(problem.op)) return {problem.input.batch, i == 1 ? KeyChannels(problem) : ValueChannels(problem)};
  return problem.op == Op::kScale ? Extent{problem.output.batch, problem.output.channels} : problem.output;
}

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_OPERATOR_PROBLEM_H_

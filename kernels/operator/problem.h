// What one layer computes at one batch size: its operator and extents. Plain values.
#ifndef SWIZZLE_KERNELS_OPERATOR_PROBLEM_H_
#define SWIZZLE_KERNELS_OPERATOR_PROBLEM_H_

#include <array>
#include <cstdint>

#include "kernels/base/storage.h"
#include "kernels/operator/operator.h"

namespace swizzle {

inline constexpr int kMaxKernelInputs = 3;

struct Problem : Operator {
  Extent input;
  Extent output;
  int threads = 1;    // of the stream it will run on
  int blocking = 0;   // of the weight, of Kernel::blockings
  Storage from = {};  // of the inputs but the residual; that of the row which solves it (AsRowSolves)
  Storage to = {};    // of the output and the residual
  // What each input, the residual behind the others, may be stored as beside real numbers; once a row is known, what it
  // is stored as. The output's is Epilogue::requantise.
  std::array<Quantised, kMaxKernelInputs> inputs_as = {};
};

// Channels of q, and of k, in an attention: those of v are the output's.
inline int64_t KeyChannels(const Problem& problem) {
  const bool packed = problem.attention().packed;
  return packed ? (problem.input.channels - problem.output.channels) / 2 : problem.input.channels;
}

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_OPERATOR_PROBLEM_H_

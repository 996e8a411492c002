#include "kernels/whole_numbers/kept_bytes.h"

#include "kernels/whole_numbers/steps.h"

namespace swizzle {

bool KeepsBytes(const Problem& problem) {
  if (!ReadsBytes(problem, problem.from.layout) || !WritesBytes(problem, problem.to.layout)) return false;
  for (int i = 0; i < InputCount(problem); ++i) {
    if (problem.inputs_as[i] != *problem.epilogue.requantise) return false;
  }
  return true;
}

}  // namespace swizzle

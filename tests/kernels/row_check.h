// Holds a row of a backend's kernel table to the double-precision reference, on the problems of kernel_cases.h.
//
// Buffers are exactly as large as the contracts say and end in guard bytes; spare positions, outputs and workspaces
// start as NaN, so whatever leaks out of them shows. Where the backend's memory is its own, operands are copied there
// and back, and what the row queues is also recorded and replayed. Rows that round, to half precision or TF32, get
// operands that are so already. Those that take a pitch also get operands, or an output, within wider ones that are NaN
// elsewhere.
#ifndef SWIZZLE_TESTS_KERNELS_ROW_CHECK_H_
#define SWIZZLE_TESTS_KERNELS_ROW_CHECK_H_

#include <map>
#include <memory>
#include <vector>

#include "kernels/backend/backend.h"
#include "tests/kernels/kernel_cases.h"

namespace swizzle {

// The cases of the row's op that it accepts, in its precision, with those that plans make by fusing layers.
// In the order of KernelCases(); `seed` differs from case to case and is the same for every row.
struct SeededCase {
  KernelCase kernel_case;
  int seed;
};
std::vector<SeededCase> CasesOf(const Kernel& kernel);
// Whether the row holds the weight that the case is tried with.
bool HoldsWeightOf(const Kernel& kernel, const SeededCase& seeded);

// Keeps streams from row to row. Single-owner; the backend outlives it.
class RowChecker {
 public:
  explicit RowChecker(Backend& backend) : backend_(backend) {}

  // Adds a failure of GoogleTest for the first case whose result is wrong, and stops there. Takes every so many-th
  // case, from that one on; more where the row holds the weight of none of these.
  void Check(const Kernel& kernel, size_t every = 1, size_t from = 0);

 private:
  Stream& StreamOf(int threads);

  Backend& backend_;
  std::map<int, std::unique_ptr<Stream>> streams_;
};

}  // namespace swizzle

#endif  // SWIZZLE_TESTS_KERNELS_ROW_CHECK_H_

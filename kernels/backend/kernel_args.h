// What a kernel is given to run on. Apart from kernel_table.h for the GPU's kernels: nvcc reads a file three times, and
// StatusOr, which that header needs, took 10 of their 13 seconds.
#ifndef SWIZZLE_KERNELS_BACKEND_KERNEL_ARGS_H_
#define SWIZZLE_KERNELS_BACKEND_KERNEL_ARGS_H_

#include <cstddef>
#include <span>

#include "kernels/base/sequences.h"
#include "kernels/operator/problem.h"

namespace swizzle {

class Stream;

// A kernel's own layout of a weight, bias included. Immutable after prepare; shared by every executor.
class PackedWeight {
 public:
  virtual ~PackedWeight() = default;
  virtual size_t bytes() const = 0;  // resident memory held
};

struct KernelArgs {
  const Problem* problem = nullptr;
  const PackedWeight* weight = nullptr;  // what prepare returned; null for ops without weights
  // InputCount() of them, and a residual; aligned to kBufferAlignment. Elements are of the key's types, whatever the
  // pointer says. On a GPU these, output and workspace are device memory.
  std::span<const float* const> inputs;
  float* output = nullptr;               // distinct from every input; where WorksInPlace it may be inputs[0]
  std::span<std::byte> workspace;        // at least workspace_bytes(problem), aligned to kBufferAlignment
  const Sequences* sequences = nullptr;  // for ops of token sequences; of as many tokens as the extents say
};

// An operand of a kernel as what it is.
template <typename T>
const T* InputAs(const KernelArgs& args, size_t input) {
  return reinterpret_cast<const T*>(args.inputs[input]);
}
template <typename T>
T* OutputAs(const KernelArgs& args) {
  return reinterpret_cast<T*>(args.output);
}

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_BACKEND_KERNEL_ARGS_H_

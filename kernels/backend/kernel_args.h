// What a kernel is given to run on. Apart from kernel_table.h for the GPU's kernels: nvcc reads a file three times, and
// StatusOr, which that header needs, took 10 of their 13 seconds.
#ifndef SWIZZLE_KERNELS_BACKEND_KERNEL_ARGS_H_
#define SWIZZLE_KERNELS_BACKEND_KERNEL_ARGS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "kernels/base/check.h"
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

// An operand of a kernel: elements of one type, in a buffer aligned to kBufferAlignment. A view; in device memory where
// the kernel is a GPU's. Void is void or const void.
//
// In kNhwc it may be some of the channels of a wider activation, for rows that take these (Kernel::reads_pitched,
// writes_pitched): it begins on kPitchAlignment bytes, and its channels and its pitch are whole such.
template <typename Void>
struct BasicOperand {
  Void* data = nullptr;
  DType dtype = DType::kFloat32;
  float scale = 1.0f;  // of whole numbers, which stand for scale * (element - zero_point)
  int32_t zero_point = 0;
  int64_t pitch = 0;  // in kNhwc elements from one position to the next; 0: as many as it has channels

  bool IsWhole() const { return pitch == 0; }
  int64_t PitchOr(int64_t channels) const { return pitch == 0 ? channels : pitch; }
  // The elements as what they are. REQUIRES: T is the type's.
  template <typename T>
  auto As() const {
    SWIZZLE_CHECK(HoldsElements<T>(dtype));
    return static_cast<std::conditional_t<std::is_const_v<Void>, const T, T>*>(data);
  }
};
using Operand = BasicOperand<const void>;
using MutableOperand = BasicOperand<void>;

struct KernelArgs {
  const Problem* problem = nullptr;
  const PackedWeight* weight = nullptr;  // what prepare returned; null for ops without weights
  // InputCount() of them, stored as problem->from, and a residual, stored as problem->to.
  std::span<const Operand> inputs;
  MutableOperand output;                 // distinct from every input; where WorksInPlace it may be inputs[0]
  std::span<std::byte> workspace;        // at least workspace_bytes(problem), aligned to kBufferAlignment
  const Sequences* sequences = nullptr;  // for ops of token sequences; of as many tokens as the extents say

  template <typename T>
  const T* Input(size_t i) const {
    return inputs[i].template As<T>();
  }
  template <typename T>
  T* Output() const {
    return output.template As<T>();
  }
  // Null where the epilogue adds none.
  template <typename T>
  const T* Residual() const {
    return problem->epilogue.residual ? inputs.back().template As<T>() : nullptr;
  }
};

}  // namespace swizzle

#endif  // SWIZZLE_KERNELS_BACKEND_KERNEL_ARGS_H_

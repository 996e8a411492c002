// The memory that a primitive computes with, as oneDNN's own objects. To make these takes longer than to compute a
// small layer: they are made once for each call that there is at a time, and told in each where its memory is.
// Thread-safe.
#ifndef SWIZZLE_KERNELS_CPU_CONV_ONEDNN_OPERANDS_H_
#define SWIZZLE_KERNELS_CPU_CONV_ONEDNN_OPERANDS_H_

#include <dnnl.hpp>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "kernels/base/mutex.h"

namespace swizzle::cpu {

class OnednnOperands {
 public:
  struct Operand {
    int argument;  // DNNL_ARG
    dnnl::memory::desc of;
  };

  // Calls leave out operands that have no elements.
  explicit OnednnOperands(std::vector<Operand> operands) : operands_(std::move(operands)) {}

  // Runs the primitive with the operands, in their order, at these places. Throws what oneDNN does.
  void Execute(const dnnl::primitive& primitive, std::span<const void* const> places) const;

 private:
  // One call at a time has these.
  struct Objects {
    std::vector<dnnl::memory> memory;        // by operand; null where it is left out
    std::vector<dnnl_exec_arg_t> arguments;  // those that are not
  };

  std::unique_ptr<Objects> Take() const;

  const std::vector<Operand> operands_;
  mutable Mutex mutex_;
  mutable std::vector<std::unique_ptr<Objects>> idle_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_CONV_ONEDNN_OPERANDS_H_

// Where a list's slots lie when a batch is run in borrowed memory (Plan::RunOn). On the host, what a last step works on
// in place lies where its output goes: one buffer less is written and read. It may be a slot that holds others in the
// arena, or lies within one (nested_slots.h): Concats and Slices then copy what is not where it goes.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_RUN_BORROWED_SLOTS_H_
#define SWIZZLE_MODEL_LOADER_PLAN_RUN_BORROWED_SLOTS_H_

#include <cstddef>
#include <span>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "model_loader/plan/run/plan.h"
#include "model_loader/plan/run/program.h"

namespace swizzle {

class BorrowedSlots {
 public:
  BorrowedSlots(const StepList& list, const BorrowedMemory& memory, bool on_host);

  // StepOperands::elsewhere.
  std::span<std::byte* const> elsewhere() const { return elsewhere_; }
  // Calls copy(to, from, bytes) for each output whose slot is an input's, or another output's.
  template <typename Copy>
  void CopyShared(const Program& program, BatchSize size, const Copy& copy) const {
    for (const Shared& shared : shared_) {
      const size_t bytes = program.Output(memory_.arena.data(), static_cast<int>(shared.output), size).size();
      copy(memory_.outputs[shared.output], shared.from, bytes);
    }
  }

 private:
  struct Shared {
    size_t output;
    const std::byte* from;
  };

  // The slot that the step which makes this one may as well have in its place, or -1.
  int WorkedOnFor(const StepList& list, int output) const;

  const BorrowedMemory memory_;
  absl::InlinedVector<std::byte*, 16> elsewhere_;
  std::vector<Shared> shared_;
};

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_RUN_BORROWED_SLOTS_H_

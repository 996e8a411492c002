#include "model_loader/plan/run/borrowed_slots.h"

namespace swizzle {

BorrowedSlots::BorrowedSlots(const StepList& list, const BorrowedMemory& memory, bool on_host)
    : memory_(memory), elsewhere_(list.slots.size(), nullptr) {
  for (size_t i = 0; i < memory.inputs.size(); ++i) {
    elsewhere_[list.inputs[i]] = const_cast<std::byte*>(memory.inputs[i]);
  }
  for (size_t i = 0; i < memory.outputs.size(); ++i) {
    std::byte*& slot = elsewhere_[list.outputs[i]];
    if (slot != nullptr) shared_.push_back({i, slot});
    if (slot != nullptr) continue;
    slot = memory.outputs[i];
    const int worked_on = on_host ? WorkedOnFor(list, list.outputs[i]) : -1;
    if (worked_on >= 0) elsewhere_[worked_on] = slot;
  }
}

int BorrowedSlots::WorkedOnFor(const StepList& list, int output) const {
  const Slot& made = list.slots[output];
  if (list.steps.empty()) return -1;
  const Step& step = list.steps[made.first_step];
  // Softmax reads a row before it writes it (kernels/cpu/elementwise/softmax.h).
  if (step.output != output || (!WorksInPlace(step.problem.op) && step.problem.op != Op::kSoftmax)) return -1;
  const int input = step.inputs[0];
  const Slot& read = list.slots[input];
  const bool alike = read.storage == made.storage && read.value.elements() == made.value.elements() &&
                     read.value.per_token == made.value.per_token;
  return alike && read.last_step == made.first_step && elsewhere_[input] == nullptr ? input : -1;
}

}  // namespace swizzle

#include "model_loader/plan/run/borrowed_slots.h"

namespace swizzle {

BorrowedSlots::BorrowedSlots(const StepList& list, const BorrowedMemory& memory)
    : memory_(memory), elsewhere_(list.slots.size(), nullptr) {
  for (size_t i = 0; i < memory.inputs.size(); ++i) {
    elsewhere_[list.inputs[i]] = reinterpret_cast<std::byte*>(const_cast<float*>(memory.inputs[i]));
  }
  for (size_t i = 0; i < memory.outputs.size(); ++i) {
    std::byte*& slot = elsewhere_[list.outputs[i]];
    if (slot != nullptr) shared_.push_back({i, slot});
    if (slot == nullptr) slot = reinterpret_cast<std::byte*>(memory.outputs[i]);
  }
}

}  // namespace swizzle

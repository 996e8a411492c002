// What Concats and Slices cost on a device, where plans let their operands lie where they go (run/nested_slots.h).
//
// A kernel is measured alone, and copies all. In a plan it copies what cannot lie there: that is a share of its time.
// Which operands can goes by the storage that all have, and, in kNhwc, by what makes and reads them: a kernel that
// takes a pitch has to be at hand for each.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_NESTED_COPIES_H_
#define SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_NESTED_COPIES_H_

#include "model_loader/network/network.h"
#include "model_loader/plan/choose/kernel_choice.h"

namespace swizzle {

// Takes off the times of a device's Concats and Slices what they will not have to copy.
void LeaveOutNestedCopies(const Network& network, LayerCandidates& candidates);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_NESTED_COPIES_H_

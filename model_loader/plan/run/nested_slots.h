// Which slots lie within others: an operand of a Concat in its output, and what a Slice takes in its input. Their steps
// then have nothing to copy. A Rotary's output lies where its input does, if that is read by nothing behind it.
//
// Where the channels of all images are neighbours in memory, a slot is a piece of the other one: in kNchw and
// kBlocked16 if the batch is one, in kRows and kBatched always. In kNhwc it is a part of each position, for kernels
// that take a pitch. What a request's memory may take the place of, inputs and outputs of the network, neither holds
// others nor lies within them.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_RUN_NESTED_SLOTS_H_
#define SWIZZLE_MODEL_LOADER_PLAN_RUN_NESTED_SLOTS_H_

#include <vector>

#include "model_loader/plan/run/program.h"

namespace swizzle {

// One a slot, for batches up to this size. Of two slots in one, either their bytes are apart, or one of them is never
// written: a Slice's, or an operand of several Concats; or one is written when the other was read: a Rotary's. The
// kernels of the list's Concats and Slices have to leave alone what is where it goes. `copies`: steps that are to copy
// all the same; empty: none.
std::vector<SlotPlace> NestSlots(const StepList& list, BatchSize size, const std::vector<bool>& copies = {});

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_RUN_NESTED_SLOTS_H_

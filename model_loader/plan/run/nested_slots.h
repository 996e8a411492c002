// Which slots lie within others: an operand of a Concat in its output, and what a Slice takes in its input. Their steps
// then have nothing to copy.
//
// In kNchw and kBlocked16 the neighbouring channels of one image are neighbours in memory, and those of several are
// not: slots nest where the batch is one. What a request's memory may take the place of, inputs and outputs of the
// network, neither holds others nor lies within them.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_RUN_NESTED_SLOTS_H_
#define SWIZZLE_MODEL_LOADER_PLAN_RUN_NESTED_SLOTS_H_

#include <cstddef>
#include <vector>

#include "model_loader/plan/run/program.h"

namespace swizzle {

// Where a slot lies: in itself, or in one that lies in itself.
struct SlotPlace {
  int within = -1;
  size_t offset = 0;  // bytes, a multiple of kBufferAlignment
};

// One a slot. Of two slots in one, either their bytes are apart, or one of them is a Slice's and never written. The
// kernels of the list's Concats and Slices have to leave alone what is where it goes.
std::vector<SlotPlace> NestSlots(const StepList& list, BatchSize size);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_RUN_NESTED_SLOTS_H_

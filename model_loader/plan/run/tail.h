// The last, small layers of a plan, which may wait until all parts of a batch are there.
//
// A network that classifies ends in a product of a few thousand channels a row with 4 to 8 MB of weights, which take as
// long to read for one row as for eight. Parts of a batch (micro_batch.h) would read them again each time.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_RUN_TAIL_H_
#define SWIZZLE_MODEL_LOADER_PLAN_RUN_TAIL_H_

#include <optional>
#include <span>

#include "model_loader/plan/run/program.h"

namespace swizzle {

// As many steps at the end as read a single value, in kNchw, where this and all that they write take at most 16 KiB a
// row; none if there are no such, or if they are all. REQUIRES: no sequences.
std::optional<Tail> FindTail(std::span<const Step> steps, std::span<const Slot> slots);

// Gives each list a tail, all of which read the same value: parts of a batch and the whole may run different lists.
// None if there is no value at which all lists have one.
void SetTails(std::span<StepList> lists);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_RUN_TAIL_H_

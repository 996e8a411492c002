// Compares models of which at least one runs in regions: each in regions, then, on arrays of any type and shape.
#ifndef SWIZZLE_MODEL_LOADER_PACK_VALIDATE_PROGRAMS_H_
#define SWIZZLE_MODEL_LOADER_PACK_VALIDATE_PROGRAMS_H_

#include "kernels/devices.h"
#include "model_loader/load/loader.h"
#include "model_loader/pack/commands.h"
#include "model_loader/pack/comparison.h"

namespace swizzle::pack {

// The models are those of the command's files. INVALID_ARGUMENT, naming the input, where inputs would have to be drawn
// that only the model knows the range of, or the labels do not fit; errors of runs.
StatusOr<Comparison> ComparePrograms(const ValidateCommand& command, const Devices& devices, RunnableModel reference,
                                     RunnableModel candidate);

}  // namespace swizzle::pack

#endif  // SWIZZLE_MODEL_LOADER_PACK_VALIDATE_PROGRAMS_H_

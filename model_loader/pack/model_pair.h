// Two models of the same inputs and outputs, run on the same arrays and compared.
#ifndef SWIZZLE_MODEL_LOADER_PACK_MODEL_PAIR_H_
#define SWIZZLE_MODEL_LOADER_PACK_MODEL_PAIR_H_

#include "kernels/devices.h"
#include "model_loader/pack/commands.h"
#include "model_loader/pack/comparison.h"

namespace swizzle::pack {

// The models of the command's files on its inputs, or on drawn ones, the reference on the CPU. INVALID_ARGUMENT, naming
// the input, where the models differ in what they take, inputs would have to be drawn that only the model knows the
// range of, or the labels do not fit; errors of runs.
StatusOr<Comparison> CompareModels(const ValidateCommand& command, const Devices& devices);

}  // namespace swizzle::pack

#endif  // SWIZZLE_MODEL_LOADER_PACK_MODEL_PAIR_H_

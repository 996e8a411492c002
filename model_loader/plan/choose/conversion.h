// Steps that store a value in another layout or type.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_CONVERSION_H_
#define SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_CONVERSION_H_

#include "kernels/backend/backend.h"
#include "kernels/operator/problem.h"
#include "model_loader/network/network.h"
#include "model_loader/plan/choose/candidates.h"

namespace swizzle {

// Storing a value in another way.
Problem ConversionProblem(const NetworkValue& value, BatchSize size, RunSettings settings);

// The row that does, or null.
const Kernel* FindConversion(const Backend& backend, const NetworkValue& value, Storage from, Storage to,
                             RunSettings settings);

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_CONVERSION_H_

// What a model leaves out where it declares its outputs: exporters may write a name alone.
#ifndef SWIZZLE_MODEL_LOADER_REGIONS_DECLARED_OUTPUTS_H_
#define SWIZZLE_MODEL_LOADER_REGIONS_DECLARED_OUTPUTS_H_

#include <memory>

#include "kernels/backend/backend.h"
#include "model_loader/interpreter/run/executor.h"

namespace swizzle::regions {

// The program with a type and a shape for each output. Those that the graph does not declare are as runs with zeros
// show them (survey.h): a dimension is free if runs of other sizes differ in it, and all are where shapes go by more
// than the shapes of inputs. Outputs stay undeclared where the program ran on nothing; it is FAILED_PRECONDITION where
// no request can be computed. REQUIRES: the program has no parts.
StatusOr<std::shared_ptr<const interpreter::Program>> WithDeclaredOutputs(
    std::shared_ptr<const interpreter::Program> program, Backend& host, int threads,
    const interpreter::Limits& limits = {});

}  // namespace swizzle::regions

#endif  // SWIZZLE_MODEL_LOADER_REGIONS_DECLARED_OUTPUTS_H_

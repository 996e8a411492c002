#include "model_loader/plan/choose/conversion.h"

#include "kernels/backend/select.h"

namespace swizzle {

Problem ConversionProblem(const NetworkValue& value, BatchSize size, RunSettings settings) {
  Problem problem;
  problem.SetOp(Op::kConvertLayout);
  problem.input = problem.output = value.WithBatch(size);
  problem.epilogue.requantise = value.AsWholeNumbers();
  problem.inputs_as[0] = problem.epilogue.requantise.value_or(Quantised());
  problem.threads = settings.threads;
  return problem;
}

const Kernel* FindConversion(const Backend& backend, const NetworkValue& value, Storage from, Storage to,
                             RunSettings settings) {
  return WidestConversion(backend, ConversionProblem(value, 1, settings), from, to, settings.precision);
}

}  // namespace swizzle

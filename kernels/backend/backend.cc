#include "kernels/backend/backend.h"

namespace swizzle {
namespace {

bool TakesFormat(const Kernel& kernel, Format format) {
  const bool sparse = format == Format::kCsr || format == Format::kPattern;
  return kernel.key.weights == format || (kernel.key.weights == Format::kDense && sparse);
}

bool HasTypes(const KernelKey& key, DType precision) {
  return key.input_dtype == ElementType(key.input, precision) && key.output_dtype == ElementType(key.output, precision);
}

}  // namespace

std::vector<const Kernel*> Candidates(const Backend& backend, const Problem& problem, Format format) {
  std::vector<const Kernel*> candidates;
  for (const Kernel& kernel : backend.kernels()) {
    const bool runs_here = (kernel.required_features & ~backend.features()) == 0;
    if (runs_here && kernel.key.op == problem.op && HasTypes(kernel.key, problem.dtype) &&
        TakesFormat(kernel, format) && kernel.accepts(problem)) {
      candidates.push_back(&kernel);
    }
  }
  return candidates;
}

}  // namespace swizzle

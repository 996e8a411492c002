#include "kernels/backend/backend.h"

namespace swizzle {
namespace {

bool TakesFormat(const Kernel& kernel, Format format) {
  const bool sparse = format == Format::kCsr || format == Format::kPattern;
  return kernel.key.weights == format || (kernel.key.weights == Format::kDense && sparse);
}

bool MayStoreOperands(Precision precision, const KernelKey& key) {
  return MayStore(precision, key.input) && MayStore(precision, key.output);
}

}  // namespace

std::vector<const Kernel*> Candidates(const Backend& backend, const Problem& problem, Format format,
                                      Precision precision) {
  std::vector<const Kernel*> candidates;
  for (const Kernel& kernel : backend.kernels()) {
    const bool runs_here = (kernel.required_features & ~backend.features()) == 0;
    if (runs_here && kernel.key.op == problem.op && MayStoreOperands(precision, kernel.key) &&
        TakesFormat(kernel, format) && kernel.accepts(AsRowSolves(kernel, problem))) {
      candidates.push_back(&kernel);
    }
  }
  return candidates;
}

}  // namespace swizzle

#include "kernels/backend/select.h"

#include <algorithm>
#include <string_view>

namespace swizzle {
namespace {

// One kernel for two instruction sets.
bool AreVariants(const Kernel& a, const Kernel& b) { return !a.family.empty() && a.family == b.family; }

}  // namespace

std::vector<const Kernel*> WidestCandidates(const Backend& backend, const Problem& problem, const Weight* weight,
                                            Precision precision) {
  std::vector<const Kernel*> widest;
  for (const Kernel* kernel : Candidates(backend, problem, weight, precision)) {
    auto same = std::find_if(widest.begin(), widest.end(), [&](const Kernel* w) { return AreVariants(*w, *kernel); });
    if (same == widest.end()) {
      widest.push_back(kernel);
    } else if (kernel->required_features > (*same)->required_features) {
      *same = kernel;
    }
  }
  return widest;
}

}  // namespace swizzle

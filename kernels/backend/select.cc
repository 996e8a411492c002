#include "kernels/backend/select.h"

#include <algorithm>
#include <string_view>

namespace swizzle {
namespace {

// One kernel for two instruction sets.
bool AreVariants(const Kernel& a, const Kernel& b) { return !a.family.empty() && a.family == b.family; }

std::vector<const Kernel*> WidestOf(const std::vector<const Kernel*>& candidates) {
  std::vector<const Kernel*> widest;
  for (const Kernel* kernel : candidates) {
    auto same = std::find_if(widest.begin(), widest.end(), [&](const Kernel* w) { return AreVariants(*w, *kernel); });
    if (same == widest.end()) {
      widest.push_back(kernel);
    } else if (kernel->required_features > (*same)->required_features) {
      *same = kernel;
    }
  }
  return widest;
}

}  // namespace

std::vector<const Kernel*> WidestCandidates(const Backend& backend, const Problem& problem, const Weight* weight,
                                            Precision precision) {
  return WidestOf(Candidates(backend, problem, weight, precision));
}

const Kernel* WidestConversion(const Backend& backend, const Problem& problem, Storage from, Storage to,
                               Precision precision) {
  const auto widest = WidestOf(ConversionCandidates(backend, problem, from, to, precision));
  return widest.empty() ? nullptr : widest.front();
}

}  // namespace swizzle

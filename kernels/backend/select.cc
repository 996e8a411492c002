#include "kernels/backend/select.h"

#include <algorithm>
#include <string_view>

namespace swizzle {
namespace {

// "conv_csr_f32" of "conv_csr_f32_avx512": what the variants of one kernel share.
std::string_view Stem(std::string_view name) { return name.substr(0, name.rfind('_')); }

bool AreVariants(const Kernel& a, const Kernel& b) {
  return Stem(a.name) == Stem(b.name) && a.key.input == b.key.input && a.key.output == b.key.output &&
         a.required_features != b.required_features;
}

}  // namespace

std::vector<const Kernel*> WidestCandidates(const Backend& backend, const Problem& problem, Format format,
                                            Precision precision) {
  std::vector<const Kernel*> widest;
  for (const Kernel* kernel : Candidates(backend, problem, format, precision)) {
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

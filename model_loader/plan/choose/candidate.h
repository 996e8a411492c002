// One way to run a layer.
#ifndef SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_CANDIDATE_H_
#define SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_CANDIDATE_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "kernels/backend/kernel_table.h"
#include "kernels/base/precision.h"

namespace swizzle {

// What every layer of a plan runs with.
struct RunSettings {
  int threads = 1;
  Precision precision = Precision::kFloat32;
};

// One kernel for one layer. kernel is null where no data is moved: for kReshape, and for what only quantises a value
// that is stored as those whole numbers already.
struct Candidate {
  const Kernel* kernel = nullptr;
  Storage input = {};
  Storage output = {};
  std::vector<double> microseconds = {};  // per batch size
  bool measured = false;                  // else estimated, wholly or (see Measurer) beyond the first batch size
  bool alike = false;                     // has the times of a layer like its own (like_layers.h)
  bool suspect = false;                   // was measured, and disturbed: at most the time that it has, or estimated
  int blocking = 0;                       // of the kernel's
  // Has as real numbers what another kernel for the layer has as the model's whole ones: taken only where no choice
  // without it works, so that results do not depend on which kernels were fast.
  bool rounds_less = false;
  int norm = -1;        // the layer norm behind it that the kernel computes, too (norm_pairs.h)
  double copied = 1.0;  // what share of what it was measured to copy a plan has it copy (nested_copies.h)
};

// How the residual is stored, where there is one.
inline Storage ResidualStorage(const Candidate& candidate) {
  return candidate.norm < 0 ? candidate.output : candidate.kernel->key.output;
}
inline bool TakesWeight(const Candidate& candidate) {
  return candidate.kernel != nullptr && candidate.kernel->prepare != nullptr;
}
// Whether two kernels for one layer read the same packed form of its weight, which is then held once for both.
inline bool ReadSameForm(const Candidate& a, const Candidate& b) {
  if (!TakesWeight(a) || !TakesWeight(b)) return TakesWeight(a) == TakesWeight(b);
  return a.kernel->prepare == b.kernel->prepare && a.output.dtype == b.output.dtype && a.blocking == b.blocking;
}

// Whether it ran wherever it was tried: what does not takes infinitely long.
inline bool Runs(const Candidate& candidate) {
  return std::ranges::all_of(candidate.microseconds, [](double time) { return std::isfinite(time); });
}

// Drops from both what did not run at a batch size where it was tried: however little is known of the others, it is not
// to be chosen. `timed` are the candidates with what is known of their times. Where none
// runs, all stay.
inline void DropFailing(std::vector<Candidate>& timed, std::vector<Candidate>& candidates) {
  if (std::ranges::none_of(timed, Runs)) return;
  for (size_t i = timed.size(); i-- > 0;) {
    if (Runs(timed[i])) continue;
    candidates.erase(candidates.begin() + static_cast<std::ptrdiff_t>(i));
    timed.erase(timed.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

}  // namespace swizzle

#endif  // SWIZZLE_MODEL_LOADER_PLAN_CHOOSE_CANDIDATE_H_

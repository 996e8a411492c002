// What each format of weights gains: what kernels that read it take, beside dense ones of the same layers. Pure.
#ifndef SWIZZLE_MODEL_LOADER_PACK_FORMAT_GAINS_H_
#define SWIZZLE_MODEL_LOADER_PACK_FORMAT_GAINS_H_

#include <cstdint>
#include <vector>

#include "model_loader/plan/run/plan.h"

namespace swizzle::pack {

struct FormatGain {
  Format format = Format::kNone;
  int64_t layers = 0;  // whose weight it holds, and which have a dense kernel, too
  // Sums over these of the fastest kernels' times, at each of PlanReport::measured_batches.
  std::vector<double> microseconds, dense_microseconds;
};

// Of formats that are not dense and some layer's candidates read, in the order of the enumeration. Estimates count as
// times where a candidate was not measured.
std::vector<FormatGain> GainsOfFormats(const PlanReport& plan);

}  // namespace swizzle::pack

#endif  // SWIZZLE_MODEL_LOADER_PACK_FORMAT_GAINS_H_

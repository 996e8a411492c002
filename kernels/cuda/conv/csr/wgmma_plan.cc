#include "kernels/cuda/conv/csr/wgmma_plan.h"

#include <algorithm>

#include "kernels/base/integers.h"
#include "kernels/base/status.h"
#include "kernels/cuda/conv/operands/fitted_device.h"

namespace swizzle::cuda {
namespace {

constexpr int kMostSharers = 8;  // the largest cluster that every device with clusters has
constexpr int64_t kSlab = 64;    // rows of X that are multiplied at a time
constexpr int64_t kTile = 64;    // columns of Y of a CTA

// Microseconds, to compare plans: waves of clusters, each of which starts, multiplies its slabs and adds up. Fitted on
// an H200 to the times of all plans of 24 products, where products take longer than X takes to come.
class Estimate {
 public:
  Estimate(int64_t rows, int64_t cols, int64_t positions, const WgmmaDevice& device)
      : rows_(rows),
        slabs_(CeilDiv(cols, kSlab)),
        positions_(positions),
        device_(device),
        clock_(RelativeTimes(device.speed).clock),
        loading_(static_cast<double>(kSlab * kTile * sizeof(float)) / BytesOfMultiprocessor(device.speed)) {}

  double Microseconds(const WgmmaPlan& plan) const {
    const int64_t tiles = CeilDiv(rows_, plan.rows) * CeilDiv(positions_, kTile);
    const auto waves = static_cast<double>(CeilDiv(tiles, std::max(1, device_.clusters[plan.sharers])));
    const auto slabs = static_cast<double>(CeilDiv(slabs_, plan.sharers));
    const double adding = plan.sharers > 1 ? 0.15 * plan.sharers : 0;
    const double slab = std::max(clock_ * (plan.rows == 64 ? 1.2 : 1.78), loading_);
    return clock_ * 1.2 + waves * (clock_ * 1.4 + slabs * slab + clock_ * adding);
  }

 private:
  const int64_t rows_, slabs_, positions_;
  const WgmmaDevice& device_;
  const double clock_;    // a clock's time, an H200's being 1
  const double loading_;  // of a slab of X
};

}  // namespace

std::vector<WgmmaPlan> AllWgmmaPlans(int64_t cols) {
  std::vector<WgmmaPlan> plans;
  for (int rows : {64, 128}) {
    for (int sharers = 1; sharers <= kMostSharers; ++sharers) {
      if (sharers == 1 || sharers <= CeilDiv(cols, kSlab)) plans.push_back({rows, sharers});
    }
  }
  return plans;
}

WgmmaPlan MakeWgmmaPlan(int64_t rows, int64_t cols, int64_t positions, const WgmmaDevice& device) {
  const std::vector<WgmmaPlan> plans = AllWgmmaPlans(cols);
  const Estimate estimate(rows, cols, positions, device);
  return *std::min_element(plans.begin(), plans.end(), [&](const WgmmaPlan& a, const WgmmaPlan& b) {
    return estimate.Microseconds(a) < estimate.Microseconds(b);
  });
}

std::string WgmmaPlanText(const WgmmaPlan& plan) { return Concat("wgmma", plan.rows, " by ", plan.sharers); }

}  // namespace swizzle::cuda

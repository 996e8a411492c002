#include "kernels/cuda/conv/csr/spmm_plan.h"

#include <algorithm>
#include <cmath>

#include "kernels/base/integers.h"
#include "kernels/base/status.h"
#include "kernels/cuda/conv/csr/quad_csr.h"
#include "kernels/cuda/conv/operands/fitted_device.h"

namespace swizzle::cuda {
namespace {

constexpr int kMostSharers = 64;

int Vectors(SpmmWay way) { return way == SpmmWay::kTile256 ? 2 : 1; }
int64_t TileBytes(SpmmWay way) { return 128 * Vectors(way); }

double Tiles(SpmmWay way, int64_t columns, DType dtype) {
  const int64_t width = TileBytes(way) / static_cast<int64_t>(ElementBytes(dtype));
  return static_cast<double>(CeilDiv(columns, width));
}

bool Fits(SpmmWay way, const QuadCounts& weight, const SpmmDevice& device) {
  if (way == SpmmWay::kPieces) return true;
  return weight.has_short_columns() && weight.cols * TileBytes(way) <= device.shared_bytes;
}

// Estimates of microseconds, to compare plans of one way: what a launch adds up of, with weights fitted on an H200 to
// the times of all plans over a part of the DLMC, so that the plan chosen is close to the fastest (1 % on average, 15 %
// at worst). On other devices clocks take as long as theirs, and bytes of X what their memory lets expect.
class Estimate {
 public:
  Estimate(const QuadCounts& weight, int64_t columns, const SpmmDevice& device, DType dtype)
      : weight_(weight),
        columns_(columns),
        device_(device),
        multiprocessors_(device.speed.multiprocessors),
        clock_(RelativeTimes(device.speed).clock),
        byte_(RelativeTimes(device.speed).byte),
        dtype_(dtype),
        quads_(static_cast<double>(weight.quads)),
        mean_(static_cast<double>(weight.chunks) / std::max(1.0, quads_)) {}

  double Microseconds(const SpmmPlan& plan) const {
    return plan.way == SpmmWay::kPieces ? OfPieces(plan) : OfTile(plan);
  }

 private:
  // Clocks of the first cache's port for a chunk: its X, and its weights and columns.
  static double ChunkClocks(SpmmWay way) { return 16 * Vectors(way) + 6; }

  double OfPieces(const SpmmPlan& plan) const {
    const double tiles = Tiles(plan.way, columns_, dtype_);
    const double pieces = static_cast<double>(weight_.pieces[plan.cut]), parts = pieces / quads_;
    const double clocks = quads_ * mean_ * tiles * ChunkClocks(plan.way) / multiprocessors_;
    const double waves = std::ceil(pieces * tiles / multiprocessors_ / std::min<double>(kWarpsAtOnce, device_.warps));
    return clock_ * 1.07 + clock_ * (0.158 * mean_ / parts) + clock_ * (3.12e-4 * clocks) +
           byte_ * (5.8e-6 * SecondCacheBytes(tiles, 32 / parts)) + clock_ * (3.28 * waves);
  }

  // Of X for one multiprocessor, where this many rows share the first cache.
  double SecondCacheBytes(double tiles, double rows) const {
    const double entries = static_cast<double>(weight_.nonzeros);
    const double density = entries / std::max(1.0, quads_ * QuadCsr::kRows * static_cast<double>(weight_.cols));
    const double used = 1 - std::pow(1 - std::min(density, 1.0), rows);
    const double reuse = used > 0 ? rows * density / used : 1;
    const double width = std::min(static_cast<double>(columns_ * ElementBytes(dtype_)), tiles * 128);
    return entries * width / reuse / multiprocessors_;
  }

  double OfTile(const SpmmPlan& plan) const {
    const double warps = 16 * Vectors(plan.way);
    const double tile_bytes = static_cast<double>(weight_.cols * TileBytes(plan.way));
    const double ctas = Tiles(plan.way, columns_, dtype_) * plan.sharers;
    const double at_once = plan.way == SpmmWay::kTile128 && 2 * tile_bytes + 4096 <= device_.shared_bytes ? 2 : 1;
    const double busy = std::ceil(ctas / multiprocessors_), waves = std::ceil(ctas / multiprocessors_ / at_once);
    const double rounds = std::ceil(quads_ / (warps * plan.sharers));
    const double clocks = busy * rounds * std::min(warps, quads_ / plan.sharers) * mean_ * ChunkClocks(plan.way);
    if (plan.way == SpmmWay::kTile256) {
      return clock_ * (0.054 * rounds * mean_ * waves) + clock_ * (2.07e-4 * clocks) +
             byte_ * (2.45e-5 * busy * tile_bytes) + clock_ * ((0.06 + 0.23 * rounds) * waves);
    }
    return clock_ * (0.020 * rounds * mean_ * waves) + clock_ * (2.29e-4 * clocks) +
           byte_ * (2.23e-5 * busy * tile_bytes) + clock_ * ((0.13 + 0.62 * rounds) * waves);
  }

  static constexpr double kWarpsAtOnce = 40;  // of a multiprocessor, by their registers
  const QuadCounts& weight_;
  const int64_t columns_;
  const SpmmDevice& device_;
  const double multiprocessors_;
  const double clock_, byte_;  // times, an H200's being 1
  const DType dtype_;
  const double quads_, mean_;  // chunks of a quad
};

std::vector<SpmmPlan> PlansOf(SpmmWay way, const QuadCounts& weight) {
  std::vector<SpmmPlan> plans;
  if (way == SpmmWay::kPieces) {
    for (int cut = 0; cut < static_cast<int>(weight.pieces.size()); ++cut) plans.push_back({way, cut, 1});
  } else {
    for (int sharers = 1; sharers <= kMostSharers; sharers *= 2) plans.push_back({way, 0, sharers});
  }
  return plans;
}

}  // namespace

SpmmPlan MakeSpmmPlan(SpmmWay way, const QuadCounts& weight, int64_t columns, const SpmmDevice& device, DType dtype) {
  const std::vector<SpmmPlan> plans = PlansOf(Fits(way, weight, device) ? way : SpmmWay::kPieces, weight);
  const Estimate estimate(weight, columns, device, dtype);
  return *std::min_element(plans.begin(), plans.end(), [&](const SpmmPlan& a, const SpmmPlan& b) {
    return estimate.Microseconds(a) < estimate.Microseconds(b);
  });
}

std::vector<SpmmPlan> AllSpmmPlans(const QuadCounts& weight, const SpmmDevice& device) {
  std::vector<SpmmPlan> plans;
  for (SpmmWay way : {SpmmWay::kPieces, SpmmWay::kTile128, SpmmWay::kTile256}) {
    if (!Fits(way, weight, device)) continue;
    const auto more = PlansOf(way, weight);
    plans.insert(plans.end(), more.begin(), more.end());
  }
  return plans;
}

std::string SpmmPlanText(const SpmmPlan& plan) {
  if (plan.way == SpmmWay::kPieces) return Concat("pieces cut ", plan.cut);
  return Concat("tile", TileBytes(plan.way), " by ", plan.sharers);
}

}  // namespace swizzle::cuda

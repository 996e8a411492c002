// How products of conv_csr.h are laid over a device, by what the device and the weight are. Values and pure functions,
// on the host; no GPU is needed.
#ifndef SWIZZLE_KERNELS_CUDA_CONV_CSR_SPMM_PLAN_H_
#define SWIZZLE_KERNELS_CUDA_CONV_CSR_SPMM_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/backend/device_speed.h"
#include "kernels/base/dtype.h"

namespace swizzle::cuda {

struct SpmmDevice {
  DeviceSpeed speed;
  int warps = 64;            // that a multiprocessor has at once, at most
  int64_t shared_bytes = 0;  // that a CTA may have
};

// What a weight's plans go by; see QuadCsr.
struct QuadCounts {
  static constexpr int64_t kMostShortColumns = 65536;

  int64_t cols = 0;
  int64_t quads = 0;
  int64_t chunks = 0;
  int64_t nonzeros = 0;
  std::vector<int64_t> pieces;  // of each cut that have something to do, from coarse to fine; at least one cut

  bool has_short_columns() const { return cols <= kMostShortColumns; }
};

enum class SpmmWay : uint8_t { kPieces, kTile128, kTile256 };

struct SpmmPlan {
  SpmmWay way = SpmmWay::kPieces;
  int cut = 0;      // kPieces: which of QuadCsr::cuts()
  int sharers = 1;  // tiles: CTAs that share the quads of a column tile
};

// The plan of this way that an estimate finds fastest; kPieces where the way does not fit.
SpmmPlan MakeSpmmPlan(SpmmWay way, const QuadCounts& weight, int64_t columns, const SpmmDevice& device, DType dtype);
// All that could be taken, for benchmarks and tests.
std::vector<SpmmPlan> AllSpmmPlans(const QuadCounts& weight, const SpmmDevice& device);
std::string SpmmPlanText(const SpmmPlan& plan);  // "tile128 by 16"

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_CONV_CSR_SPMM_PLAN_H_

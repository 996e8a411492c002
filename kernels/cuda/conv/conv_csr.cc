#include "kernels/cuda/conv/conv_csr.h"

#include <algorithm>
#include <cmath>

#include "kernels/base/integers.h"
#include "kernels/cuda/conv/im2col.h"
#include "kernels/cuda/runtime/queue.h"
#include "kernels/cuda/runtime/shared_memory.h"
#include "kernels/format/csr.h"

namespace swizzle::cuda {
namespace {

class ConvCsrWeight final : public PackedWeight {
 public:
  ConvCsrWeight(std::unique_ptr<QuadCsr> matrix, const SpmmDevice& device)
      : matrix_(std::move(matrix)), device_(device) {}
  size_t bytes() const override { return matrix_->bytes(); }
  const QuadCsr& matrix() const { return *matrix_; }
  const SpmmDevice& device() const { return device_; }

 private:
  const std::unique_ptr<QuadCsr> matrix_;
  const SpmmDevice device_;
};

void Run(const KernelArgs& args, Stream& stream, SpmmWay way) {
  const Problem& problem = *args.problem;
  const auto& weight = static_cast<const ConvCsrWeight&>(*args.weight);
  const cudaStream_t queue = QueueOf(stream);
  const SpmmOperands operands = {
      .weight = &weight.matrix(),
      .dtype = problem.to.dtype,
      .x = AllColumns(args, stream),
      .residual = problem.epilogue.residual ? args.inputs[1].data : nullptr,
      .y = args.output.data,
      .stride = RowStride(problem.output.positions()),
      .columns = problem.output.positions(),
      .epilogue = problem.epilogue,
  };
  QueueSpmm(operands, MakeSpmmPlan(way, weight.matrix(), operands.columns, weight.device(), problem.to.dtype), queue);
}

constexpr int kMostSharers = 64;

int Vectors(SpmmWay way) { return way == SpmmWay::kTile256 ? 2 : 1; }
int64_t TileBytes(SpmmWay way) { return 128 * Vectors(way); }

double Tiles(SpmmWay way, int64_t columns, DType dtype) {
  const int64_t width = TileBytes(way) / static_cast<int64_t>(ElementBytes(dtype));
  return static_cast<double>(CeilDiv(columns, width));
}

bool Fits(SpmmWay way, const QuadCsr& weight, const SpmmDevice& device) {
  if (way == SpmmWay::kPieces) return true;
  return weight.has_short_columns() && weight.cols() * TileBytes(way) <= device.shared_bytes;
}

// Estimates of microseconds, to compare plans of one way: what a launch adds up of, with weights fitted on an H200 to
// the times of all plans over a part of the DLMC, so that the plan chosen is close to the fastest (1 % on average, 15 %
// at worst).
class Estimate {
 public:
  Estimate(const QuadCsr& weight, int64_t columns, const SpmmDevice& device, DType dtype)
      : weight_(weight),
        columns_(columns),
        device_(device),
        dtype_(dtype),
        quads_(static_cast<double>(weight.quads())),
        mean_(static_cast<double>(weight.chunks()) / std::max(1.0, quads_)) {}

  double Microseconds(const SpmmPlan& plan) const {
    return plan.way == SpmmWay::kPieces ? OfPieces(plan) : OfTile(plan);
  }

 private:
  // Clocks of the first cache's port for a chunk: its X, and its weights and columns.
  static double ChunkClocks(SpmmWay way) { return 16 * Vectors(way) + 6; }

  double OfPieces(const SpmmPlan& plan) const {
    const double tiles = Tiles(plan.way, columns_, dtype_);
    const double pieces = static_cast<double>(weight_.cuts()[plan.cut].pieces), parts = pieces / quads_;
    const double clocks = quads_ * mean_ * tiles * ChunkClocks(plan.way) / device_.multiprocessors;
    const double waves = std::ceil(pieces * tiles / device_.multiprocessors / kWarpsAtOnce);
    return 1.07 + 0.158 * mean_ / parts + 3.12e-4 * clocks + 5.8e-6 * SecondCacheBytes(tiles, 32 / parts) +
           3.28 * waves;
  }

  // Of X for one multiprocessor, where this many rows share the first cache.
  double SecondCacheBytes(double tiles, double rows) const {
    const double entries = static_cast<double>(weight_.nonzeros());
    const double density = entries / std::max(1.0, quads_ * QuadCsr::kRows * static_cast<double>(weight_.cols()));
    const double used = 1 - std::pow(1 - std::min(density, 1.0), rows);
    const double reuse = used > 0 ? rows * density / used : 1;
    const double width = std::min(static_cast<double>(columns_ * ElementBytes(dtype_)), tiles * 128);
    return entries * width / reuse / device_.multiprocessors;
  }

  double OfTile(const SpmmPlan& plan) const {
    const double warps = 16 * Vectors(plan.way);
    const double tile_bytes = static_cast<double>(weight_.cols() * TileBytes(plan.way));
    const double ctas = Tiles(plan.way, columns_, dtype_) * plan.sharers;
    const double at_once = plan.way == SpmmWay::kTile128 && 2 * tile_bytes + 4096 <= device_.shared_bytes ? 2 : 1;
    const double busy = std::ceil(ctas / device_.multiprocessors),
                 waves = std::ceil(ctas / device_.multiprocessors / at_once);
    const double rounds = std::ceil(quads_ / (warps * plan.sharers));
    const double clocks = busy * rounds * std::min(warps, quads_ / plan.sharers) * mean_ * ChunkClocks(plan.way);
    if (plan.way == SpmmWay::kTile256) {
      return 0.054 * rounds * mean_ * waves + 2.07e-4 * clocks + 2.45e-5 * busy * tile_bytes +
             (0.06 + 0.23 * rounds) * waves;
    }
    return 0.020 * rounds * mean_ * waves + 2.29e-4 * clocks + 2.23e-5 * busy * tile_bytes +
           (0.13 + 0.62 * rounds) * waves;
  }

  static constexpr double kWarpsAtOnce = 40;  // of a multiprocessor
  const QuadCsr& weight_;
  const int64_t columns_;
  const SpmmDevice& device_;
  const DType dtype_;
  const double quads_, mean_;  // chunks of a quad
};

std::vector<SpmmPlan> PlansOf(SpmmWay way, const QuadCsr& weight) {
  std::vector<SpmmPlan> plans;
  if (way == SpmmWay::kPieces) {
    for (int cut = 0; cut < static_cast<int>(weight.cuts().size()); ++cut) plans.push_back({way, cut, 1});
  } else {
    for (int sharers = 1; sharers <= kMostSharers; sharers *= 2) plans.push_back({way, 0, sharers});
  }
  return plans;
}

}  // namespace

SpmmDevice CurrentSpmmDevice() {
  SpmmDevice device;
  int ordinal = 0;
  cudaGetDevice(&ordinal);
  cudaDeviceGetAttribute(&device.multiprocessors, cudaDevAttrMultiProcessorCount, ordinal);
  device.shared_bytes = static_cast<int64_t>(MostSharedMemory());
  return device;
}

SpmmPlan MakeSpmmPlan(SpmmWay way, const QuadCsr& weight, int64_t columns, const SpmmDevice& device, DType dtype) {
  const std::vector<SpmmPlan> plans = PlansOf(Fits(way, weight, device) ? way : SpmmWay::kPieces, weight);
  const Estimate estimate(weight, columns, device, dtype);
  return *std::min_element(plans.begin(), plans.end(), [&](const SpmmPlan& a, const SpmmPlan& b) {
    return estimate.Microseconds(a) < estimate.Microseconds(b);
  });
}

std::vector<SpmmPlan> AllSpmmPlans(const QuadCsr& weight, const SpmmDevice& device) {
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

StatusOr<std::unique_ptr<PackedWeight>> PrepareConvCsr(const Weight& weight, const Problem& problem) {
  SWIZZLE_ASSIGN_OR_RETURN(const auto csr, weight.matrix.In<CsrMatrix>());
  SWIZZLE_ASSIGN_OR_RETURN(auto packed, QuadCsr::Make(*csr, weight.bias, problem.to.dtype));
  return std::make_unique<ConvCsrWeight>(std::move(packed), CurrentSpmmDevice());
}

size_t ConvCsrWorkspaceBytes(const Problem& problem) {
  if (problem.window().IsPointwise()) return 0;
  const int64_t rows = problem.input.channels * problem.window().taps();
  return static_cast<size_t>(rows * RowStride(problem.output.positions())) * ElementBytes(problem.to.dtype);
}

void RunConvCsrPieces(const KernelArgs& args, Stream& stream) { Run(args, stream, SpmmWay::kPieces); }
void RunConvCsrTile128(const KernelArgs& args, Stream& stream) { Run(args, stream, SpmmWay::kTile128); }
void RunConvCsrTile256(const KernelArgs& args, Stream& stream) { Run(args, stream, SpmmWay::kTile256); }

}  // namespace swizzle::cuda

#include "kernels/cuda/conv/conv_csr_wgmma.h"

#include <algorithm>

#include "kernels/base/integers.h"
#include "kernels/cuda/conv/im2col.h"
#include "kernels/cuda/runtime/queue.h"
#include "kernels/format/csr.h"

namespace swizzle::cuda {
namespace {

constexpr int kMostSharers = 8;  // the largest cluster that every device with clusters has

class WgmmaWeight final : public PackedWeight {
 public:
  WgmmaWeight(std::unique_ptr<FragmentCsr> matrix, const WgmmaDevice& device)
      : matrix_(std::move(matrix)), device_(device) {}
  size_t bytes() const override { return matrix_->bytes(); }
  const FragmentCsr& matrix() const { return *matrix_; }
  const WgmmaDevice& device() const { return device_; }

 private:
  const std::unique_ptr<FragmentCsr> matrix_;
  const WgmmaDevice device_;
};

int64_t Slabs(const FragmentCsr& weight) { return weight.steps() * FragmentCsr::kBlock / FragmentCsr::kColumnUnit; }

// Microseconds, to compare plans: waves of clusters, each of which starts, multiplies its slabs and adds up. Fitted on
// an H200 to the times of all plans of 24 products.
double Estimate(const WgmmaPlan& plan, const FragmentCsr& weight, int64_t columns, const WgmmaDevice& device) {
  const int64_t tiles = CeilDiv(weight.rows(), plan.rows) * CeilDiv(columns, 64);
  const auto waves = static_cast<double>(CeilDiv(tiles, std::max(1, device.clusters[plan.sharers])));
  const auto slabs = static_cast<double>(CeilDiv(Slabs(weight), plan.sharers));
  const double adding = plan.sharers > 1 ? 0.15 * plan.sharers : 0;
  return 1.2 + waves * (1.4 + slabs * (plan.rows == 64 ? 1.2 : 1.78) + adding);
}

}  // namespace

std::vector<WgmmaPlan> AllWgmmaPlans(const FragmentCsr& weight) {
  std::vector<WgmmaPlan> plans;
  for (int rows : {64, 128}) {
    for (int sharers = 1; sharers <= kMostSharers; ++sharers) {
      if (sharers == 1 || sharers <= Slabs(weight)) plans.push_back({rows, sharers});
    }
  }
  return plans;
}

WgmmaPlan MakeWgmmaPlan(const FragmentCsr& weight, int64_t columns, const WgmmaDevice& device) {
  const std::vector<WgmmaPlan> plans = AllWgmmaPlans(weight);
  return *std::min_element(plans.begin(), plans.end(), [&](const WgmmaPlan& a, const WgmmaPlan& b) {
    return Estimate(a, weight, columns, device) < Estimate(b, weight, columns, device);
  });
}

std::string WgmmaPlanText(const WgmmaPlan& plan) { return Concat("wgmma", plan.rows, " by ", plan.sharers); }

StatusOr<std::unique_ptr<PackedWeight>> PrepareConvCsrWgmma(const Weight& weight, const Problem&) {
  SWIZZLE_ASSIGN_OR_RETURN(const auto csr, weight.matrix.In<CsrMatrix>());
  SWIZZLE_ASSIGN_OR_RETURN(auto packed, FragmentCsr::Make(*csr, weight.bias));
  return std::make_unique<WgmmaWeight>(std::move(packed), CurrentWgmmaDevice());
}

void RunConvCsrWgmma(const KernelArgs& args, Stream& stream) {
  const Problem& problem = *args.problem;
  const auto& weight = static_cast<const WgmmaWeight&>(*args.weight);
  const WgmmaOperands operands = {
      .weight = &weight.matrix(),
      .x = static_cast<const float*>(AllColumns(args, stream)),
      .residual = args.Residual<float>(),
      .y = args.Output<float>(),
      .stride = RowStride(problem.output.positions()),
      .columns = problem.output.positions(),
      .epilogue = problem.epilogue,
  };
  QueueWgmma(operands, MakeWgmmaPlan(weight.matrix(), operands.columns, weight.device()), QueueOf(stream));
}

}  // namespace swizzle::cuda

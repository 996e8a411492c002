#include "kernels/cuda/conv/csr/conv_csr_wgmma.h"

#include "kernels/cuda/conv/operands/im2col.h"
#include "kernels/cuda/runtime/queue.h"
#include "kernels/format/csr.h"

namespace swizzle::cuda {
namespace {

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

}  // namespace

StatusOr<std::unique_ptr<PackedWeight>> PrepareConvCsrWgmma(const Weight& weight, const Problem&) {
  SWIZZLE_ASSIGN_OR_RETURN(const auto csr, weight.matrix.In<CsrMatrix>());
  SWIZZLE_ASSIGN_OR_RETURN(auto packed, FragmentCsr::Make(*csr, weight.bias));
  return std::make_unique<WgmmaWeight>(std::move(packed), CurrentWgmmaDevice());
}

const FragmentCsr& FragmentCsrOf(const PackedWeight& weight) {
  return static_cast<const WgmmaWeight&>(weight).matrix();
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
  const FragmentCsr& matrix = weight.matrix();
  QueueWgmma(operands, MakeWgmmaPlan(matrix.rows(), matrix.cols(), operands.columns, weight.device()), QueueOf(stream));
}

}  // namespace swizzle::cuda

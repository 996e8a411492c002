#include "kernels/cuda/conv/csr/conv_csr.h"

#include "kernels/cuda/conv/operands/im2col.h"
#include "kernels/cuda/runtime/device_facts.h"
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
  const SpmmPlan plan =
      MakeSpmmPlan(way, weight.matrix().counts(), operands.columns, weight.device(), problem.to.dtype);
  QueueSpmm(operands, plan, queue);
}

}  // namespace

SpmmDevice CurrentSpmmDevice() {
  const DeviceFacts& facts = CurrentDeviceFacts();
  return {facts.speed, facts.warps, static_cast<int64_t>(MostSharedMemory())};
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

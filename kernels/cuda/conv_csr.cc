#include "kernels/cuda/conv_csr.h"

#include <algorithm>

#include "kernels/cuda/cuda_stream.h"
#include "kernels/cuda/im2col.h"

namespace swizzle::cuda {
namespace {

class ConvCsrWeight final : public PackedWeight {
 public:
  ConvCsrWeight(std::unique_ptr<QuadCsr> matrix, const SpmmDevice& device) : matrix_(std::move(matrix)), device_(device) {}
  size_t bytes() const override { return matrix_->bytes(); }
  const QuadCsr& matrix() const { return *matrix_; }
  const SpmmDevice& device() const { return device_; }

 private:
  const std::unique_ptr<QuadCsr> matrix_;
  const SpmmDevice device_;
};

StatusOr<std::unique_ptr<PackedWeight>> Prepare(const Weight& weight, DType dtype) {
  const auto* sparse = std::get_if<CsrMatrix>(&weight.matrix);
  const CsrMatrix converted = sparse == nullptr ? CsrMatrix::FromDense(std::get<DenseMatrix>(weight.matrix)) : CsrMatrix();
  SWIZZLE_ASSIGN_OR_RETURN(auto matrix, QuadCsr::Make(sparse == nullptr ? converted : *sparse, weight.bias, dtype));
  return std::make_unique<ConvCsrWeight>(std::move(matrix), CurrentSpmmDevice());
}

void Run(const KernelArgs& args, Stream& stream, DType dtype) {
  const Problem& problem = *args.problem;
  const auto& weight = static_cast<const ConvCsrWeight&>(*args.weight);
  const cudaStream_t queue = CudaStream::From(stream).queue();
  const void* x = args.inputs[0];
  if (!problem.window.IsPointwise()) {
    GatherColumns(problem, x, {0, RowStride(problem.output.positions()), args.workspace.data()}, CudaStream::From(stream));
    x = args.workspace.data();
  }
  const SpmmOperands operands = {
      .weight = &weight.matrix(),
      .dtype = dtype,
      .x = x,
      .residual = problem.epilogue.residual ? args.inputs[1] : nullptr,
      .y = args.output,
      .stride = RowStride(problem.output.positions()),
      .columns = problem.output.positions(),
      .low = problem.epilogue.low,
      .high = problem.epilogue.high,
  };
  QueueSpmm(operands, MakeSpmmPlan(weight.matrix(), operands.columns, weight.device(), dtype), queue);
}

constexpr int kWarpsOfMultiprocessor = 16;  // that hide each other's latency
constexpr int kVectorTileBytes = 128;

int64_t Tiles(int64_t columns, int vectors, DType dtype) {
  const int64_t width = kVectorTileBytes * vectors / static_cast<int64_t>(ElementBytes(dtype));
  return (columns + width - 1) / width;
}

}  // namespace

SpmmDevice CurrentSpmmDevice() {
  SpmmDevice device;
  int ordinal = 0, major = 0;
  cudaGetDevice(&ordinal);
  cudaDeviceGetAttribute(&device.multiprocessors, cudaDevAttrMultiProcessorCount, ordinal);
  cudaDeviceGetAttribute(&device.shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, ordinal);
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, ordinal);
  device.clusters = major >= 9;
  return device;
}

bool Fits(const SpmmPlan& plan, const QuadCsr& weight, const SpmmDevice& device) {
  if (!weight.has_short_columns() && (plan.way != SpmmPlan::Way::kPieces || plan.vectors > 1)) return false;
  switch (plan.way) {
    case SpmmPlan::Way::kPieces: return plan.cut < static_cast<int>(weight.cuts().size());
    case SpmmPlan::Way::kCluster: return device.clusters;
    case SpmmPlan::Way::kTile: return weight.cols() * kVectorTileBytes * plan.vectors <= device.shared_bytes;
  }
  return false;
}

SpmmPlan MakeSpmmPlan(const QuadCsr& weight, int64_t columns, const SpmmDevice& device, DType dtype) {
  SpmmPlan plan;
  const int64_t tiles = Tiles(columns, plan.vectors, dtype);
  const int64_t wanted = int64_t{device.multiprocessors} * kWarpsOfMultiprocessor;
  const int finest = static_cast<int>(weight.cuts().size()) - 1;
  while (plan.cut < finest && weight.cuts()[plan.cut].pieces * tiles < wanted) ++plan.cut;
  return plan;
}

std::vector<SpmmPlan> AllSpmmPlans(const QuadCsr& weight, const SpmmDevice& device) {
  using Way = SpmmPlan::Way;
  std::vector<SpmmPlan> plans;
  for (int vectors : {1, 2, 4}) {
    for (int cut = 0; cut < static_cast<int>(weight.cuts().size()); ++cut) plans.push_back({Way::kPieces, vectors, cut, 1});
    for (int parts : {2, 4, 8}) plans.push_back({Way::kCluster, vectors, 0, parts});
    for (int parts : {1, 2, 4, 8, 16, 32}) plans.push_back({Way::kTile, vectors, 0, parts});
  }
  std::erase_if(plans, [&](const SpmmPlan& plan) { return !Fits(plan, weight, device); });
  return plans;
}

std::string SpmmPlanText(const SpmmPlan& plan) {
  switch (plan.way) {
    case SpmmPlan::Way::kPieces: return Concat("pieces v", plan.vectors, " c", plan.cut);
    case SpmmPlan::Way::kCluster: return Concat("cluster v", plan.vectors, " x", plan.parts);
    case SpmmPlan::Way::kTile: return Concat("tile v", plan.vectors, " x", plan.parts);
  }
  return "";
}

bool AcceptsConvCsrF32(const Problem& problem) { return problem.dtype == DType::kFloat32; }
bool AcceptsConvCsrF16(const Problem& problem) { return problem.dtype == DType::kFloat16; }
bool AcceptsConvCsrBf16(const Problem& problem) { return problem.dtype == DType::kBFloat16; }

StatusOr<std::unique_ptr<PackedWeight>> PrepareConvCsrF32(const Weight& weight, const Problem&) {
  return Prepare(weight, DType::kFloat32);
}
StatusOr<std::unique_ptr<PackedWeight>> PrepareConvCsrF16(const Weight& weight, const Problem&) {
  return Prepare(weight, DType::kFloat16);
}
StatusOr<std::unique_ptr<PackedWeight>> PrepareConvCsrBf16(const Weight& weight, const Problem&) {
  return Prepare(weight, DType::kBFloat16);
}

size_t ConvCsrWorkspaceBytes(const Problem& problem) {
  if (problem.window.IsPointwise()) return 0;
  const int64_t rows = problem.input.channels * problem.window.kernel_h * problem.window.kernel_w;
  return static_cast<size_t>(rows * RowStride(problem.output.positions())) * ElementBytes(problem.dtype);
}

void RunConvCsrF32(const KernelArgs& args, Stream& stream) { Run(args, stream, DType::kFloat32); }
void RunConvCsrF16(const KernelArgs& args, Stream& stream) { Run(args, stream, DType::kFloat16); }
void RunConvCsrBf16(const KernelArgs& args, Stream& stream) { Run(args, stream, DType::kBFloat16); }

}  // namespace swizzle::cuda

#include "tests/kernels/format/made_up/made_up_backend.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "tests/kernels/fake_backend.h"
#include "tests/kernels/format/made_up/made_up_matrix.h"

namespace swizzle::testing {
namespace {

class MadeUpWeight final : public PackedWeight {
 public:
  MadeUpWeight(std::shared_ptr<const MadeUpMatrix> from, std::vector<float> from_bias)
      : matrix(std::move(from)), bias(std::move(from_bias)) {}
  size_t bytes() const override { return StoredBytes(*matrix) + bias.size() * sizeof(float); }

  const std::shared_ptr<const MadeUpMatrix> matrix;
  const std::vector<float> bias;
};

bool AcceptsPointwise(const Problem& problem) {
  return problem.window().IsPointwise() && !problem.epilogue.residual && !problem.epilogue.function;
}

bool HoldsWideWeights(const Weight& weight, const Problem&) { return weight.cols() >= 8; }

StatusOr<std::unique_ptr<PackedWeight>> Prepare(const Weight& weight, const Problem&) {
  SWIZZLE_ASSIGN_OR_RETURN(auto matrix, weight.matrix.In<MadeUpMatrix>());
  return std::make_unique<MadeUpWeight>(std::move(matrix), weight.bias);
}

// Over kNchw, whose images are [channels][plane].
void Run(const KernelArgs& args, Stream&) {
  const Problem& problem = *args.problem;
  const auto& weight = static_cast<const MadeUpWeight&>(*args.weight);
  const DenseMatrix dense = weight.matrix->ToDense();
  const int64_t plane = problem.input.plane();
  for (int64_t i = 0; i < problem.output.batch * dense.rows * plane; ++i) {
    const int64_t image = i / (dense.rows * plane), row = i / plane % dense.rows, position = i % plane;
    float sum = weight.bias.empty() ? 0 : weight.bias[row];
    for (int64_t col = 0; col < dense.cols; ++col) {
      sum += dense.values[row * dense.cols + col] * args.Input<float>(0)[(image * dense.cols + col) * plane + position];
    }
    args.Output<float>()[i] = std::clamp(sum, problem.epilogue.low, problem.epilogue.high);
  }
}

constexpr Kernel kRow = {
    .name = "conv_made_up_f32_base",
    .key = {.op = Op::kConv,
            .weights = MadeUpMatrix::kFormat,
            .weight_dtype = DType::kInt8,
            .input = {Layout::kNchw, DType::kFloat32},
            .output = {Layout::kNchw, DType::kFloat32}},
    .required_features = 0,
    .accepts = AcceptsPointwise,
    .prepare = Prepare,
    .workspace_bytes = nullptr,
    .run = Run,
    .holds = HoldsWideWeights,
};

// That row, and the CPU's but for sparse convolutions.
std::vector<Kernel> Rows(const Backend& cpu) {
  std::vector<Kernel> rows = {kRow};
  std::ranges::copy_if(cpu.kernels(), std::back_inserter(rows), [](const Kernel& kernel) {
    return kernel.key.op != Op::kConv || !IsSparse(kernel.key.weights);
  });
  return rows;
}

}  // namespace

std::unique_ptr<Backend> NewMadeUpBackend() {
  const auto cpu = NewCpuBackend();
  static const std::vector<Kernel> rows = Rows(*cpu);
  return std::make_unique<FakeBackend>(rows, cpu->features());
}

}  // namespace swizzle::testing

#include "kernels/cpu/conv/onednn_linear.h"

#include "kernels/cpu/conv/linear_ending.h"
#include "kernels/cpu/conv/sgemm.h"
#include "kernels/cpu/runtime/cpu_stream.h"

namespace swizzle::cpu {
namespace {

// W as the model has it, [output features, input features]. Immutable.
class LinearWeight final : public PackedWeight {
 public:
  explicit LinearWeight(const Weight& weight) : matrix(weight.ToDense()), bias(weight.bias) {
    bias.resize(matrix.rows, 0.0f);
  }
  size_t bytes() const override { return (matrix.values.size() + bias.size()) * sizeof(float); }

  DenseMatrix matrix;
  std::vector<float> bias;
};

}  // namespace

bool AcceptsOnednnLinear(const Problem& problem) {
  return problem.window().IsPointwise() && problem.input.plane() == 1 && problem.output.plane() == 1;
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareOnednnLinear(const Weight& weight, const Problem&) {
  SWIZZLE_RETURN_IF_ERROR(PrepareSgemm());
  return std::make_unique<LinearWeight>(weight);
}

void RunOnednnLinear(const KernelArgs& args, Stream& stream) {
  const auto& weight = static_cast<const LinearWeight&>(*args.weight);
  const Problem& problem = *args.problem;
  const int64_t batch = problem.input.batch;
  const int64_t rows = weight.matrix.rows;
  const int64_t depth = weight.matrix.cols;
  const float *const input = args.Input<float>(0), *const residuals = args.Residual<float>();
  float* const output = args.Output<float>();
  CpuStream& cpu_stream = CpuStream::From(stream);
  cpu_stream.ParallelRanges(rows, [&](int64_t, int64_t begin, int64_t end) {
    cpu_stream.Keep(Sgemm(batch, end - begin, depth, {input, depth},
                          {weight.matrix.values.data() + begin * depth, depth, /*transposed=*/true}, output + begin,
                          rows));
    for (int64_t i = 0; i < batch; ++i) {
      const float* residual = residuals == nullptr ? nullptr : residuals + i * rows;
      FinishFeatures(problem.epilogue, weight.bias.data(), residual, begin, end, output + i * rows);
    }
  });
}

}  // namespace swizzle::cpu

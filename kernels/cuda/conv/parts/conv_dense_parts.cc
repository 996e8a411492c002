#include "kernels/cuda/conv/parts/conv_dense_parts.h"

#include <utility>
#include <vector>

#include "kernels/base/integers.h"
#include "kernels/cuda/conv/dense/dense_epilogue.h"
#include "kernels/cuda/conv/dense/dense_weight.h"
#include "kernels/cuda/conv/operands/column_blocks.h"
#include "kernels/cuda/conv/operands/half_parts.h"
#include "kernels/cuda/conv/operands/im2col.h"
#include "kernels/cuda/conv/operands/position_parts.h"
#include "kernels/cuda/runtime/cublas_matmul.h"
#include "kernels/cuda/runtime/device_array.h"

namespace swizzle::cuda {
namespace {

constexpr int64_t kAlignment = 256;
constexpr int64_t kMostColumnBytes = int64_t{16} << 20;  // of a block of columns, whose parts are half as much again

// Rows of [rests][uppers][uppers], which meet a line's uppers, rests and uppers.
class LinePartsWeight final : public PackedWeight {
 public:
  LinePartsWeight(DeviceArray<uint16_t> matrix, DeviceArray<float> inverses, DeviceArray<float> bias)
      : matrix_(std::move(matrix)), inverses_(std::move(inverses)), bias_(std::move(bias)) {}
  size_t bytes() const override { return matrix_.bytes() + inverses_.bytes() + bias_.bytes(); }
  const uint16_t* matrix() const { return matrix_.data(); }
  const float* inverses() const { return inverses_.data(); }
  const float* bias() const { return bias_.data(); }

 private:
  const DeviceArray<uint16_t> matrix_;
  const DeviceArray<float> inverses_, bias_;
};

// What lies in the workspace, one after the other: the columns of a block, their parts, and all positions' inverses.
struct LineWorkspace {
  ColumnBlocks blocks;
  int64_t depth, line;                // numbers, halves
  int64_t columns, halves, inverses;  // bytes

  explicit LineWorkspace(const Problem& problem)
      : blocks(problem, problem.output.positions(), kMostColumnBytes),
        depth(problem.input.channels * problem.window().taps()),
        line(3 * PartOfLine(depth)),
        columns(RoundUp(blocks.workspace_bytes(), kAlignment)),
        halves(RoundUp(blocks.step() * line * int64_t{sizeof(uint16_t)}, kAlignment)),
        inverses(problem.output.positions() * int64_t{sizeof(float)}) {}
};

Status MultiplyLines(const KernelArgs& args, const PositionParts& lines, int64_t line, int64_t begin, int64_t count,
                     CudaStream& stream) {
  Product product;
  product.dtype = DType::kFloat16;
  product.keeps_sums = true;
  product.m = args.problem->output.channels;
  product.n = count;
  product.k = line;
  product.a = {static_cast<const LinePartsWeight&>(*args.weight).matrix(), product.k, 0, /*is_weight=*/true};
  product.transpose_a = true;
  product.b = {lines.halves, product.k};
  product.d = args.Output<float>() + begin * product.m;
  product.ld_d = product.m;
  return QueueProduct(product, stream);
}

}  // namespace

StatusOr<std::unique_ptr<PackedWeight>> PrepareConvNhwcParts(const Weight& weight, const Problem& problem) {
  DenseMatrix matrix = weight.ToDense();
  const int64_t taps = problem.window().taps(), part = PartOfLine(matrix.cols);
  if (taps > 1) matrix.values = ChannelsInnermost(matrix, taps);
  std::vector<uint16_t> halves(matrix.rows * 3 * part);
  std::vector<float> inverses, bias = weight.bias;
  bias.resize(matrix.rows);
  for (int64_t row = 0; row < matrix.rows; ++row) {
    const std::span<const float> values = std::span(matrix.values).subspan(row * matrix.cols, matrix.cols);
    RowFit fit;
    for (const float value : values) fit.See(value);
    inverses.push_back(fit.inverse());
    uint16_t* to = halves.data() + row * 3 * part;
    for (const float value : values) {
      const HalfParts parts = fit.PartsOf(value);
      to[0] = parts.rest, to[part] = to[2 * part] = parts.upper;
      ++to;
    }
  }
  SWIZZLE_ASSIGN_OR_RETURN(auto on_device, DeviceArray<uint16_t>::Upload(halves));
  SWIZZLE_ASSIGN_OR_RETURN(auto device_inverses, DeviceArray<float>::Upload(inverses));
  SWIZZLE_ASSIGN_OR_RETURN(auto device_bias, DeviceArray<float>::Upload(bias));
  return std::make_unique<LinePartsWeight>(std::move(on_device), std::move(device_inverses), std::move(device_bias));
}

size_t ConvNhwcPartsWorkspaceBytes(const Problem& problem) {
  const LineWorkspace workspace(problem);
  return static_cast<size_t>(workspace.columns + workspace.halves + workspace.inverses);
}

void ConvNhwcParts(const KernelArgs& args, Stream& stream) {
  const LineWorkspace workspace(*args.problem);
  CudaStream& cuda_stream = CudaStream::From(stream);
  std::byte* const lines = args.workspace.data() + workspace.columns;
  auto* const inverses = reinterpret_cast<float*>(lines + workspace.halves);
  cuda_stream.Report(
      workspace.blocks.ForEach(args, stream, GatherColumnsNhwc, [&](const void* columns, int64_t begin, int64_t count) {
        const PositionParts parts = {lines, inverses + begin};
        SplitLines(static_cast<const float*>(columns), count, workspace.depth, parts, stream);
        return MultiplyLines(args, parts, workspace.line, begin, count, cuda_stream);
      }));
  const auto& weight = static_cast<const LinePartsWeight&>(*args.weight);
  FinishParts(args, {weight.bias(), weight.inverses(), inverses}, stream);
}

}  // namespace swizzle::cuda

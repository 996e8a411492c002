#include "kernels/cuda/conv/dense/conv_dense_cublaslt.h"

#include <algorithm>

#include "kernels/cuda/conv/dense/dense_epilogue.h"
#include "kernels/cuda/conv/dense/dense_weight.h"
#include "kernels/cuda/conv/operands/column_blocks.h"
#include "kernels/cuda/conv/operands/im2col.h"
#include "kernels/cuda/runtime/cublas_matmul.h"
#include "kernels/cuda/runtime/cuda_stream.h"

namespace swizzle::cuda {
namespace {

int64_t Depth(const Problem& problem) { return problem.input.channels * problem.window().taps(); }

int64_t ElementSize(const Problem& problem) { return static_cast<int64_t>(ElementBytes(problem.to.dtype)); }

const std::byte* At(const void* data, int64_t bytes) { return static_cast<const std::byte*>(data) + bytes; }

// Of one block: half of a large second cache.
constexpr int64_t kMostColumnBytes = int64_t{32} << 20;

// Of kRows, spare positions included, and of kNhwc.
ColumnBlocks RowBlocks(const Problem& problem) {
  return {problem, RowStride(problem.output.positions()), kMostColumnBytes};
}
ColumnBlocks NhwcBlocks(const Problem& problem) { return {problem, problem.output.positions(), kMostColumnBytes}; }

// Rows [0, M) of the output from position `begin` on, from as many positions of `columns`. Spare positions are computed
// too: whole vectors, and nobody reads them.
template <bool kTf32>
Status MultiplyColumns(const KernelArgs& args, const void* columns, int64_t begin, int64_t count, bool adds,
                       CudaStream& stream) {
  const Problem& problem = *args.problem;
  const int64_t offset = begin * ElementSize(problem);
  Product product;
  product.dtype = problem.to.dtype;
  product.tf32 = kTf32;
  product.m = count;
  product.n = problem.output.channels;
  product.k = Depth(problem);
  product.a = {columns, count};
  product.b = {DenseWeight::From(args).matrix(), product.k, 0, /*is_weight=*/true};
  product.c = adds ? static_cast<const std::byte*>(args.inputs[1].data) + offset : nullptr;
  product.d = static_cast<std::byte*>(args.output.data) + offset;
  product.ld_d = RowStride(problem.output.positions());
  return QueueProduct(product, stream);
}

// Positions [begin, begin + count) of the output in kNhwc from their `columns`.
template <bool kTf32>
Status MultiplyPositions(const KernelArgs& args, const void* columns, int64_t begin, int64_t count,
                         CudaStream& stream) {
  const Problem& problem = *args.problem;
  const bool residual = problem.epilogue.residual, columns_are_input = problem.window().IsPointwise();
  const int64_t pitch = args.output.PitchOr(problem.output.channels);
  const int64_t residual_pitch = residual ? args.inputs[1].PitchOr(problem.output.channels) : pitch;
  Product product;
  product.dtype = problem.to.dtype;
  product.tf32 = kTf32;
  product.m = problem.output.channels;
  product.n = count;
  product.k = Depth(problem);
  product.a = {DenseWeight::From(args).matrix(), product.k, 0, /*is_weight=*/true};
  product.transpose_a = true;
  product.b = {columns, columns_are_input ? args.inputs[0].PitchOr(product.k) : product.k};
  product.c = residual ? At(args.inputs[1].data, begin * residual_pitch * ElementSize(problem)) : nullptr;
  product.ld_c = residual_pitch;
  product.d = static_cast<std::byte*>(args.output.data) + begin * pitch * ElementSize(problem);
  product.ld_d = pitch;
  product.aligned = std::ranges::all_of(args.inputs, &Operand::IsWhole) && args.output.IsWhole();
  product.bias = DenseWeight::From(args).bias();
  product.relu = IsRelu(problem.epilogue);
  return QueueProduct(product, stream);
}

}  // namespace

StatusOr<std::unique_ptr<PackedWeight>> PrepareConvNhwcCublas(const Weight& weight, const Problem& problem) {
  return DenseWeight::Make(weight, problem,
                           {.dtype = problem.to.dtype, .bias_dtype = problem.to.dtype, .channels_innermost = true});
}

size_t ConvNhwcCublasWorkspaceBytes(const Problem& problem) {
  return static_cast<size_t>(NhwcBlocks(problem).workspace_bytes());
}

template <bool kTf32>
void ConvNhwcCublas(const KernelArgs& args, Stream& stream) {
  CudaStream& cuda_stream = CudaStream::From(stream);
  cuda_stream.Report(
      NhwcBlocks(*args.problem)
          .ForEach(args, stream, GatherColumnsNhwc, [&](const void* columns, int64_t begin, int64_t count) {
            return MultiplyPositions<kTf32>(args, columns, begin, count, cuda_stream);
          }));
  if (NeedsFinish(args.problem->epilogue)) FinishOutput(args, cuda_stream);
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareConvRowsCublas(const Weight& weight, const Problem& problem) {
  return DenseWeight::Make(weight, problem, {.dtype = problem.to.dtype});
}

size_t ConvRowsCublasWorkspaceBytes(const Problem& problem) {
  return static_cast<size_t>(RowBlocks(problem).workspace_bytes());
}

template <bool kTf32>
void ConvRowsCublas(const KernelArgs& args, Stream& stream) {
  CudaStream& cuda_stream = CudaStream::From(stream);
  const Epilogue& epilogue = args.problem->epilogue;
  const auto* const bias = static_cast<const float*>(DenseWeight::From(args).bias());
  const bool finishes = bias != nullptr || epilogue.Clamps() || epilogue.function;
  const bool adds = epilogue.residual && !finishes;
  cuda_stream.Report(RowBlocks(*args.problem)
                         .ForEach(args, stream, GatherColumns, [&](const void* columns, int64_t begin, int64_t count) {
                           return MultiplyColumns<kTf32>(args, columns, begin, count, adds, cuda_stream);
                         }));
  if (finishes) FinishRows(args, bias, cuda_stream);
}

template void ConvNhwcCublas<false>(const KernelArgs&, Stream&);
template void ConvNhwcCublas<true>(const KernelArgs&, Stream&);
template void ConvRowsCublas<false>(const KernelArgs&, Stream&);
template void ConvRowsCublas<true>(const KernelArgs&, Stream&);

}  // namespace swizzle::cuda

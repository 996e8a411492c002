// Convolutions and linear layers in FP32 by products of halves on Hopper's tensor cores, X and Y in kRows: three
// products of FP16 parts (tensor_core/operand.cuh) by the kernel of conv_shfl_bw.h. Rows of X are split first
// (position_parts.h). A stage of the ring then holds the upper parts of 16 of the group's columns and their rests, and
// both parts of their weights; from it come three products: two thirds of what three stages would copy.
//
// Sums stay in tensor cores from a group's first column to its last, which cut them off where FP32 units round them.
// Their error grows with the number of columns: PERFORMANCE.md has figures. conv_csr_wgmma.h adds in between, and is
// for every plan; these rows are for plans whose precision allows them.
#ifndef SWIZZLE_KERNELS_CUDA_CONV_PARTS_CONV_ROW_PARTS_H_
#define SWIZZLE_KERNELS_CUDA_CONV_PARTS_CONV_ROW_PARTS_H_

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>

#include "kernels/backend/kernel_table.h"
#include "kernels/cuda/conv/operands/position_parts.h"
#include "kernels/cuda/conv/operands/row_groups.h"

namespace swizzle::cuda {

// Row functions; FP32.
bool AcceptsConvRowParts(const Problem& problem);
size_t ConvRowPartsWorkspaceBytes(const Problem& problem);
// The columns of X that a product reads, as rows of parts in such a workspace.
PositionParts SplitAllColumns(const KernelArgs& args, Stream& stream);
// Of rows that can be grouped (HoldsRowGroups).
StatusOr<std::unique_ptr<PackedWeight>> PrepareConvGroupParts(const Weight& weight, const Problem& problem);
// Of any: 64 rows as they stand are a group, which has the columns of all.
StatusOr<std::unique_ptr<PackedWeight>> PrepareConvRowParts(const Weight& weight, const Problem& problem);
// Tiles of kWidth columns: 64, 128 or 256.
template <int kWidth>
void RunConvRowParts(const KernelArgs& args, Stream& stream);

// What is below is for the launch functions and for benchmarks.

// Everything in device memory. The residual may be null, or Y. Packed is a weight of parts.
template <typename Packed>
struct OperandsInParts {
  const Packed* weight;
  PositionParts x;  // as SplitRows leaves it
  const float* residual;
  float* y;
  int64_t stride;   // of rows of X, residual and Y: a multiple of 16 elements
  int64_t columns;  // N; up to the stride are computed
  Epilogue epilogue = {};
};
using PartOperands = OperandsInParts<RowGroups>;

// A layer's, its columns of X split.
template <typename Packed>
OperandsInParts<Packed> SplitOperands(const Packed& weight, const KernelArgs& args, Stream& stream) {
  const int64_t positions = args.problem->output.positions();
  return {.weight = &weight,
          .x = SplitAllColumns(args, stream),
          .residual = args.Residual<float>(),
          .y = args.Output<float>(),
          .stride = RowStride(positions),
          .columns = positions,
          .epilogue = args.problem->epilogue};
}

template <int kWidth>
void QueueParts(const PartOperands& operands, int multiprocessors, cudaStream_t queue);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_CONV_PARTS_CONV_ROW_PARTS_H_

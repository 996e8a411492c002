#include "kernels/cuda/conv/shfl_bw/conv_shfl_bw_batched.h"

#include <algorithm>
#include <limits>

#include "kernels/base/integers.h"
#include "kernels/cuda/conv/shfl_bw/conv_shfl_bw.h"
#include "kernels/cuda/runtime/queue.h"

namespace swizzle::cuda {
namespace {

constexpr int64_t kMostTaps = 63;  // the kernel has a bit for each

// Y's rows, and which of the operands is the residual: the same for all of these rows.
template <typename Operands>
Operands OperandsOf(const KernelArgs& args) {
  const Problem& problem = *args.problem;
  Operands operands = {};
  operands.x = args.inputs[0].data;
  operands.residual = problem.epilogue.residual ? args.inputs[1].data : nullptr;
  operands.y = args.output.data;
  operands.columns = BatchedPositions(problem.output);
  operands.stride = RowStride(operands.columns);
  operands.epilogue = problem.epilogue;
  return operands;
}

bool RowsFit(const Extent& extent, DType dtype) {
  return RowStride(BatchedPositions(extent)) * static_cast<int64_t>(ElementBytes(dtype)) <=
         std::numeric_limits<uint32_t>::max();
}

}  // namespace

// Without a plane kBatched is kRows, whose rows are the same kernels.
bool AcceptsConvBatched(const Problem& problem) {
  return problem.output.plane() > 1 && problem.window().IsPointwise() && AcceptsConvShflBw(problem) &&
         RowsFit(problem.output, problem.to.dtype);
}

template <int kWidth>
void RunConvBatched(const KernelArgs& args, Stream& stream) {
  auto operands = OperandsOf<GroupOperands>(args);
  operands.weight = &RowGroupsOf(*args.weight);
  operands.dtype = args.problem->to.dtype;
  QueueGroups<kWidth>(operands, MultiprocessorsOf(stream), QueueOf(stream));
}

bool AcceptsConvBatchedWindow(const Problem& problem) {
  const Window& window = problem.window();
  if (!AcceptsConvShflBwWindow(problem) || window.taps() > kMostTaps) return false;
  const int64_t down = (window.kernel_h - 1) * int64_t{window.dilation_h};
  const int64_t across = (window.kernel_w - 1) * int64_t{window.dilation_w};
  const int64_t reach = (down * problem.input.width + across) * RoundUp(problem.input.batch, kBatchUnit);
  return RowsFit(problem.output, problem.to.dtype) &&
         std::max(LayoutElements(problem.input, Layout::kBatched), reach) <= MostBatchedElements(window);
}

template <int kWidth>
void RunConvBatchedWindow(const KernelArgs& args, Stream& stream) {
  auto operands = OperandsOf<BatchedOperands>(args);
  operands.weight = &RowGroupsOf(*args.weight);
  operands.problem = args.problem;
  QueueBatchedGroups<kWidth>(operands, MultiprocessorsOf(stream), QueueOf(stream));
}

bool AcceptsConvBatchedThin(const Problem& problem) {
  return AcceptsConvThin(problem) && (AcceptsConvBatched(problem) || AcceptsConvBatchedWindow(problem));
}

template <int kWidth>
void RunConvBatchedThin(const KernelArgs& args, Stream& stream) {
  if (args.problem->window().IsPointwise()) return RunConvBatched<kWidth>(args, stream);
  RunConvBatchedWindow<kWidth>(args, stream);
}

template void RunConvBatched<64>(const KernelArgs&, Stream&);
template void RunConvBatched<128>(const KernelArgs&, Stream&);
template void RunConvBatched<192>(const KernelArgs&, Stream&);
template void RunConvBatched<256>(const KernelArgs&, Stream&);
template void RunConvBatchedWindow<64>(const KernelArgs&, Stream&);
template void RunConvBatchedWindow<128>(const KernelArgs&, Stream&);
template void RunConvBatchedWindow<256>(const KernelArgs&, Stream&);
template void RunConvBatchedThin<128>(const KernelArgs&, Stream&);
template void RunConvBatchedThin<256>(const KernelArgs&, Stream&);

}  // namespace swizzle::cuda

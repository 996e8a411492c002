#include "kernels/cuda/conv/shfl_bw/conv_shfl_bw_window.h"

#include <limits>
#include <vector>

#include "kernels/base/integers.h"
#include "kernels/cuda/conv/shfl_bw/conv_shfl_bw.h"
#include "kernels/cuda/runtime/launch_grid.h"
#include "kernels/cuda/runtime/queue.h"
#include "kernels/format/shfl_bw.h"

namespace swizzle::cuda {
namespace {

constexpr int64_t kPiece = 8;             // output columns that are copied at once
constexpr int kMostWindowRows = 31;       // the kernel has a bit for each
constexpr int64_t kMostPieces = 1 << 27;  // of the workspace: the kernel counts them beside such a bit's number

// Of one slot.
int64_t PiecesOfSlot(const Problem& problem) {
  return problem.input.batch * WindowLines::Of(problem).count * CeilDiv(problem.output.width, kPiece);
}

int64_t MostSlots(const Problem& problem) { return problem.input.channels * problem.window().kernel_w; }

}  // namespace

std::vector<int32_t> SlotsOfPairs(std::span<const uint32_t> columns, int64_t channels, const Window& window) {
  const auto height = static_cast<uint32_t>(window.kernel_h), width = static_cast<uint32_t>(window.kernel_w);
  std::vector<int32_t> slot_of_pair(channels * width, -1);
  for (const uint32_t column : columns) slot_of_pair[column / (height * width) * width + column % width] = 0;
  if (columns.empty()) slot_of_pair[0] = 0;  // no kernel asks whether there is one
  int32_t slots = 0;
  for (int32_t& slot : slot_of_pair) {
    if (slot == 0) slot = slots++;
  }
  return slot_of_pair;
}

bool AcceptsConvShflBwWindow(const Problem& problem) {
  const Window& window = problem.window();
  if (window.IsPointwise() || window.kernel_h > kMostWindowRows) return false;
  const int64_t cols = problem.input.channels * window.taps();
  constexpr int64_t kMostPositions = std::numeric_limits<int32_t>::max();
  return cols >= 1 && cols <= RowGroups::kMostColumns && MostSlots(problem) <= LaunchGrid::kMostDown &&
         MostSlots(problem) * PiecesOfSlot(problem) < kMostPieces &&
         RowStride(problem.input.positions()) * problem.input.channels <= kMostPositions &&
         RowStride(problem.output.positions()) + CeilDiv(problem.output.width, kPiece) * kPiece <= kMostPositions;
}

size_t ConvShflBwWindowWorkspaceBytes(const Problem& problem) {
  return static_cast<size_t>(MostSlots(problem) * PiecesOfSlot(problem) * kPiece) * ElementBytes(problem.to.dtype);
}

template <int kWidth>
void RunConvShflBwWindow(const KernelArgs& args, Stream& stream) {
  const Problem& problem = *args.problem;
  const int32_t* const slot_of_pair = WindowSlotsOf(*args.weight);
  void* const unfolded = args.workspace.data();
  UnfoldWidth(problem, slot_of_pair, args.inputs[0].data, unfolded, QueueOf(stream));
  const int64_t width = CeilDiv(problem.output.width, kPiece) * kPiece;
  const WindowOperands operands = {
      .weight = &RowGroupsOf(*args.weight),
      .slot_of_pair = slot_of_pair,
      .problem = &problem,
      .x = unfolded,
      .residual = problem.epilogue.residual ? args.inputs[1].data : nullptr,
      .y = args.output.data,
      .stride = RowStride(problem.output.positions()),
      .columns = problem.output.batch * problem.output.height * width,
      .epilogue = problem.epilogue,
  };
  QueueWindowGroups<kWidth>(operands, MultiprocessorsOf(stream), QueueOf(stream));
}

bool AcceptsConvThin(const Problem& problem) {
  constexpr int64_t kMostColumns = 256;
  if (problem.input.channels * problem.window().taps() > kMostColumns) return false;
  return problem.window().IsPointwise() ? AcceptsConvShflBw(problem) : AcceptsConvShflBwWindow(problem);
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareConvThin(const Weight& weight, const Problem& problem) {
  const DenseMatrix dense = weight.ToDense();
  return PrepareConvShflBw({ShflBwMatrix::FromDense(dense, RowGroups::kRows, RowsInOrder(dense.rows)), weight.bias},
                           problem);
}

size_t ConvThinWorkspaceBytes(const Problem& problem) {
  return problem.window().IsPointwise() ? 0 : ConvShflBwWindowWorkspaceBytes(problem);
}

template <int kWidth>
void RunConvThin(const KernelArgs& args, Stream& stream) {
  if (args.problem->window().IsPointwise()) return RunConvShflBw<kWidth>(args, stream);
  RunConvShflBwWindow<kWidth>(args, stream);
}

template void RunConvThin<128>(const KernelArgs&, Stream&);
template void RunConvThin<256>(const KernelArgs&, Stream&);
template void RunConvShflBwWindow<64>(const KernelArgs&, Stream&);
template void RunConvShflBwWindow<128>(const KernelArgs&, Stream&);
template void RunConvShflBwWindow<256>(const KernelArgs&, Stream&);

}  // namespace swizzle::cuda

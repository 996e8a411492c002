#include "kernels/cuda/conv/conv_shfl_bw_window.h"

#include <limits>
#include <vector>

#include "kernels/base/integers.h"
#include "kernels/cuda/conv/conv_shfl_bw.h"
#include "kernels/cuda/runtime/launch_grid.h"
#include "kernels/cuda/runtime/queue.h"
#include "kernels/format/shfl_bw.h"

namespace swizzle::cuda {
namespace {

constexpr int64_t kPiece = 8;             // output columns that are copied at once
constexpr int kMostWindowRows = 31;       // the kernel has a bit for each
constexpr int64_t kMostPieces = 1 << 27;  // of the workspace: the kernel counts them beside such a bit's number

class WindowWeight final : public PackedWeight {
 public:
  explicit WindowWeight(WindowGroups packed) : packed_(std::move(packed)) {}
  size_t bytes() const override {
    return packed_.groups->bytes() + packed_.slot_of_pair.bytes() + packed_.pair_of_slot.bytes();
  }
  const WindowGroups& packed() const { return packed_; }

 private:
  const WindowGroups packed_;
};

// Of one slot.
int64_t PiecesOfSlot(const Problem& problem) {
  return problem.input.batch * WindowLines::Of(problem).count * CeilDiv(problem.output.width, kPiece);
}

int64_t MostSlots(const Problem& problem) { return problem.input.channels * problem.window().kernel_w; }

}  // namespace

StatusOr<WindowGroups> WindowGroups::Make(const ShflBwMatrix& matrix, std::span<const float> bias, const Window& window,
                                          DType dtype) {
  const auto height = static_cast<uint32_t>(window.kernel_h), width = static_cast<uint32_t>(window.kernel_w);
  const auto pair_of = [=](uint32_t column) { return column / (height * width) * width + column % width; };
  const auto row_of = [=](uint32_t column) { return column % (height * width) / width; };
  std::vector<int32_t> slot_of_pair(matrix.cols / height, -1);
  for (const uint32_t column : matrix.col_indices) slot_of_pair[pair_of(column)] = 0;
  if (matrix.col_indices.empty()) slot_of_pair[0] = 0;  // no kernel asks whether there is a column
  std::vector<int32_t> pair_of_slot;
  for (size_t pair = 0; pair < slot_of_pair.size(); ++pair) {
    if (slot_of_pair[pair] < 0) continue;
    slot_of_pair[pair] = static_cast<int32_t>(pair_of_slot.size());
    pair_of_slot.push_back(static_cast<int32_t>(pair));
  }
  ShflBwMatrix renamed = matrix;
  renamed.cols = static_cast<int64_t>(pair_of_slot.size()) * height;
  for (uint32_t& column : renamed.col_indices) {
    column = static_cast<uint32_t>(slot_of_pair[pair_of(column)]) * height + row_of(column);
  }
  WindowGroups made;
  SWIZZLE_ASSIGN_OR_RETURN(made.groups, RowGroups::Make(renamed, bias, dtype));
  SWIZZLE_ASSIGN_OR_RETURN(made.slot_of_pair, DeviceArray<int32_t>::Upload(slot_of_pair));
  SWIZZLE_ASSIGN_OR_RETURN(made.pair_of_slot, DeviceArray<int32_t>::Upload(pair_of_slot));
  return made;
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

StatusOr<std::unique_ptr<PackedWeight>> PrepareConvShflBwWindow(const Weight& weight, const Problem& problem) {
  SWIZZLE_ASSIGN_OR_RETURN(const auto matrix, GroupRows(weight.matrix));
  SWIZZLE_ASSIGN_OR_RETURN(auto packed, WindowGroups::Make(*matrix, weight.bias, problem.window(), problem.to.dtype));
  return std::make_unique<WindowWeight>(std::move(packed));
}

const WindowGroups& WindowGroupsOf(const PackedWeight& weight) {
  return static_cast<const WindowWeight&>(weight).packed();
}

size_t ConvShflBwWindowWorkspaceBytes(const Problem& problem) {
  return static_cast<size_t>(MostSlots(problem) * PiecesOfSlot(problem) * kPiece) * ElementBytes(problem.to.dtype);
}

template <int kWidth>
void RunConvShflBwWindow(const KernelArgs& args, Stream& stream) {
  const Problem& problem = *args.problem;
  const WindowGroups& packed = WindowGroupsOf(*args.weight);
  void* const unfolded = args.workspace.data();
  UnfoldWidth(problem, packed.slot_of_pair, args.inputs[0].data, unfolded, QueueOf(stream));
  const int64_t width = CeilDiv(problem.output.width, kPiece) * kPiece;
  const WindowOperands operands = {
      .weight = packed.groups.get(),
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
  const Weight grouped = {ShflBwMatrix::FromDense(dense, RowGroups::kRows, RowsInOrder(dense.rows)), weight.bias};
  return problem.window().IsPointwise() ? PrepareConvShflBw(grouped, problem)
                                        : PrepareConvShflBwWindow(grouped, problem);
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

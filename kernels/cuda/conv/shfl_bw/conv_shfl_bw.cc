#include "kernels/cuda/conv/shfl_bw/conv_shfl_bw.h"

#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "kernels/base/integers.h"
#include "kernels/cuda/conv/operands/im2col.h"
#include "kernels/cuda/conv/shfl_bw/conv_shfl_bw_window.h"
#include "kernels/cuda/runtime/queue.h"
#include "kernels/format/shfl_bw.h"

namespace swizzle::cuda {
namespace {

class ShflBwWeight final : public PackedWeight {
 public:
  explicit ShflBwWeight(std::unique_ptr<RowGroups> groups, DeviceArray<int32_t> window_slots = {})
      : groups_(std::move(groups)), window_slots_(std::move(window_slots)) {}
  size_t bytes() const override { return groups_->bytes() + window_slots_.bytes(); }
  const RowGroups& groups() const { return *groups_; }
  const int32_t* window_slots() const { return window_slots_.data(); }

 private:
  const std::unique_ptr<RowGroups> groups_;
  const DeviceArray<int32_t> window_slots_;
};

GroupOperands OperandsOf(const KernelArgs& args, Stream& stream) {
  const Problem& problem = *args.problem;
  return {
      .weight = &RowGroupsOf(*args.weight),
      .dtype = problem.to.dtype,
      .x = AllColumns(args, stream),
      .residual = problem.epilogue.residual ? args.inputs[1].data : nullptr,
      .y = args.output.data,
      .stride = RowStride(problem.output.positions()),
      .columns = problem.output.positions(),
      .epilogue = problem.epilogue,
  };
}

}  // namespace

bool AcceptsConvShflBw(const Problem& problem) {
  const int64_t cols = problem.input.channels * problem.window().taps();
  const int64_t bytes = RowStride(problem.output.positions()) * static_cast<int64_t>(ElementBytes(problem.to.dtype));
  return cols >= 1 && cols <= RowGroups::kMostColumns && bytes <= std::numeric_limits<uint32_t>::max();
}

bool HoldsRowGroups(const Weight& weight, const Problem&) { return FindRowGrouping(weight.matrix).has_value(); }

bool HoldsRowPairs(const Weight& weight, const Problem&) {
  if (const ShflBwMatrix* const held = weight.matrix.As<ShflBwMatrix>()) {
    return HasRowPairs(held->rows, held->vector_rows);
  }
  if (!HasRowPairs(weight.rows(), 2 * RowGroups::kRows)) return false;  // whatever its grouping, which takes longer
  const std::optional<RowGrouping> grouping = FindRowGrouping(weight.matrix);
  return grouping && HasRowPairs(weight.rows(), grouping->vector_rows);
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareConvShflBw(const Weight& weight, const Problem& problem) {
  SWIZZLE_ASSIGN_OR_RETURN(const auto matrix, GroupRows(weight.matrix));
  SWIZZLE_ASSIGN_OR_RETURN(auto packed, RowGroups::Make(*matrix, weight.bias, problem.to.dtype));
  const Window& window = problem.window();
  if (window.IsPointwise()) return std::make_unique<ShflBwWeight>(std::move(packed));
  SWIZZLE_ASSIGN_OR_RETURN(
      auto slots, DeviceArray<int32_t>::Upload(SlotsOfPairs(matrix->col_indices, problem.input.channels, window)));
  return std::make_unique<ShflBwWeight>(std::move(packed), std::move(slots));
}

const RowGroups& RowGroupsOf(const PackedWeight& weight) { return static_cast<const ShflBwWeight&>(weight).groups(); }

const int32_t* WindowSlotsOf(const PackedWeight& weight) {
  return static_cast<const ShflBwWeight&>(weight).window_slots();
}

bool HoldsMixedBlocks(const Weight& weight, const Problem& problem) {
  constexpr double kMost = 0.75;  // of all columns of all groups: beyond, dense products are faster
  const int64_t cols = weight.cols(), groups = CeilDiv<int64_t>(weight.rows(), RowGroups::kRows);
  std::vector<int64_t> last_group(cols, -1);
  int64_t used = 0;
  weight.matrix.ForEachRow([&](int64_t row, std::span<const uint32_t> columns) {
    for (const uint32_t column : columns) {
      if (std::exchange(last_group[column], row / RowGroups::kRows) != row / RowGroups::kRows) ++used;
    }
  });
  return static_cast<double>(used) <= kMost * static_cast<double>(groups * cols) && !HoldsRowGroups(weight, problem);
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareConvHbEll(const Weight& weight, const Problem& problem) {
  const auto matrix = ShflBwMatrix::FromDense(weight.ToDense(), RowGroups::kRows, RowsInOrder(weight.rows()));
  SWIZZLE_ASSIGN_OR_RETURN(auto packed, RowGroups::Make(matrix, weight.bias, problem.to.dtype));
  return std::make_unique<ShflBwWeight>(std::move(packed));
}

template <int kWidth>
void RunConvShflBw(const KernelArgs& args, Stream& stream) {
  QueueGroups<kWidth>(OperandsOf(args, stream), MultiprocessorsOf(stream), QueueOf(stream));
}

template <int kWidth>
void RunConvShflBwPairs(const KernelArgs& args, Stream& stream) {
  QueuePairs<kWidth>(OperandsOf(args, stream), MultiprocessorsOf(stream), QueueOf(stream));
}

void RunConvShflBwFew(const KernelArgs& args, Stream& stream) {
  QueueFewColumns(OperandsOf(args, stream), MultiprocessorsOf(stream), QueueOf(stream));
}

template void RunConvShflBw<64>(const KernelArgs&, Stream&);
template void RunConvShflBw<128>(const KernelArgs&, Stream&);
template void RunConvShflBw<192>(const KernelArgs&, Stream&);
template void RunConvShflBw<256>(const KernelArgs&, Stream&);
template void RunConvShflBwPairs<64>(const KernelArgs&, Stream&);
template void RunConvShflBwPairs<128>(const KernelArgs&, Stream&);
template void RunConvShflBwPairs<192>(const KernelArgs&, Stream&);
template void RunConvShflBwPairs<256>(const KernelArgs&, Stream&);

}  // namespace swizzle::cuda

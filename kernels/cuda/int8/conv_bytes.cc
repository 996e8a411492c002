#include "kernels/cuda/int8/conv_bytes.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "kernels/cuda/int8/byte_columns.h"
#include "kernels/cuda/int8/byte_layer.h"
#include "kernels/cuda/int8/panel_weight.h"
#include "kernels/cuda/runtime/launch_grid.h"
#include "kernels/cuda/runtime/queue.h"

namespace swizzle::cuda {
std::vector<std::vector<WholeEntry>> WholeRowsOf(const ByteWeight& weight) {
  std::vector<std::vector<WholeEntry>> rows(weight.rows);
  for (int64_t row = 0; row < weight.rows; ++row) {
    for (const ByteWeight::Entry& entry : weight.entries[row]) rows[row].push_back({entry.column, entry.value});
  }
  return rows;
}

template <ByteWay kWay>
bool AcceptsConvBytes(const Problem& problem) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const int64_t cols = ByteColumnCount(problem);
  const int64_t positions = std::max(problem.input.positions(), problem.output.positions());
  const bool fits = cols >= 1 && cols <= BytePanels::kMostColumns && problem.window().taps() <= LaunchGrid::kMostDown &&
                    RowStride(positions) <= kMost;
  const bool resident = kWay == ByteWay::kResident128 || kWay == ByteWay::kResident64;
  return fits && AcceptsByteLayer(problem, Layout::kRows) && (!resident || FitsResident(kWay, cols));
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareConvBytes(const Weight& weight, const Problem& problem) {
  SWIZZLE_ASSIGN_OR_RETURN(const ByteWeight bytes, MakeByteWeight(weight, problem));
  SWIZZLE_ASSIGN_OR_RETURN(auto panels, BytePanels::Make(WholeRowsOf(bytes), bytes.cols, 8));
  SWIZZLE_ASSIGN_OR_RETURN(RowEnds ends, RowEnds::Make(bytes, 0));
  return std::make_unique<PanelWeight<RowEnds>>(std::move(panels), std::move(ends));
}

size_t ConvBytesWorkspaceBytes(const Problem& problem) {
  return problem.window().IsPointwise() ? 0 : static_cast<size_t>(ByteRowsSize(problem));
}

template <ByteWay kWay>
void RunConvBytes(const KernelArgs& args, Stream& stream) {
  const auto& weight = static_cast<const PanelWeight<RowEnds>&>(*args.weight);
  const Problem& problem = *args.problem;
  const int64_t positions = problem.output.positions(), stride = RowStride(positions);
  const auto* columns = args.Input<uint8_t>(0);
  if (!problem.window().IsPointwise()) {
    auto* const gathered = reinterpret_cast<uint8_t*>(args.workspace.data());
    QueueByteRows(problem, columns, static_cast<uint8_t>(problem.inputs_as[0].zero_point), gathered, stream);
    columns = gathered;
  }
  const ByteOperands operands = {.weight = &weight.panels(),
                                 .x = {.bits = 8, .is_signed = false, .low = columns, .high = nullptr, .pitch = stride},
                                 .columns = positions,
                                 .stride = stride,
                                 .y = args.output.data};
  QueueEnded(operands, weight.ends().Of(args), kWay, MultiprocessorsOf(stream), QueueOf(stream));
}

#define SWIZZLE_INSTANTIATE(way)                                \
  template bool AcceptsConvBytes<ByteWay::way>(const Problem&); \
  template void RunConvBytes<ByteWay::way>(const KernelArgs&, Stream&)
SWIZZLE_INSTANTIATE(kGather);
SWIZZLE_INSTANTIATE(kGatherShared);
SWIZZLE_INSTANTIATE(kResident128);
SWIZZLE_INSTANTIATE(kResident64);
#undef SWIZZLE_INSTANTIATE

}  // namespace swizzle::cuda

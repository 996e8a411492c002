#include <limits>
#include <utility>
#include <vector>

#include "kernels/cuda/int8/conv_bytes.h"
#include "kernels/cuda/int8/panel_weight.h"
#include "kernels/cuda/int8/position_bytes.h"
#include "kernels/cuda/int8/position_ends.cuh"
#include "kernels/cuda/int8/quantise_positions.h"
#include "kernels/cuda/int8/spmm_bytes.cuh"

namespace swizzle::cuda {
template <ByteWay kWay>
bool AcceptsPositionPanels(const Problem& problem) {
  const PositionRows rows(problem);
  const bool fits = rows.channels <= BytePanels::kMostColumns && rows.stride <= std::numeric_limits<int32_t>::max();
  const bool resident = kWay == ByteWay::kResident128 || kWay == ByteWay::kResident64;
  return problem.window().IsPointwise() && fits && (!resident || FitsResident(kWay, rows.channels));
}

StatusOr<std::unique_ptr<PackedWeight>> PreparePositionPanels(const Weight& weight, const Problem&) {
  SWIZZLE_ASSIGN_OR_RETURN(const PositionWeight made, MakePositionWeight(weight));
  SWIZZLE_ASSIGN_OR_RETURN(auto panels, BytePanels::Make(WholeRowsOf(made.bytes), made.bytes.cols, 8));
  SWIZZLE_ASSIGN_OR_RETURN(PositionEnds ends, PositionEnds::Make(made, 0));
  return std::make_unique<PanelWeight<PositionEnds>>(std::move(panels), std::move(ends));
}

size_t PositionPanelsWorkspaceBytes(const Problem& problem) { return PositionRows(problem).bytes(); }

template <ByteWay kWay>
void RunPositionPanels(const KernelArgs& args, Stream& stream) {
  const auto& weight = static_cast<const PanelWeight<PositionEnds>&>(*args.weight);
  const PositionRows rows(*args.problem);
  const QuantisedPositions positions = rows.In(args.workspace.data());
  if (weight.panels().count() == 0 || rows.stride == 0) return;
  QueueQuantisedRows(args, rows, positions, stream);
  const ByteOperands operands = {
      .weight = &weight.panels(),
      .x = {.bits = 8, .is_signed = false, .low = positions.bytes, .high = nullptr, .pitch = rows.stride},
      .columns = args.problem->output.positions(),
      .stride = rows.stride,
      .y = args.output.data};
  WithPositionStore(args, weight.ends(), positions.steps, rows.stride, [&](const auto& store) {
    QueueWay<ByteWidths<8, 8, false>>(ArgsOf(operands), store, kWay, MultiprocessorsOf(stream), QueueOf(stream));
  });
}

#define SWIZZLE_INSTANTIATE(way)                                     \
  template bool AcceptsPositionPanels<ByteWay::way>(const Problem&); \
  template void RunPositionPanels<ByteWay::way>(const KernelArgs&, Stream&)
SWIZZLE_INSTANTIATE(kGather);
SWIZZLE_INSTANTIATE(kGatherShared);
SWIZZLE_INSTANTIATE(kResident128);
SWIZZLE_INSTANTIATE(kResident64);
#undef SWIZZLE_INSTANTIATE

}  // namespace swizzle::cuda

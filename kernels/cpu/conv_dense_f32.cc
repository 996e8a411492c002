#include "kernels/cpu/conv_dense_f32.h"

#include "kernels/cpu/function_f32.h"
#include "kernels/cpu/interleaved_dense.h"
#include "kernels/cpu/panel_cell.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv_dense_f32.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/im2col-inl.h"
#include "kernels/cpu/panel_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {

// One group of rows, for kVectors vectors of a panel of kUnits position units, the first at kFirstVector.
template <int kUnits, int kFirstVector, int kVectors>
void RunTile(const InterleavedDense& weight, int64_t group, const PanelCell& cell) {
  static_assert(kTileRows == InterleavedDense::kRows);
  const FloatTag d;
  uint32_t rows[kTileRows];
  for (int r = 0; r < kTileRows; ++r) rows[r] = weight.row(group, r);
  Tile<kUnits, kFirstVector, kVectors> tile;
  tile.SetBias(cell, rows);
  const float* weights = weight.weights(group);
  const float* x = cell.columns + kFirstVector * kLanes;
  for (int64_t k = 0; k < weight.cols(); ++k, weights += kTileRows, x += kUnits * kPositionUnit) {
    HWY_DEFAULT_UNROLL for (int r = 0; r < kTileRows; ++r) {
      const FloatVector row_weight = hn::Set(d, weights[r]);
      HWY_DEFAULT_UNROLL for (int j = 0; j < kVectors; ++j) {
        tile.sums[r][j] = hn::MulAdd(row_weight, hn::Load(d, x + j * kLanes), tile.sums[r][j]);
      }
    }
  }
  tile.Finish(cell, rows);
}

// One group of rows, for all of a panel's positions, in as few tiles as registers allow.
template <int kUnits, int kFirstVector = 0>
void RunGroup(const InterleavedDense& weight, int64_t group, const PanelCell& cell) {
  constexpr int kLeft = kUnits * kUnitVectors - kFirstVector;
  constexpr int kTiles = (kLeft + kMaxTileVectors - 1) / kMaxTileVectors;
  constexpr int kVectors = kLeft / kTiles;
  RunTile<kUnits, kFirstVector, kVectors>(weight, group, cell);
  if constexpr (kVectors < kLeft) RunGroup<kUnits, kFirstVector + kVectors>(weight, group, cell);
}

using GroupFunction = void (*)(const InterleavedDense&, int64_t, const PanelCell&);
constexpr GroupFunction kRunGroup[] = {RunGroup<1>, RunGroup<2>, RunGroup<3>, RunGroup<4>};
static_assert(std::size(kRunGroup) * kPositionUnit == kMaxPanelWidth);

void ConvDense(const KernelArgs& args, Layout layout, Stream& stream) {
  const auto& weight = static_cast<const InterleavedDense&>(*args.weight);
  const PanelConv conv(args, layout, weight.cols(), weight.bias(), weight.groups());
  conv.ForEachPart(CpuStream::From(stream), [&](PanelColumns& columns, const PanelPart& part, const PanelPart&) {
    PanelCell cell = conv.Cell(part.panel);
    cell.columns = ColumnRows(columns, part.panel, 0, weight.cols());
    const GroupFunction run_group = kRunGroup[cell.width / kPositionUnit - 1];
    for (int64_t group = part.first_slice; group < part.last_slice; ++group) run_group(weight, group, cell);
    if (!cell.epilogue.function) return;
    const int64_t first = part.first_slice * InterleavedDense::kRows;
    const int64_t last = std::min(part.last_slice * InterleavedDense::kRows, args.problem->output.channels);
    ApplyFunction(*cell.epilogue.function, cell.output + first * cell.width, (last - first) * cell.width);
  });
}

void ConvDensePanels(const KernelArgs& args, Stream& stream) { ConvDense(args, Layout::kPanels, stream); }
void ConvDenseNchw(const KernelArgs& args, Stream& stream) { ConvDense(args, Layout::kNchw, stream); }

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace swizzle::cpu {

StatusOr<std::unique_ptr<PackedWeight>> PrepareConvDense(const Weight& weight, const Problem&) {
  return std::make_unique<InterleavedDense>(weight.ToDense(), weight.bias);
}

template <Layout kInput>
size_t ConvDenseWorkspaceBytes(const Problem& problem) {
  const int64_t taps = int64_t{problem.window.kernel_h} * problem.window.kernel_w;
  return PanelConv::WorkspaceBytes(problem, kInput, problem.input.channels * taps);
}

template size_t ConvDenseWorkspaceBytes<Layout::kPanels>(const Problem&);
template size_t ConvDenseWorkspaceBytes<Layout::kNchw>(const Problem&);

}  // namespace swizzle::cpu
#endif  // HWY_ONCE

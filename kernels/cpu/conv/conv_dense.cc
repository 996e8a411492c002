#include "kernels/cpu/conv/conv_dense.h"

#include <algorithm>

#include "kernels/cpu/conv/interleaved_dense.h"
#include "kernels/cpu/conv/panel_cell.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv/conv_dense.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/conv/im2col-inl.h"
#include "kernels/cpu/conv/panel_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {
namespace {

constexpr int kGroupRows = InterleavedDense::kRows;
// Columns that are asked for ahead: out of the second cache they come while the ones before are computed.
constexpr int64_t kColumnsAhead = 8;

// Vectors of a tile of kGroupRows rows: its sums, its columns and a weight fill the registers.
#if HWY_TARGET == HWY_AVX3
constexpr int kTileVectors = 4;
#else
constexpr int kTileVectors = 2;
#endif

// Groups that make a tile together, where a panel is narrow: with fewer than ten sums or so, each waits for itself.
template <int kUnits>
constexpr int kTileGroups = kTileVectors == 4 && kUnits <= 2 ? 2 : 1;

// Columns of a cell, and what they are multiplied with.
struct Columns {
  int64_t count;
  const float* first;
  const float* weights;   // of the first group
  int64_t group_weights;  // from one group to the next
};

// kRows rows of one group or two, for kVectors vectors of a panel of kUnits position units, where `columns` and `cell`
// begin. A group may have more weights than rows. asks: for what the rows need from further away, see below.
template <int kUnits, int kVectors, int kRows>
HWY_INLINE void RunTile(const Columns& columns, const PanelCell& cell, int64_t first_row, bool asks) {
  constexpr int64_t kWidth = kUnits * kPositionUnit;
  const FloatTag d;
  uint32_t rows[kRows];
  for (int r = 0; r < kRows; ++r) rows[r] = static_cast<uint32_t>(first_row + r);
  Tile<kUnits, 0, kVectors, kRows> tile;
  if (cell.first) {
    tile.SetBias(cell, rows);
  } else {
    tile.SetZero();
  }
  const float* weights = columns.weights;
  const float* x = columns.first;
  // Weights come from memory where the model's exceed the caches: those of the next groups are asked for, one line in
  // two columns, while these are summed. Where they don't follow these, as in a block, no processor would foresee them.
  constexpr int kGroups = CeilDiv(kRows, kGroupRows);
  const int64_t next_groups = asks ? kGroups * columns.group_weights : 0;
  // Sums `count` columns while the lines from `ahead` on are asked for, and those from `also` on, one a column.
  const auto add_columns = [&](int64_t count, const float* ahead, const float* also) HWY_ATTR {
    for (; count > 0; --count, weights += kGroupRows, x += kWidth, ahead += kWidth) {
      FloatVector column[kVectors];
      SWIZZLE_UNROLL
      for (int j = 0; j < kVectors; ++j) column[j] = hn::Load(d, x + j * kLanes);
      SWIZZLE_UNROLL
      for (int j = 0; j < kVectors; j += kPositionUnit / kLanes) __builtin_prefetch(ahead + j * kLanes);
      if (also != nullptr) {
        __builtin_prefetch(also);
        also += kPositionUnit;
      }
      if (count % 2 == 0) {
        SWIZZLE_UNROLL
        for (int g = 0; g < kGroups; ++g) __builtin_prefetch(weights + next_groups + g * columns.group_weights);
      }
      SWIZZLE_UNROLL
      for (int r = 0; r < kRows; ++r) {
        const float* weight = r < kGroupRows ? weights + r : weights + columns.group_weights + r - kGroupRows;
        const FloatVector row_weight = hn::Set(d, *weight);
        SWIZZLE_UNROLL
        for (int j = 0; j < kVectors; ++j) tile.sums[r][j] = hn::MulAdd(row_weight, column[j], tile.sums[r][j]);
      }
    }
  };
  // The rows' part of the output, and what is added to it, come from further away.
  constexpr int64_t kLines = int64_t{kRows} * kUnits;
  const float* residual = cell.residual != nullptr ? cell.residual : cell.sums;
  const int64_t begin = std::min(columns.count, kLines), end = std::max(begin, columns.count - kColumnsAhead);
  add_columns(begin, x + kColumnsAhead * kWidth, asks ? residual + first_row * kWidth : nullptr);
  add_columns(end - begin, x + kColumnsAhead * kWidth, nullptr);
  add_columns(columns.count - end, columns.first, nullptr);
  tile.Finish(cell, rows);
}

// Rows for all of a panel's positions, in as few tiles as registers allow. Tiles differ by where they begin alone,
// which is no parameter of their template: with one the file would take a minute to compile.
template <int kUnits, int kRows>
HWY_INLINE void RunRows(const Columns& columns, const PanelCell& cell, int64_t first_row) {
  constexpr int kAll = kUnits * kUnitVectors, kVectors = std::min(kTileVectors, kAll);
  static_assert(kAll % kVectors == 0);
  Columns tile_columns = columns;
  PanelCell tile_cell = cell;
  for (int first = 0; first < kAll; first += kVectors) {
    RunTile<kUnits, kVectors, kRows>(tile_columns, tile_cell, first_row, first == 0);
    tile_columns.first += kVectors * kLanes;
    tile_cell = tile_cell.From(kVectors * kLanes);
  }
}

// Groups [begin, end) of the rows, for `count` columns from `first` on.
template <int kUnits>
void RunGroups(const InterleavedDense& weight, int64_t begin, int64_t end, int64_t first, int64_t count,
               const PanelCell& cell) {
  constexpr int kGroups = kTileGroups<kUnits>;
  Columns columns = {count, cell.columns, nullptr, weight.cols() * kGroupRows};
  while (begin < end) {
    columns.weights = weight.weights(begin, first);
    const int64_t row = begin * kGroupRows;
    const int64_t rows = weight.GroupRows(begin);
    if (begin + kGroups <= end && weight.GroupRows(begin + kGroups - 1) == kGroupRows) {
      RunRows<kUnits, kGroups * kGroupRows>(columns, cell, row);
      begin += kGroups;
      continue;
    }
    if (rows == 6) {
      RunRows<kUnits, 6>(columns, cell, row);
    } else if (rows == 4) {
      RunRows<kUnits, 4>(columns, cell, row);
    } else if (rows == 2) {
      RunRows<kUnits, 2>(columns, cell, row);
    } else {
      for (int64_t r = 0; r < rows; ++r, ++columns.weights) RunRows<kUnits, 1>(columns, cell, row + r);
    }
    ++begin;
  }
}

using GroupsFunction = void (*)(const InterleavedDense&, int64_t, int64_t, int64_t, int64_t, const PanelCell&);
constexpr GroupsFunction kRunGroups[] = {RunGroups<1>, RunGroups<2>, RunGroups<3>, RunGroups<4>};
static_assert(std::size(kRunGroups) * kPositionUnit == kMaxPanelWidth);

}  // namespace

void ConvDense(const KernelArgs& args, Stream& stream) {
  const auto& weight = static_cast<const InterleavedDense&>(*args.weight);
  const int64_t cols = weight.cols();
  const int64_t block_rows = InterleavedDense::BlockColumns(!PanelColumns::IsDirect(*args.problem), cols);
  const PanelConv conv(args, block_rows, weight.bias(), weight.groups());
  const auto run = [&](PanelColumns& columns, PanelCell cell, const PanelPart& part, const PanelPart&) {
    const GroupsFunction run_groups = kRunGroups[cell.width / kPositionUnit - 1];
    for (int64_t begin = 0, end; begin < cols; begin = end) {
      end = std::min(begin + block_rows, cols);
      cell.columns = ColumnRows(columns, part.panel, begin, end);
      cell.first = begin == 0;
      cell.last = end == cols;
      run_groups(weight, part.first_slice, part.last_slice, begin, end - begin, cell);
    }
    const int64_t first = part.first_slice * kGroupRows;
    FinishRows(cell, first, std::min(part.last_slice * kGroupRows, weight.rows()) - first);
  };
  conv.ForEachPart(CpuStream::From(stream), run);
}

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace swizzle::cpu {

StatusOr<std::unique_ptr<PackedWeight>> PrepareConvDense(const Weight& weight, const Problem&) {
  return std::make_unique<InterleavedDense>(weight.ToDense(), weight.bias);
}

size_t ConvDenseWorkspaceBytes(const Problem& problem) {
  const int64_t taps = problem.window().taps();
  const bool gathered = !PanelColumns::IsDirect(problem);
  return PanelConv::WorkspaceBytes(problem, InterleavedDense::BlockColumns(gathered, problem.input.channels * taps));
}

}  // namespace swizzle::cpu
#endif  // HWY_ONCE

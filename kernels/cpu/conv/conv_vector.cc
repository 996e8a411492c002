#include "kernels/cpu/conv/conv_vector.h"

#include <algorithm>

#include "kernels/base/integers.h"
#include "kernels/cpu/conv/panel_cell.h"
#include "kernels/cpu/conv/vector_csr.h"
#include "kernels/format/csr.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv/conv_vector.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/conv/im2col-inl.h"
#include "kernels/cpu/conv/panel_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {
namespace {

// Tiles [begin, end), of one block of columns.
struct TileRange {
  int64_t begin;
  int64_t end;
  int64_t block;
};

// For kVectors vectors of a panel of kUnits position units, the first at kFirstVector. Columns are asked for a few
// entries ahead: in no order, they come out of the second cache.
template <int kUnits, int kFirstVector, int kVectors>
void RunTiles(const VectorCsr& weight, const TileRange& tiles, const PanelCell& cell) {
  static_assert(kTileRows == VectorCsr::kRows);
  const FloatTag d;
  const auto* columns = reinterpret_cast<const char*>(cell.columns + kFirstVector * kLanes);
  for (int64_t t = tiles.begin; t < tiles.end; ++t) {
    const uint32_t* rows = weight.rows(t);
    const int64_t begin = weight.EntryBegin(t, tiles.block), end = weight.EntryBegin(t, tiles.block + 1);
    if (begin == end && !cell.first && !cell.last) continue;
    Tile<kUnits, kFirstVector, kVectors> tile;
    if (cell.first) {
      tile.SetBias(cell, rows);
    } else {
      tile.SetZero();
    }
    const float* weights = weight.weights() + begin * kTileRows;
    const uint32_t* offsets = weight.offsets() + begin;
    // Asks for one of the tile's rows, of the output and of what is added to it, if there is an `output`.
    const auto add_entry = [&](const float* output, const float* residual) HWY_ATTR {
      const auto* x = reinterpret_cast<const float*>(columns + size_t{*offsets} * kUnits);
      const auto* ahead = columns + size_t{offsets[VectorCsr::kEntriesAhead]} * kUnits;
      FloatVector column[kVectors];
      SWIZZLE_UNROLL
      for (int j = 0; j < kVectors; ++j) column[j] = hn::Load(d, x + j * kLanes);
      SWIZZLE_UNROLL
      for (int j = 0; j < kVectors; j += kUnitVectors) {
        __builtin_prefetch(ahead + j * kLanes * sizeof(float));
        if (output != nullptr) __builtin_prefetch(output + j * kLanes);
        if (residual != nullptr) __builtin_prefetch(residual + j * kLanes);
      }
      SWIZZLE_UNROLL
      for (int r = 0; r < kTileRows; ++r) {
        const FloatVector row_weight = hn::Set(d, weights[r]);
        SWIZZLE_UNROLL
        for (int j = 0; j < kVectors; ++j) tile.sums[r][j] = hn::MulAdd(row_weight, column[j], tile.sums[r][j]);
      }
      ++offsets;
      weights += kTileRows;
    };
    int64_t i = begin;
    for (int r = 0; r < kTileRows && i < end; ++r, ++i) {
      const int64_t row = int64_t{rows[r]} * (kUnits * kPositionUnit) + kFirstVector * kLanes;
      add_entry(cell.sums + row, cell.residual == nullptr ? nullptr : cell.residual + row);
    }
    for (; i < end; ++i) add_entry(nullptr, nullptr);
    tile.Finish(cell, rows);
  }
}

// For all of a panel's positions, in as few tiles as registers allow.
template <int kUnits, int kFirstVector = 0>
void RunCell(const VectorCsr& weight, const TileRange& tiles, const PanelCell& cell) {
  constexpr int kLeft = kUnits * kUnitVectors - kFirstVector;
  constexpr int kTiles = CeilDiv(kLeft, kMaxTileVectors);
  constexpr int kVectors = kLeft / kTiles;
  RunTiles<kUnits, kFirstVector, kVectors>(weight, tiles, cell);
  if constexpr (kVectors < kLeft) RunCell<kUnits, kFirstVector + kVectors>(weight, tiles, cell);
}

using CellFunction = void (*)(const VectorCsr&, const TileRange&, const PanelCell&);
constexpr CellFunction kRunCell[] = {RunCell<1>, RunCell<2>, RunCell<3>, RunCell<4>};
static_assert(std::size(kRunCell) * kPositionUnit == kMaxPanelWidth);

// The rows of a slice lie anywhere.
void ApplyToSlice(const VectorCsr& weight, const TileRange& tiles, const PanelCell& cell) {
  const uint32_t* rows = weight.rows(tiles.begin);
  const int64_t count = (tiles.end - tiles.begin) * VectorCsr::kRows;
  for (int64_t i = 0; i < count; ++i) {
    if (i > 0 && rows[i] == rows[i - 1]) continue;
    FinishRows(cell, rows[i], 1);
  }
}

}  // namespace

void ConvVector(const KernelArgs& args, Stream& stream) {
  const auto& weight = static_cast<const VectorCsr&>(*args.weight);
  const int64_t block_columns = VectorCsr::BlockColumns(*args.problem, weight.cols());
  const PanelConv conv(args, block_columns, weight.bias(), weight.slices());
  const auto run = [&](PanelColumns& columns, PanelCell cell, const PanelPart& part, const PanelPart&) {
    const CellFunction run_cell = kRunCell[cell.width / kPositionUnit - 1];
    for (int64_t block = 0; block < weight.blocks(); ++block) {
      cell.columns = ColumnRows(columns, part.panel, weight.BlockBegin(block), weight.BlockBegin(block + 1));
      cell.first = block == 0;
      cell.last = block + 1 == weight.blocks();
      for (int64_t slice = part.first_slice; slice < part.last_slice; ++slice) {
        const TileRange tiles = {weight.SliceBegin(slice), weight.SliceBegin(slice + 1), block};
        run_cell(weight, tiles, cell);
        if (cell.last && cell.epilogue.function) ApplyToSlice(weight, tiles, cell);
      }
    }
  };
  conv.ForEachPart(CpuStream::From(stream), run);
}

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace swizzle::cpu {

bool HoldsVectors(const Weight& weight, const Problem&) {
  const auto csr = weight.matrix.In<CsrMatrix>();
  return csr.ok() && VectorCsr::IsFull(**csr);
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareConvVector(const Weight& weight, const Problem& problem) {
  SWIZZLE_ASSIGN_OR_RETURN(const auto csr, weight.matrix.In<CsrMatrix>());
  return std::make_unique<VectorCsr>(*csr, weight.bias, problem);
}

size_t ConvVectorWorkspaceBytes(const Problem& problem) {
  const int64_t taps = problem.window().taps();
  return PanelConv::WorkspaceBytes(problem, VectorCsr::BlockColumns(problem, problem.input.channels * taps));
}

}  // namespace swizzle::cpu
#endif  // HWY_ONCE

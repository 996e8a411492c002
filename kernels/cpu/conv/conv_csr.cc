#include "kernels/cpu/conv/conv_csr.h"

#include <algorithm>
#include <cstring>

#include "kernels/base/integers.h"
#include "kernels/cpu/conv/interleaved_csr.h"
#include "kernels/cpu/conv/panel_cell.h"
#include "kernels/format/csr.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv/conv_csr.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/conv/im2col-inl.h"
#include "kernels/cpu/conv/panel_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_AVX2

// The rows of a group that are summed at once: with all of a panel's positions they make eight sums or more, as many as
// two FMA units keep under way, and leave registers for the weights.
template <int kUnits>
inline constexpr int kRowsAtOnce = kUnits == 1   ? 4
                                   : kUnits == 4 ? 1
                                                 : 2;

// The groups of a slice and block, for all positions of a panel of kUnits position units. Each FMA needs a load, and
// these registers are half as wide as a cache delivers them: long rows of sums keep the loads of weights and offsets
// few, and a weight is spread by its load. Offsets are loaded one entry ahead, sums start from zero, both as below.
template <int kUnits>
void RunCell(const InterleavedCsr& weight, std::span<const InterleavedCsr::Segment> segments, const PanelCell& cell,
             Prefetcher* prefetcher) {
  constexpr int kVectors = kUnits * kUnitVectors;
  constexpr int kRows = kRowsAtOnce<kUnits>;
  const FloatTag d;
  const auto* columns = reinterpret_cast<const char*>(cell.columns);
  uint32_t last_row = ~uint32_t{0};
  for (const InterleavedCsr::Segment& segment : segments) {
    const uint32_t* rows = weight.rows() + size_t{segment.first_group} * kTileRows;
    size_t entry = size_t{segment.first_entry} * kTileRows;
    for (uint32_t group = segment.groups; group != 0; --group, entry += size_t{segment.length} * kTileRows) {
      if (prefetcher != nullptr) prefetcher->Step();
      for (int pass = 0; pass < kTileRows / kRows; ++pass, rows += kRows) {
        // A group that is not full repeats its last row, which may be added to once only.
        if (rows[0] == last_row) continue;
        last_row = rows[kRows - 1];
        Tile<kUnits, 0, kVectors, kRows> tile;
        if (cell.first) {
          tile.SetBias(cell, rows);
        } else {
          tile.SetZero();
        }
        const float* weights = weight.weights() + entry + pass * kRows;
        const uint16_t* offsets = weight.offsets() + entry + pass * kRows;
        size_t next_offsets[kRows];
        SWIZZLE_UNROLL
        for (int r = 0; r < kRows; ++r) next_offsets[r] = offsets[r];
        for (uint32_t i = segment.length; i != 0; --i, weights += kTileRows) {
          offsets += kTileRows;
          SWIZZLE_UNROLL
          for (int r = 0; r < kRows; ++r) {
            const auto* x = reinterpret_cast<const float*>(Opaque(columns + next_offsets[r] * kUnits));
            next_offsets[r] = offsets[r];
            const FloatVector row_weight = hn::Set(d, weights[r]);
            SWIZZLE_UNROLL
            for (int j = 0; j < kVectors; ++j) {
              tile.sums[r][j] = hn::MulAdd(row_weight, hn::Load(d, x + j * kLanes), tile.sums[r][j]);
            }
          }
        }
        tile.Finish(cell, rows);
      }
    }
  }
}

#else

HWY_INLINE uint64_t LoadOffsets(const uint16_t* offsets) {
  uint64_t four;
  std::memcpy(&four, offsets, sizeof(four));
  return Opaque(four);
}

// Adds the products of one entry of row kRow.
template <int kRow, int kUnits, int kFirstVector, int kVectors>
HWY_INLINE void AddEntry(Tile<kUnits, kFirstVector, kVectors>& tile, FloatVector weights, uint64_t offsets,
                         const char* columns) {
  const FloatTag d;
  const auto offset = static_cast<uint16_t>(Opaque(offsets >> (16 * kRow)));
  const auto* x = reinterpret_cast<const float*>(Opaque(columns + size_t{offset} * kUnits));
  const FloatVector weight = hn::Broadcast<kRow>(weights);
  HWY_DEFAULT_UNROLL for (int j = 0; j < kVectors; ++j) {
    tile.sums[kRow][j] = hn::MulAdd(weight, hn::Load(d, x + j * kLanes), tile.sums[kRow][j]);
  }
}

// The groups of a slice and block, for kVectors vectors of a panel of kUnits position units, the first at kFirstVector.
//
// Two things keep the FMA units fed. Offsets are loaded one entry ahead: a load that waits for an address that was just
// loaded is the bottleneck otherwise. And sums start from zero where the output holds a part already: that part, out of
// the second cache, is added when it is due, not waited for.
template <int kUnits, int kFirstVector, int kVectors>
void RunTiles(const InterleavedCsr& weight, std::span<const InterleavedCsr::Segment> segments,
              const PanelCell& panel_cell, Prefetcher* prefetcher) {
  static_assert(kTileRows == InterleavedCsr::kRows && kTileRows * sizeof(uint16_t) == sizeof(uint64_t));
  const PanelCell cell = panel_cell;
  const auto* columns = reinterpret_cast<const char*>(cell.columns + kFirstVector * kLanes);
  const uint32_t* rows = weight.rows() + size_t{segments.front().first_group} * kTileRows;
  const float* weights = weight.weights() + size_t{segments.front().first_entry} * kTileRows;
  const uint16_t* offsets = weight.offsets() + size_t{segments.front().first_entry} * kTileRows;
  uint64_t next_offsets = LoadOffsets(offsets);
  for (const InterleavedCsr::Segment& segment : segments) {
    for (uint32_t group = segment.groups; group != 0; --group, rows += kTileRows) {
      if (kFirstVector == 0 && prefetcher != nullptr) prefetcher->Step();
      Tile<kUnits, kFirstVector, kVectors> tile;
      if (cell.first) {
        tile.SetBias(cell, rows);
      } else {
        tile.SetZero();
      }
      for (uint32_t i = segment.length; i != 0; --i) {
        const uint64_t four_offsets = next_offsets;
        const FloatVector four_weights = hn::LoadDup128(FloatTag(), weights);
        weights += kTileRows;
        offsets += kTileRows;
        next_offsets = LoadOffsets(offsets);
        AddEntry<0>(tile, four_weights, four_offsets, columns);
        AddEntry<1>(tile, four_weights, four_offsets, columns);
        AddEntry<2>(tile, four_weights, four_offsets, columns);
        AddEntry<3>(tile, four_weights, four_offsets, columns);
      }
      tile.Finish(cell, rows);
    }
  }
}

// The groups of a slice and block, for all of a panel's positions, in as few tiles as registers allow.
template <int kUnits, int kFirstVector = 0>
void RunCell(const InterleavedCsr& weight, std::span<const InterleavedCsr::Segment> segments, const PanelCell& cell,
             Prefetcher* prefetcher) {
  constexpr int kLeft = kUnits * kUnitVectors - kFirstVector;
  constexpr int kTiles = CeilDiv(kLeft, kMaxTileVectors);
  constexpr int kVectors = kLeft / kTiles;
  RunTiles<kUnits, kFirstVector, kVectors>(weight, segments, cell, prefetcher);
  if constexpr (kVectors < kLeft) RunCell<kUnits, kFirstVector + kVectors>(weight, segments, cell, prefetcher);
}

#endif  // HWY_TARGET == HWY_AVX2

using CellFunction = void (*)(const InterleavedCsr&, std::span<const InterleavedCsr::Segment>, const PanelCell&,
                              Prefetcher*);
constexpr CellFunction kRunCell[] = {RunCell<1>, RunCell<2>, RunCell<3>, RunCell<4>};
static_assert(std::size(kRunCell) * kPositionUnit == kMaxPanelWidth);

// What a part has asked for that comes after it, or after its current block where a panel is too large to be kept until
// it is its turn: 768x3072x1024, 768x3072x128 and 512x4608x196 are 2 to 4 % faster so than with the next panel asked
// for (90 % zeros, one Zen 4 core), where 384x1536x1024, whose panels are kept, is 5 % slower.
class AskAhead {
 public:
  AskAhead(const InterleavedCsr& weight, const PanelConv& conv, const PanelPart& part, const PanelPart& next)
      : weight_(weight), conv_(conv), part_(part), next_(next), prefetcher_(OfNextPart()) {}

  // To be stepped once for each group of rows of this block; null where all that is read and written stays in the
  // cache.
  Prefetcher* ForBlock(int64_t block) {
    if (!conv_.ExceedsCache()) return nullptr;
    if (conv_.PanelExceedsCache()) prefetcher_ = OfNextBlock(block);
    return &prefetcher_;
  }

 private:
  int64_t Groups() const {
    const int64_t rows = weight_.SliceBegin(part_.last_slice) - weight_.SliceBegin(part_.first_slice);
    return std::max<int64_t>(1, rows / kTileRows);
  }

  Prefetcher OfNextPart() const {
    const bool new_input = next_.panel != part_.panel && next_.first_slice == 0;
    return Prefetcher(
        new_input ? conv_.InputRows(next_.panel, 0, weight_.cols()) : std::span<const std::byte>(),
        conv_.OutputRows(next_.panel, weight_.SliceBegin(next_.first_slice), weight_.SliceBegin(next_.last_slice)),
        Groups() * weight_.blocks());
  }

  Prefetcher OfNextBlock(int64_t block) const {
    const bool is_last = block + 1 == weight_.blocks();
    const int64_t panel = is_last ? next_.panel : part_.panel;
    const int64_t next_block = is_last ? 0 : block + 1;
    return Prefetcher(conv_.InputRows(panel, weight_.BlockBegin(next_block), weight_.BlockBegin(next_block + 1)), {},
                      Groups());
  }

  const InterleavedCsr& weight_;
  const PanelConv& conv_;
  const PanelPart& part_;
  const PanelPart& next_;
  Prefetcher prefetcher_;
};

// A slice's rows are still in the second cache when their function follows.
void RunPart(const InterleavedCsr& weight, const PanelPart& part, PanelColumns& columns, PanelCell cell,
             AskAhead ahead) {
  const CellFunction run_cell = kRunCell[cell.width / kPositionUnit - 1];
  for (int64_t block = 0; block < weight.blocks(); ++block) {
    Prefetcher* const prefetcher = ahead.ForBlock(block);
    cell.columns = ColumnRows(columns, part.panel, weight.BlockBegin(block), weight.BlockBegin(block + 1));
    cell.first = block == 0;
    cell.last = block + 1 == weight.blocks();
    for (int64_t slice = part.first_slice; slice < part.last_slice; ++slice) {
      const auto segments = weight.segments(slice, block);
      if (!segments.empty()) run_cell(weight, segments, cell, prefetcher);
      const int64_t first = weight.SliceBegin(slice);
      if (cell.last) FinishRows(cell, first, weight.SliceBegin(slice + 1) - first);
    }
  }
}

}  // namespace

void ConvCsr(const KernelArgs& args, Stream& stream) {
  const auto& weight = static_cast<const InterleavedCsr&>(*args.weight);
  const PanelConv conv(args, InterleavedCsr::kMaxBlock, weight.bias(), weight.slices());
  const auto run = [&](PanelColumns& columns, const PanelCell& cell, const PanelPart& part, const PanelPart& next) {
    RunPart(weight, part, columns, cell, AskAhead(weight, conv, part, next));
  };
  conv.ForEachPart(CpuStream::From(stream), run);
}

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace swizzle::cpu {

StatusOr<std::unique_ptr<PackedWeight>> PrepareConvCsr(const Weight& weight, const Problem& problem) {
  SWIZZLE_ASSIGN_OR_RETURN(const auto csr, weight.matrix.In<CsrMatrix>());
  constexpr double kScales[] = {1.0, 2.0 / 3.0, 1.5};
  static_assert(std::size(kScales) == std::size(kConvCsrBlockings));
  const int64_t usual = InterleavedCsr::ChooseBlocks(*csr);
  const int64_t blocks = InterleavedCsr::ChooseBlocks(*csr, HostCacheSizes(), kScales[problem.blocking]);
  if (problem.blocking != 0 && blocks == usual) return nullptr;
  return std::make_unique<InterleavedCsr>(*csr, weight.bias, ThreadsPerPanel(problem), blocks);
}

size_t ConvCsrWorkspaceBytes(const Problem& problem) {
  return PanelConv::WorkspaceBytes(problem, InterleavedCsr::kMaxBlock);
}

bool AcceptsConvCsr(const Problem& problem) {
  return problem.from.layout != Layout::kBlocked16 || problem.window().IsPointwise();
}

}  // namespace swizzle::cpu
#endif  // HWY_ONCE

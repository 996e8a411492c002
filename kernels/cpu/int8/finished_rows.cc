#include "kernels/cpu/int8/finished_rows.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "kernels/base/integers.h"

namespace swizzle::cpu {
namespace {

constexpr int64_t kChunk = 32;  // rows
static_assert(kChunk % BlockRows::kRows == 0);

constexpr auto kInOrder = [] {
  std::array<uint32_t, kChunk> rows = {};
  std::iota(rows.begin(), rows.end(), 0u);
  return rows;
}();

// Sums of a chunk's rows, all positions beside each other.
struct Chunk {
  alignas(kBufferAlignment) float products[kChunk * kMaxPanelWidth];
  RealUnits units;

  Chunk() {
    for (int unit = 0; unit < RealUnits::kUnits; ++unit) {
      units.first[unit] = products + unit * kPositionUnit;
      units.stride[unit] = kMaxPanelWidth;
    }
  }
};

OutputSteps Unbounded() {
  return {.real_low = std::numeric_limits<float>::lowest(), .real_high = std::numeric_limits<float>::max()};
}

}  // namespace

template <const ByteCells& kCells>
void FinishedQuads(const QuadRows& rows, const PanelBytes& panel, const RowEnds& ends) {
  constexpr size_t kQuad = 4;
  const OutputSteps steps = Unbounded();
  Chunk chunk;
  const PanelBytes sums{
      .columns = panel.columns, .reals = &chunk.units, .positions = RoundUp(panel.positions, kPositionUnit)};
  QuadRows some = rows;
  const uint32_t* row = rows.rows;
  some.rows = kInOrder.data();
  const auto strip_rows = static_cast<uint32_t>(rows.shape.strip_rows);
  const size_t offsets = rows.shape.blocks ? 1 : kQuad;
  for (const QuadGroup& group : rows.groups) {
    for (uint32_t left = group.strips; left > 0;) {
      const QuadGroup part = {std::min<uint32_t>(left, kChunk / strip_rows), group.quads};
      some.groups = std::span(&part, 1);
      kCells.quads(some, sums, steps);
      const uint32_t count = part.strips * strip_rows;
      PositionCellsOf<kCells>().finish(chunk.products, std::span(row, count), panel, ends);
      const size_t quads = size_t{part.strips} * part.quads;
      some.weights += quads * strip_rows;
      if (some.near_offsets != nullptr) some.near_offsets += quads * offsets;
      if (some.far_columns != nullptr) some.far_columns += quads * offsets;
      some.start += count;
      some.scale += count;
      row += count;
      left -= part.strips;
    }
  }
}

template <const ByteCells& kCells>
void FinishedBlocks(const BlockRows& rows, const PanelBytes& panel, const RowEnds& ends) {
  const OutputSteps steps = Unbounded();
  Chunk chunk;
  const PanelBytes sums{
      .columns = panel.columns, .reals = &chunk.units, .positions = RoundUp(panel.positions, kPositionUnit)};
  for (int64_t done = 0; done < rows.rows; done += kChunk) {
    const int64_t count = std::min(kChunk, rows.rows - done), first = rows.first_row + done;
    const BlockRows some = {.first_row = 0,
                            .rows = count,
                            .quads = rows.quads,
                            .weights = rows.weights + done * rows.quads,
                            .start = rows.start + first,
                            .scale = rows.scale + first};
    kCells.blocks(some, sums, steps);
    std::array<uint32_t, kChunk> places;
    std::iota(places.begin(), places.end(), static_cast<uint32_t>(first));
    PositionCellsOf<kCells>().finish(chunk.products, std::span(places).first(count), panel, ends);
  }
}

#define SWIZZLE_INSTANTIATE(cells)                                                                    \
  template void FinishedQuads<cells::kByteCells>(const QuadRows&, const PanelBytes&, const RowEnds&); \
  template void FinishedBlocks<cells::kByteCells>(const BlockRows&, const PanelBytes&, const RowEnds&);
SWIZZLE_INSTANTIATE(vbmi)
SWIZZLE_INSTANTIATE(vnni)
SWIZZLE_INSTANTIATE(N_AVX3)
SWIZZLE_INSTANTIATE(N_AVX2)
SWIZZLE_INSTANTIATE(N_EMU128)
#undef SWIZZLE_INSTANTIATE

}  // namespace swizzle::cpu

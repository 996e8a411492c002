// Real operands of kernels that multiply bytes, a panel of 64 positions at a time: how a panel becomes bytes, each
// position by a scale and a zero point of its own, and what follows the products, for each instruction set.
//
// A position's bytes are those of ONNX's DynamicQuantizeLinear over its channels: the range of its values and 0 in 255
// steps. Stateless, thread-safe.
#ifndef SWIZZLE_KERNELS_CPU_INT8_POSITION_CELLS_H_
#define SWIZZLE_KERNELS_CPU_INT8_POSITION_CELLS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/cpu/int8/byte_cells.h"

namespace swizzle::cpu {

// As RealUnits, of what is read.
struct ReadUnits {
  std::array<const float*, RealUnits::kUnits> first = {};
  std::array<int64_t, RealUnits::kUnits> stride = {};
};

// What the bytes of each position of a panel stand for: scale * byte - offset.
struct PositionSteps {
  alignas(kBufferAlignment) float scale[kMaxPanelWidth] = {};
  alignas(kBufferAlignment) float offset[kMaxPanelWidth] = {};
};

// What follows the products of a panel, which are in steps of its positions, or real already.
struct RowEnds {
  const Epilogue* epilogue = nullptr;
  const PositionSteps* steps = nullptr;  // null: products are real
  const float* bias = nullptr;           // by row, where there are steps
  const float* sums = nullptr;           // of each row's weights, likewise
  std::ptrdiff_t residual = 0;           // from an element of the output to the residual's
};

struct PositionCells {
  // Of units [begin, end). Rows of 64 bytes each; those of positions that there are none of are left as they are.
  void (*quantise)(const ReadUnits& from, int begin, int end, int64_t rows, uint8_t* bytes, PositionSteps& steps);
  // output = function(clamp((products * scale - sums * offset) + bias + residual)), in these rows, save kNoRow, as real
  // numbers or, without a residual, as bytes. products: [row][64], of no use afterwards.
  void (*finish)(float* products, std::span<const uint32_t> rows, const PanelBytes& output, const RowEnds& ends);
};

SWIZZLE_DECLARE_PER_TARGET(extern const PositionCells kPositionCells;)
namespace vnni {
extern const PositionCells kPositionCells;  // position_cells_vnni.cc
}  // namespace vnni

// Those that go with these cells.
template <const ByteCells& kCells>
constexpr const PositionCells& PositionCellsOf() {
  if constexpr (&kCells == &N_EMU128::kByteCells) return N_EMU128::kPositionCells;
  if constexpr (&kCells == &N_AVX2::kByteCells) return N_AVX2::kPositionCells;
  if constexpr (&kCells == &vnni::kByteCells) return vnni::kPositionCells;
  return N_AVX3::kPositionCells;
}

// Where the positions of a full panel lie in kPanels of `channels` rows. `data` may be const.
template <typename Units, typename Float>
Units PanelUnits(Float* data, int64_t positions, int64_t channels, int64_t panel) {
  const PanelGrid grid(positions);
  Units units;
  for (int unit = 0; unit < RealUnits::kUnits; ++unit) {
    const int64_t position = panel * kMaxPanelWidth + unit * kPositionUnit;
    if (position >= grid.padded_positions()) break;
    const int64_t at = grid.PanelOf(position);
    units.first[unit] = data + grid.Begin(at) * channels + (position - grid.Begin(at));
    units.stride[unit] = grid.Width(at);
  }
  return units;
}

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_INT8_POSITION_CELLS_H_

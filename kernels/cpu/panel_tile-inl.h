// A tile of sums in registers: kTileRows output rows by some vectors of a panel's positions. Compiled per target.
#if defined(SWIZZLE_KERNELS_CPU_PANEL_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWIZZLE_KERNELS_CPU_PANEL_TILE_INL_H_
#undef SWIZZLE_KERNELS_CPU_PANEL_TILE_INL_H_
#else
#define SWIZZLE_KERNELS_CPU_PANEL_TILE_INL_H_
#endif

#include "hwy/highway.h"
#include "kernels/cpu/panel_cell.h"
#include "kernels/cpu/partial_vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {

// Vectors of a tile at most: with kTileRows rows they leave registers for a weight and its broadcast.
#if HWY_TARGET == HWY_AVX3
inline constexpr int kMaxTileVectors = 4;
#elif HWY_TARGET == HWY_AVX2
inline constexpr int kMaxTileVectors = 3;
#else
inline constexpr int kMaxTileVectors = 2;
#endif

// kPositionUnit positions.
inline constexpr int kUnitVectors = static_cast<int>(kPositionUnit / kLanes);

// Hides where a value comes from, so that the compiler computes it here and once. For addresses: with an index register
// beside the base, every load or store would cost a micro-operation more, or the wrong port.
template <typename T>
HWY_INLINE T Opaque(T value) {
  asm("" : "+r"(value));
  return value;
}

// In a panel of kUnits position units: kVectors vectors from kFirstVector on, of kRows rows.
template <int kUnits, int kFirstVector, int kVectors, int kRows = kTileRows>
struct Tile {
  FloatVector sums[kRows][kVectors];

  // Where the tile's part of a row of a panel begins.
  template <typename Float>
  static HWY_INLINE Float* At(Float* panel, uint32_t row) {
    return Opaque(panel + size_t{row} * (kUnits * kPositionUnit) + kFirstVector * kLanes);
  }

  HWY_INLINE void SetBias(const PanelCell& cell, const uint32_t* rows) {
    SWIZZLE_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const FloatVector bias = hn::Set(FloatTag(), cell.bias[rows[r]]);
      SWIZZLE_UNROLL
      for (int j = 0; j < kVectors; ++j) sums[r][j] = bias;
    }
  }

  HWY_INLINE void SetZero() {
    SWIZZLE_UNROLL
    for (int r = 0; r < kRows; ++r) {
      SWIZZLE_UNROLL
      for (int j = 0; j < kVectors; ++j) sums[r][j] = hn::Zero(FloatTag());
    }
  }

  HWY_INLINE void Add(const float* panel, const uint32_t* rows) {
    SWIZZLE_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const float* from = At(panel, rows[r]);
      SWIZZLE_UNROLL
      for (int j = 0; j < kVectors; ++j) {
        sums[r][j] = hn::Add(sums[r][j], hn::Load(FloatTag(), from + j * kLanes));
      }
    }
  }

  HWY_INLINE void Clamp(const Epilogue& epilogue) {
    const FloatVector low = hn::Set(FloatTag(), epilogue.low);
    const FloatVector high = hn::Set(FloatTag(), epilogue.high);
    SWIZZLE_UNROLL
    for (int r = 0; r < kRows; ++r) {
      SWIZZLE_UNROLL
      for (int j = 0; j < kVectors; ++j) sums[r][j] = HWY_NAMESPACE::Clamp(sums[r][j], low, high);
    }
  }

  HWY_INLINE void Store(float* panel, const uint32_t* rows) const {
    SWIZZLE_UNROLL
    for (int r = 0; r < kRows; ++r) {
      float* to = At(panel, rows[r]);
      SWIZZLE_UNROLL
      for (int j = 0; j < kVectors; ++j) hn::Store(sums[r][j], FloatTag(), to + j * kLanes);
    }
  }

  // What remains once the tile's own sums are complete.
  HWY_INLINE void Finish(const PanelCell& cell, const uint32_t* rows) {
    if (!cell.first) Add(cell.output, rows);
    if (cell.last) {
      if (cell.residual != nullptr) Add(cell.residual, rows);
      Clamp(cell.epilogue);
    }
    Store(cell.output, rows);
  }
};

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

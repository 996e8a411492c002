// A tile of sums in registers: kTileRows output rows by some vectors of a panel's positions. Compiled per target.
#if defined(SWIZZLE_KERNELS_CPU_PANEL_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWIZZLE_KERNELS_CPU_PANEL_TILE_INL_H_
#undef SWIZZLE_KERNELS_CPU_PANEL_TILE_INL_H_
#else
#define SWIZZLE_KERNELS_CPU_PANEL_TILE_INL_H_
#endif

#include "hwy/highway.h"
#include "kernels/cpu/conv/panel_cell.h"
#include "kernels/cpu/elementwise/function.h"
#include "kernels/cpu/simd/elements-inl.h"

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

// What ends complete sums where the output is bfloat16, for `count` positions from `first` on of some rows. A function
// follows later, of rows in `sums`, and rounds them. Apart from tiles, of which narrow vectors have many to compile;
// wide ones are rounded in registers, since rows of few entries would else take a quarter longer.
[[maybe_unused]] inline HWY_NOINLINE void RoundSums(const PanelCell& cell, std::span<const uint32_t> rows,
                                                    int64_t first, int64_t count) {
  const FloatTag d;
  const FloatVector low = hn::Set(d, cell.epilogue.low);
  const FloatVector high = hn::Set(d, cell.epilogue.high);
  for (size_t r = 0; r < rows.size(); ++r) {
    if (r > 0 && rows[r] == rows[r - 1]) continue;  // of a group that is not full
    const int64_t begin = rows[r] * cell.width + first;
    for (int64_t i = begin; i < begin + count; i += kLanes) {
      FloatVector sum = hn::Load(d, cell.sums + i);
      if (cell.rounded_residual != nullptr) sum = hn::Add(sum, LoadAll(cell.rounded_residual + i));
      sum = Clamp(sum, low, high);
      if (cell.epilogue.function) {
        hn::Store(sum, d, cell.sums + i);
      } else {
        StoreAll(sum, cell.rounded_output + i);
      }
    }
  }
}

// In a panel of kUnits position units: kVectors vectors from kFirstVector on, of kRows rows.
template <int kUnits, int kFirstVector, int kVectors, int kRows = kTileRows>
struct Tile {
  FloatVector sums[kRows][kVectors];

  // Where the tile's part of a row of a panel begins.
  template <typename T>
  static HWY_INLINE T* At(T* panel, uint32_t row) {
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

  template <typename T>
  HWY_INLINE void Add(const T* panel, const uint32_t* rows) {
    SWIZZLE_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const T* from = At(panel, rows[r]);
      SWIZZLE_UNROLL
      for (int j = 0; j < kVectors; ++j) sums[r][j] = hn::Add(sums[r][j], LoadAll(from + j * kLanes));
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

  template <typename T>
  HWY_INLINE void Store(T* panel, const uint32_t* rows) const {
    SWIZZLE_UNROLL
    for (int r = 0; r < kRows; ++r) {
      T* to = At(panel, rows[r]);
      SWIZZLE_UNROLL
      for (int j = 0; j < kVectors; ++j) StoreAll(sums[r][j], to + j * kLanes);
    }
  }

  // What remains once the tile's own sums are complete.
  HWY_INLINE void Finish(const PanelCell& cell, const uint32_t* rows) {
    if (!cell.first) Add(cell.sums, rows);
    const bool rounds = cell.rounded_output != nullptr;
#if HWY_TARGET == HWY_AVX3
    if (cell.last && rounds) {
      if (cell.rounded_residual != nullptr) Add(cell.rounded_residual, rows);
      Clamp(cell.epilogue);
      return cell.epilogue.function ? Store(cell.sums, rows) : Store(cell.rounded_output, rows);
    }
#endif
    if (cell.last && !rounds) {
      if (cell.residual != nullptr) Add(cell.residual, rows);
      Clamp(cell.epilogue);
    }
    Store(cell.sums, rows);
#if HWY_TARGET != HWY_AVX3
    if (cell.last && rounds) RoundSums(cell, {rows, kRows}, kFirstVector * kLanes, kVectors * kLanes);
#endif
  }
};

// The function that ends the epilogue, if any, over `rows` neighbouring rows whose sums are complete.
HWY_INLINE void FinishRows(const PanelCell& cell, int64_t first, int64_t rows) {
  if (!cell.epilogue.function) return;
  const int64_t offset = first * cell.width, count = rows * cell.width;
  ApplyFunction(*cell.epilogue.function, cell.sums + offset, count);
  if (cell.rounded_output != nullptr) Round(cell.sums + offset, count, cell.rounded_output + offset);
}

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

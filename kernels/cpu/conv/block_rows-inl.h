// Dense sums of blocks of 16 output channels, which stand in vectors, with inputs that are broadcast to them. Compiled
// per target.
#if defined(SWIZZLE_KERNELS_CPU_BLOCK_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWIZZLE_KERNELS_CPU_BLOCK_ROWS_INL_H_
#undef SWIZZLE_KERNELS_CPU_BLOCK_ROWS_INL_H_
#else
#define SWIZZLE_KERNELS_CPU_BLOCK_ROWS_INL_H_
#endif

#include "hwy/highway.h"
#include "kernels/cpu/conv/block_rows.h"
#include "kernels/cpu/elementwise/function.h"
#include "kernels/cpu/layout/slab.h"
#include "kernels/cpu/simd/elements-inl.h"

HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {

inline constexpr int kBlockVectors = static_cast<int>(kBlockChannels / kLanes);
inline constexpr int kMostBlocks = HWY_TARGET == HWY_AVX3 ? 2 : 1;  // at once
// Of so many blocks at once: their sums, a vector of weights for each and an input have registers.
template <int kBlocks>
inline constexpr int kPositionsOf = HWY_TARGET == HWY_AVX3 ? 16 / kBlocks : 4;

// Some neighbouring positions of some blocks of output channels.
struct BlockRow {
  const float* input;   // what the first position's window begins with
  const int64_t* taps;  // from there, of each input of a window
  int64_t tap_count;
  const float* weights;  // of the first block
  const float* bias;
  const float* residual;  // null: none
  float* output;
  int64_t block_stride;  // of the output and the residual
  int64_t width;
  const Epilogue* epilogue;
};

// kPositions positions from x on, whose inputs are kStride floats apart, and of which `count` are stored.
template <int kStride, int kBlocks, int kPositions>
HWY_INLINE void RunTile(const BlockRow& row, int64_t x, int64_t count) {
  constexpr int kVectors = kBlocks * kBlockVectors;
  const FloatTag d;
  FloatVector sums[kPositions][kVectors];
  SWIZZLE_UNROLL for (int v = 0; v < kVectors; ++v) {
    const FloatVector bias = hn::LoadU(d, row.bias + v * kLanes);
    SWIZZLE_UNROLL for (int p = 0; p < kPositions; ++p) sums[p][v] = bias;
  }
  const float* const input = row.input + x * kStride;
  for (int64_t tap = 0; tap < row.tap_count; ++tap) {
    FloatVector weights[kVectors];
    SWIZZLE_UNROLL for (int v = 0; v < kVectors; ++v) {
      const int64_t block = v / kBlockVectors * row.tap_count;
      weights[v] = hn::LoadU(d, row.weights + (block + tap) * kBlockChannels + v % kBlockVectors * kLanes);
    }
    const float* const from = input + row.taps[tap];
    SWIZZLE_UNROLL for (int p = 0; p < kPositions; ++p) {
      const FloatVector value = hn::Set(d, from[p * kStride]);
      SWIZZLE_UNROLL for (int v = 0; v < kVectors; ++v) sums[p][v] = hn::MulAdd(value, weights[v], sums[p][v]);
    }
  }
  const FloatVector low = hn::Set(d, row.epilogue->low), high = hn::Set(d, row.epilogue->high);
  SWIZZLE_UNROLL for (int p = 0; p < kPositions; ++p) {
    if (p >= count) break;
    SWIZZLE_UNROLL for (int v = 0; v < kVectors; ++v) {
      const int64_t at = v / kBlockVectors * row.block_stride + (x + p) * kBlockChannels + v % kBlockVectors * kLanes;
      FloatVector sum = sums[p][v];
      if (row.residual != nullptr) sum = hn::Add(sum, hn::LoadU(d, row.residual + at));
      hn::StoreU(Clamp(sum, low, high), d, row.output + at);
    }
  }
}

// kOverreads: inputs may be read that stand behind the last position's.
template <int kStride, int kBlocks, bool kOverreads>
void RunRow(const BlockRow& row) {
  constexpr int kPositions = kPositionsOf<kBlocks>;
  int64_t x = 0;
  for (; x + (kOverreads ? 1 : kPositions) <= row.width; x += kPositions) {
    RunTile<kStride, kBlocks, kPositions>(row, x, row.width - x);
  }
  for (; x < row.width; ++x) RunTile<kStride, kBlocks, 1>(row, x, 1);
  if (!row.epilogue->function) return;
  for (int block = 0; block < kBlocks; ++block) {
    ApplyFunction(*row.epilogue->function, row.output + block * row.block_stride, row.width * kBlockChannels);
  }
}

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

// What the kernels of bytes share with VNNI. Include it in sources that are compiled once, before anything of theirs.
// What stands between SWIZZLE_BEFORE_VNNI, or SWIZZLE_BEFORE_VBMI where VBMI is used, too, and SWIZZLE_AFTER_VNNI is
// compiled for these instructions.
#ifndef SWIZZLE_KERNELS_CPU_INT8_VNNI_INL_H_
#define SWIZZLE_KERNELS_CPU_INT8_VNNI_INL_H_

#include <immintrin.h>

#include "hwy/base.h"
#include "kernels/cpu/int8/byte_cells.h"

// GCC 12 takes what its own intrinsics leave undefined for a mistake (GCC bug 105593).
#if HWY_COMPILER_GCC_ACTUAL
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

#define SWIZZLE_INLINE inline __attribute__((always_inline))
#define SWIZZLE_VNNI "avx,avx2,fma,bmi,bmi2,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni"
#define SWIZZLE_BEFORE_VNNI HWY_PUSH_ATTRIBUTES(SWIZZLE_VNNI)
#define SWIZZLE_BEFORE_VBMI HWY_PUSH_ATTRIBUTES(SWIZZLE_VNNI ",avx512vbmi")
#define SWIZZLE_AFTER_VNNI HWY_POP_ATTRIBUTES

// See ByteCells.
namespace swizzle::cpu::vbmi {  // window_cells_vbmi.cc
void Gather(const ByteSource& source, const Window& window, const WindowLanes& lanes, const ByteColumns& columns);
bool DirectDepthwise(const ByteSource& source, const WindowPlace& place, const ChannelTaps& taps,
                     const PanelBytes& panel, const OutputSteps& steps);
}  // namespace swizzle::cpu::vbmi

SWIZZLE_BEFORE_VNNI
namespace swizzle::cpu::vnni {

// window_cells_vnni.cc
void Gather(const ByteSource& source, const Window& window, const WindowLanes& lanes, const ByteColumns& columns);
void Depthwise(const ChannelTaps& taps, const PanelBytes& panel, const OutputSteps& steps);
void Largest(const uint8_t* rows, int64_t taps, int64_t stride, const OutputSteps& steps, uint8_t* to);
int32_t Sum(const uint8_t* from, int64_t count);

// What follows is each source's own.
namespace {

inline constexpr int64_t kLanes = kMaxPanelWidth;

// Of 64 positions, as interleaving leaves them: lane 4 l + i of vector j is position 16 l + 4 j + i.
struct Sums {
  __m512i of[4];
};

SWIZZLE_INLINE __m512i Load(const uint8_t* from) { return _mm512_load_si512(from); }

// Four rows, interleaved byte by byte.
struct Interleaved {
  __m512i of[4];
};

SWIZZLE_INLINE Interleaved InterleaveRows(__m512i a, __m512i b, __m512i c, __m512i d) {
  const __m512i low_ab = _mm512_unpacklo_epi8(a, b), high_ab = _mm512_unpackhi_epi8(a, b);
  const __m512i low_cd = _mm512_unpacklo_epi8(c, d), high_cd = _mm512_unpackhi_epi8(c, d);
  return {{_mm512_unpacklo_epi16(low_ab, low_cd), _mm512_unpackhi_epi16(low_ab, low_cd),
           _mm512_unpacklo_epi16(high_ab, high_cd), _mm512_unpackhi_epi16(high_ab, high_cd)}};
}

SWIZZLE_INLINE void AddProducts(const Interleaved& x, __m512i weights, Sums& sums) {
  sums.of[0] = _mm512_dpbusd_epi32(sums.of[0], x.of[0], weights);
  sums.of[1] = _mm512_dpbusd_epi32(sums.of[1], x.of[1], weights);
  sums.of[2] = _mm512_dpbusd_epi32(sums.of[2], x.of[2], weights);
  sums.of[3] = _mm512_dpbusd_epi32(sums.of[3], x.of[3], weights);
}

SWIZZLE_INLINE Sums StartFrom(int32_t start) {
  const __m512i all = _mm512_set1_epi32(start);
  return {{all, all, all, all}};
}

// The same of 32 positions, which takes half as long where vectors of 512 bits take two turns, and no longer elsewhere.
struct HalfPanel {
  struct Sums {
    __m256i of[4];
  };
  static SWIZZLE_INLINE __m256i Load(const uint8_t* from) {
    return _mm256_load_si256(reinterpret_cast<const __m256i*>(from));
  }
  static SWIZZLE_INLINE Sums Interleave(__m256i a, __m256i b, __m256i c, __m256i d) {
    const __m256i low_ab = _mm256_unpacklo_epi8(a, b), high_ab = _mm256_unpackhi_epi8(a, b);
    const __m256i low_cd = _mm256_unpacklo_epi8(c, d), high_cd = _mm256_unpackhi_epi8(c, d);
    return {{_mm256_unpacklo_epi16(low_ab, low_cd), _mm256_unpackhi_epi16(low_ab, low_cd),
             _mm256_unpacklo_epi16(high_ab, high_cd), _mm256_unpackhi_epi16(high_ab, high_cd)}};
  }
  static SWIZZLE_INLINE Sums StartFrom(int32_t start) {
    const __m256i all = _mm256_set1_epi32(start);
    return {{all, all, all, all}};
  }
  static SWIZZLE_INLINE void AddProducts(const Sums& x, int32_t quad, Sums& sums) {
    const __m256i weights = _mm256_set1_epi32(quad);
    sums.of[0] = _mm256_dpbusd_epi32(sums.of[0], x.of[0], weights);
    sums.of[1] = _mm256_dpbusd_epi32(sums.of[1], x.of[1], weights);
    sums.of[2] = _mm256_dpbusd_epi32(sums.of[2], x.of[2], weights);
    sums.of[3] = _mm256_dpbusd_epi32(sums.of[3], x.of[3], weights);
  }
  static SWIZZLE_INLINE Sums LoadBlock(const uint8_t* x) {
    return {{Load(x), Load(x + kLanes), Load(x + 2 * kLanes), Load(x + 3 * kLanes)}};
  }
  static SWIZZLE_INLINE Sums LoadSums(const int32_t* from) { return LoadBlock(reinterpret_cast<const uint8_t*>(from)); }
  static SWIZZLE_INLINE void StoreSums(const Sums& sums, int32_t* to) {
    HWY_UNROLL(4)
    for (int j = 0; j < 4; ++j) _mm256_store_si256(reinterpret_cast<__m256i*>(to + 16 * j), sums.of[j]);
  }
  // The other positions are zeros.
  static SWIZZLE_INLINE vnni::Sums Whole(const Sums& sums) {
    return {{_mm512_zextsi256_si512(sums.of[0]), _mm512_zextsi256_si512(sums.of[1]), _mm512_zextsi256_si512(sums.of[2]),
             _mm512_zextsi256_si512(sums.of[3])}};
  }
};

// Of 4 positions, as the last panel of a plane of 14x14 has them: all of them are lanes of one vector.
struct FewPositions {
  static constexpr int64_t kMost = 4;
  using Sums = __m128i;
  static SWIZZLE_INLINE __m128i Load(const uint8_t* from) {
    return _mm_load_si128(reinterpret_cast<const __m128i*>(from));
  }
  static SWIZZLE_INLINE Sums Interleave(__m128i a, __m128i b, __m128i c, __m128i d) {
    return _mm_unpacklo_epi16(_mm_unpacklo_epi8(a, b), _mm_unpacklo_epi8(c, d));
  }
  static SWIZZLE_INLINE Sums LoadBlock(const uint8_t* x) { return Load(x); }
  static SWIZZLE_INLINE Sums LoadSums(const int32_t* from) { return Load(reinterpret_cast<const uint8_t*>(from)); }
  static SWIZZLE_INLINE void StoreSums(Sums sums, int32_t* to) {
    _mm_store_si128(reinterpret_cast<__m128i*>(to), sums);
  }
  static SWIZZLE_INLINE Sums StartFrom(int32_t start) { return _mm_set1_epi32(start); }
  static SWIZZLE_INLINE void AddProducts(Sums x, int32_t quad, Sums& sums) {
    sums = _mm_dpbusd_epi32(sums, x, _mm_set1_epi32(quad));
  }
  // The other positions are zeros.
  static SWIZZLE_INLINE vnni::Sums Whole(Sums sums) {
    const __m512i zero = _mm512_setzero_si512();
    return {{_mm512_zextsi128_si512(sums), zero, zero, zero}};
  }
};

struct WholePanel {
  using Sums = vnni::Sums;
  static SWIZZLE_INLINE __m512i Load(const uint8_t* from) { return vnni::Load(from); }
  static SWIZZLE_INLINE Sums Interleave(__m512i a, __m512i b, __m512i c, __m512i d) {
    const Interleaved x = InterleaveRows(a, b, c, d);
    return {{x.of[0], x.of[1], x.of[2], x.of[3]}};
  }
  static SWIZZLE_INLINE Sums LoadBlock(const uint8_t* x) {
    return {{Load(x), Load(x + kLanes), Load(x + 2 * kLanes), Load(x + 3 * kLanes)}};
  }
  static SWIZZLE_INLINE Sums LoadSums(const int32_t* from) { return LoadBlock(reinterpret_cast<const uint8_t*>(from)); }
  static SWIZZLE_INLINE void StoreSums(const Sums& sums, int32_t* to) {
    HWY_UNROLL(4)
    for (int j = 0; j < 4; ++j) _mm512_store_si512(to + 16 * j, sums.of[j]);
  }
  static SWIZZLE_INLINE Sums StartFrom(int32_t start) { return vnni::StartFrom(start); }
  static SWIZZLE_INLINE void AddProducts(const Sums& x, int32_t quad, Sums& sums) {
    vnni::AddProducts({{x.of[0], x.of[1], x.of[2], x.of[3]}}, _mm512_set1_epi32(quad), sums);
  }
  static SWIZZLE_INLINE const Sums& Whole(const Sums& sums) { return sums; }
};

// OutputSteps in all lanes.
struct StepVectors {
  explicit SWIZZLE_INLINE StepVectors(const OutputSteps& steps)
      : zero_point(_mm512_set1_epi16(static_cast<int16_t>(steps.zero_point))),
        low(_mm512_set1_epi8(static_cast<char>(steps.low))),
        high(_mm512_set1_epi8(static_cast<char>(steps.high))),
        residual_scale(_mm512_set1_ps(steps.residual_scale)),
        residual_offset(_mm512_set1_ps(steps.residual_offset)),
        packed_only(steps.zero_point == 0 && steps.low == 0 && steps.high == 255) {}
  __m512i zero_point, low, high;
  __m512 residual_scale, residual_offset;
  bool packed_only;  // packing saturates as these do
};

// In the order of positions again.
SWIZZLE_INLINE __m512i PackSteps(const __m512i (&step)[4], const StepVectors& steps) {
  if (steps.packed_only) {
    return _mm512_packus_epi16(_mm512_packs_epi32(step[0], step[1]), _mm512_packs_epi32(step[2], step[3]));
  }
  const __m512i first = _mm512_adds_epi16(_mm512_packs_epi32(step[0], step[1]), steps.zero_point);
  const __m512i second = _mm512_adds_epi16(_mm512_packs_epi32(step[2], step[3]), steps.zero_point);
  const __m512i bytes = _mm512_packus_epi16(first, second);
  return _mm512_min_epu8(_mm512_max_epu8(bytes, steps.low), steps.high);
}

template <bool kResidual>
SWIZZLE_INLINE __m512i BytesOf(const Sums& sums, float row_scale, const uint8_t* residual, const StepVectors& steps) {
  const __m512 scale = _mm512_set1_ps(row_scale);
  __m512i step[4];
  if constexpr (kResidual) {
    const __m512i zero = _mm512_setzero_si512();
    const Interleaved r = InterleaveRows(Load(residual), zero, zero, zero);
    HWY_UNROLL(4)
    for (int j = 0; j < 4; ++j) {
      const __m512 value = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums.of[j]), scale, steps.residual_offset);
      step[j] = _mm512_cvtps_epi32(_mm512_fmadd_ps(_mm512_cvtepi32_ps(r.of[j]), steps.residual_scale, value));
    }
  } else {
    HWY_UNROLL(4)
    for (int j = 0; j < 4; ++j) {
      step[j] = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_cvtepi32_ps(sums.of[j]), scale));
    }
  }
  return PackSteps(step, steps);
}

SWIZZLE_INLINE void StoreReals(const Sums& sums, float row_scale, int64_t row, const RealUnits& reals,
                               const OutputSteps& steps) {
  const __m512 scale = _mm512_set1_ps(row_scale);
  const __m512 low = _mm512_set1_ps(steps.real_low), high = _mm512_set1_ps(steps.real_high);
  __m512 v[4];
  HWY_UNROLL(4)
  for (int j = 0; j < 4; ++j) {
    v[j] = _mm512_min_ps(_mm512_max_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(sums.of[j]), scale), low), high);
  }
  // Lane l of vector j, 128 bits, becomes lane j of unit l.
  const __m512 a = _mm512_shuffle_f32x4(v[0], v[1], 0x44), b = _mm512_shuffle_f32x4(v[2], v[3], 0x44);
  const __m512 c = _mm512_shuffle_f32x4(v[0], v[1], 0xee), d = _mm512_shuffle_f32x4(v[2], v[3], 0xee);
  const __m512 units[4] = {_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd),
                           _mm512_shuffle_f32x4(c, d, 0x88), _mm512_shuffle_f32x4(c, d, 0xdd)};
  HWY_UNROLL(4)
  for (int unit = 0; unit < RealUnits::kUnits; ++unit) {
    if (reals.first[unit] != nullptr) _mm512_storeu_ps(reals.first[unit] + row * reals.stride[unit], units[unit]);
  }
}

enum class Tail { kBytes, kResidual, kReals };

template <Tail kTail>
SWIZZLE_INLINE void StoreRow(const Sums& sums, float scale, int64_t row, const PanelBytes& panel,
                             const OutputSteps& steps, const StepVectors& vectors) {
  if constexpr (kTail == Tail::kReals) {
    StoreReals(sums, scale, row, *panel.reals, steps);
  } else {
    const uint8_t* const residual = kTail == Tail::kResidual ? panel.residual + row * kLanes : nullptr;
    const __m512i bytes = BytesOf<kTail == Tail::kResidual>(sums, scale, residual, vectors);
    _mm512_store_si512(panel.bytes + row * kLanes, bytes);
  }
}

SWIZZLE_INLINE __mmask64 BytesFrom(int64_t begin, int64_t end) {
  if (begin >= end) return 0;
  return end - begin >= kLanes ? ~__mmask64{0} : (__mmask64{1} << (end - begin)) - 1;
}

}  // namespace
}  // namespace swizzle::cpu::vnni
SWIZZLE_AFTER_VNNI

#endif  // SWIZZLE_KERNELS_CPU_INT8_VNNI_INL_H_

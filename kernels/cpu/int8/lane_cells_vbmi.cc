#include <algorithm>
#include <array>
#include <utility>

#include "kernels/base/integers.h"
#include "kernels/cpu/int8/lane_cells.h"
#include "kernels/cpu/int8/vnni-inl.h"

SWIZZLE_BEFORE_VBMI
namespace swizzle::cpu {
namespace {

using vnni::BytesFrom;
using vnni::Load;
using vnni::StepVectors;

constexpr int kGroups = LaneChunk::kGroups;
constexpr int64_t kVector = 64;

// What four groups make of four positions: as vnni::PackSteps leaves it, a position's dword in each 128 bits.
template <int kPositions>
struct Packed {
  static constexpr int kQuads = (kPositions + 3) / 4;
  alignas(kVector) uint8_t of[kQuads][kGroups][kVector];
};

template <int kPositions>
struct GroupSums {
  __m512i of[4 * Packed<kPositions>::kQuads];
};

// A layer's weights come from beyond the second cache, in one stream: what is 8 steps ahead is asked for into the first
// cache, what is 48 ahead into the second. Beyond the weight's end nothing is read.
SWIZZLE_INLINE void AskForSteps(const LaneStep* step) {
  const auto* const near = reinterpret_cast<const char*>(step + 8);
  const auto* const far = reinterpret_cast<const char*>(step + 48);
  _mm_prefetch(near, _MM_HINT_T0);
  _mm_prefetch(near + kVector, _MM_HINT_T0);
  _mm_prefetch(far, _MM_HINT_T1);
  _mm_prefetch(far + kVector, _MM_HINT_T1);
}

// kPaired: a vector of 64 bytes is the only window of two neighbouring positions.
template <int kPositions, bool kPaired>
SWIZZLE_INLINE void SumGroup(const LaneStep* step, const uint16_t* window, uint32_t count, const uint8_t* windows,
                             GroupSums<kPositions>& sums) {
  for (; count != 0; --count, ++step, ++window) {
    if constexpr (kPaired) {
      const __m512i weights = _mm512_load_si512(step->weights.data());
      const __m512i first = _mm512_load_si512(step->bytes.data());
      const __m512i second = _mm512_or_si512(first, _mm512_set1_epi8(LaneWeight::kUnit));
      HWY_UNROLL(16)
      for (int p = 0; p < kPositions; ++p) {
        const __m512i x = Load(windows + p / 2 * kVector);
        sums.of[p] = _mm512_dpbusd_epi32(sums.of[p], _mm512_permutexvar_epi8(p % 2 == 0 ? first : second, x), weights);
      }
      continue;
    }
    AskForSteps(step);
    const __m512i bytes = _mm512_load_si512(step->bytes.data()), weights = _mm512_load_si512(step->weights.data());
    const uint8_t* const x = windows + *window * (kPositions * kVector);
    HWY_UNROLL(16)
    for (int p = 0; p < kPositions; ++p) {
      sums.of[p] = _mm512_dpbusd_epi32(sums.of[p], _mm512_permutexvar_epi8(bytes, Load(x + p * kVector)), weights);
    }
  }
}

// residual: [position][64] in the order of lanes; null where none is added.
template <int kPositions, bool kResidual>
SWIZZLE_INLINE void PackGroup(const GroupSums<kPositions>& sums, int group, const float* scales,
                              const uint8_t* residual, const StepVectors& steps, Packed<kPositions>& packed) {
  const __m512 scale = _mm512_loadu_ps(scales);
  HWY_UNROLL(4)
  for (int quad = 0; quad < Packed<kPositions>::kQuads; ++quad) {
    __m512i step[4];
    HWY_UNROLL(4)
    for (int i = 0; i < 4; ++i) {
      const int position = 4 * quad + i;
      if (position >= kPositions) {
        step[i] = _mm512_setzero_si512();
      } else if constexpr (kResidual) {
        const auto* const bytes = reinterpret_cast<const __m128i*>(residual + position * kVector + int64_t{16} * group);
        const __m512 added = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_load_si128(bytes)));
        const __m512 value = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums.of[position]), scale, steps.residual_offset);
        step[i] = _mm512_cvtps_epi32(_mm512_fmadd_ps(added, steps.residual_scale, value));
      } else {
        step[i] = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_cvtepi32_ps(sums.of[position]), scale));
      }
    }
    _mm512_store_si512(packed.of[quad][group], vnni::PackSteps(step, steps));
  }
}

template <int kPositions>
SWIZZLE_INLINE void StorePacked(const Packed<kPositions>& packed, const LaneChunk& chunk, uint8_t* to,
                                int64_t channels) {
  const __m512i order = _mm512_loadu_si512(chunk.byte_of_row);
  const __mmask64 inside = BytesFrom(0, chunk.rows);
  HWY_UNROLL(4)
  for (int quad = 0; quad < Packed<kPositions>::kQuads; ++quad) {
    const auto& of = packed.of[quad];
    const __m512i a = Load(of[0]), b = Load(of[1]), c = Load(of[2]), d = Load(of[3]);
    const __m512i low_ab = _mm512_unpacklo_epi32(a, b), high_ab = _mm512_unpackhi_epi32(a, b);
    const __m512i low_cd = _mm512_unpacklo_epi32(c, d), high_cd = _mm512_unpackhi_epi32(c, d);
    const __m512i position[4] = {_mm512_unpacklo_epi64(low_ab, low_cd), _mm512_unpackhi_epi64(low_ab, low_cd),
                                 _mm512_unpacklo_epi64(high_ab, high_cd), _mm512_unpackhi_epi64(high_ab, high_cd)};
    HWY_UNROLL(4)
    for (int i = 0; i < 4; ++i) {
      if (4 * quad + i >= kPositions) break;
      uint8_t* const row = to + (4 * quad + i) * channels;
      _mm512_mask_storeu_epi8(row, inside, _mm512_permutexvar_epi8(order, position[i]));
    }
  }
}

template <int kPositions, bool kResidual, bool kPaired>
void RunChunk(const LaneChunk& chunk, const LanePositions& positions, const OutputSteps& steps) {
  const StepVectors vectors(steps);
  Packed<kPositions> packed;
  alignas(kVector) uint8_t residual[kResidual ? kPositions : 1][kVector];
  if (kResidual && chunk.ends) {
    const __m512i order = _mm512_loadu_si512(chunk.row_of_lane);
    const __mmask64 inside = BytesFrom(0, chunk.rows);
    for (int p = 0; p < kPositions; ++p) {
      const uint8_t* const row = positions.residual + p * positions.channels + chunk.first_row;
      _mm512_store_si512(residual[p], _mm512_permutexvar_epi8(order, _mm512_maskz_loadu_epi8(inside, row)));
    }
  }
  const LaneStep* step = chunk.steps;
  const uint16_t* window = chunk.windows;
  for (int group = 0; group < kGroups; ++group) {
    const int64_t lane = group * LaneChunk::kLanes;
    int32_t* const kept = positions.sums + (chunk.first_row + lane) * LanePositions::kMost;
    GroupSums<kPositions> sums;
    if (chunk.begins) {
      const __m512i start = _mm512_loadu_si512(chunk.start + lane);
      HWY_UNROLL(16)
      for (int p = 0; p < kPositions; ++p) sums.of[p] = start;
    } else {
      HWY_UNROLL(16)
      for (int p = 0; p < kPositions; ++p) sums.of[p] = _mm512_load_si512(kept + p * LaneChunk::kLanes);
    }
    SumGroup<kPositions, kPaired>(step, window, chunk.counts[group], positions.windows, sums);
    if (chunk.ends) {
      PackGroup<kPositions, kResidual>(sums, group, chunk.scale + lane, residual[0], vectors, packed);
    } else {
      HWY_UNROLL(16)
      for (int p = 0; p < kPositions; ++p) _mm512_store_si512(kept + p * LaneChunk::kLanes, sums.of[p]);
    }
    step += chunk.counts[group];
    window += chunk.counts[group];
  }
  if (chunk.ends) {
    StorePacked<kPositions>(packed, chunk, positions.output + chunk.first_row, positions.channels);
  }
}

// Where a position's windows are.
struct WindowsOfPlace {
  uint8_t* to;
  int64_t stride, units;  // bytes from a window to the next; of the part

  // Units from `unit` on, of which some may be no part's.
  SWIZZLE_INLINE void Copy(const uint8_t* from, int64_t bytes, int64_t unit, int64_t count) const {
    constexpr int64_t kUnit = LaneWeight::kUnit;
    const int64_t end = std::min(unit + count, units);
    const int64_t begin = std::max<int64_t>(unit, 0);
    if (begin >= end) return;
    from += (begin - unit) * kUnit;
    bytes -= (begin - unit) * kUnit;
    uint8_t* at = to + begin * stride;
    if (begin > 0) StoreHalf(from, bytes, at - stride + kUnit);
    const int64_t joined = end - begin - 1, whole = std::min(joined, bytes / kUnit - 1);
    for (int64_t u = 0; u < whole; ++u, at += stride, from += kUnit) _mm512_store_si512(at, _mm512_loadu_si512(from));
    bytes -= std::max<int64_t>(whole, 0) * kUnit;
    for (int64_t u = std::max<int64_t>(whole, 0); u < joined; ++u, at += stride, from += kUnit, bytes -= kUnit) {
      _mm512_store_si512(at, _mm512_maskz_loadu_epi8(BytesFrom(0, bytes), from));
    }
    if (end < units || units == 1) StoreHalf(from, bytes, at);
  }
  static SWIZZLE_INLINE void StoreHalf(const uint8_t* from, int64_t bytes, uint8_t* half) {
    __m256i unit;
    if (bytes >= LaneWeight::kUnit) {
      unit = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    } else {
      unit = _mm256_maskz_loadu_epi8(static_cast<__mmask32>(BytesFrom(0, bytes)), from);
    }
    _mm256_store_si256(reinterpret_cast<__m256i*>(half), unit);
  }
};

// Where all taps are inside.
SWIZZLE_INLINE void FillPointwise(const LaneFill& fill, const LanePlace* places, int64_t count, uint8_t* windows) {
  const int64_t offset = fill.first_unit * LaneWeight::kUnit;
  for (int64_t p = 0; p < count; ++p) {
    const WindowsOfPlace to{windows + p * kVector, count * kVector, fill.units};
    to.Copy(places[p].first + offset, fill.channels - offset, 0, fill.units);
  }
}

// A place whose taps are all inside, those of a row one behind the other, and whose windows are all in one part.
SWIZZLE_INLINE void FillInside(const LaneFill& fill, const uint8_t* row, int64_t stride, uint8_t* to) {
  constexpr int64_t kUnit = LaneWeight::kUnit;
  const int64_t units = fill.units / fill.kernel_h;
  const uint8_t* const last = row + (fill.kernel_h - 1) * fill.row_bytes;
  while (true) {
    const uint8_t* from = row;
    for (const uint8_t* const end = row + (units - 1) * kUnit; from != end; from += kUnit, to += stride) {
      _mm512_store_si512(to, _mm512_loadu_si512(from));
    }
    if (row == last) return;
    row += fill.row_bytes;
    const auto* const next = reinterpret_cast<const __m256i*>(row);
    const __m256i unit = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    _mm512_store_si512(to, _mm512_inserti64x4(_mm512_zextsi256_si512(unit), _mm256_loadu_si256(next), 1));
    to += stride;
  }
}

using Run = void (*)(const LaneChunk&, const LanePositions&, const OutputSteps&);

// For kPerRun positions, twice as many, ...
template <bool kResidual, bool kPaired, size_t... kCounts>
constexpr std::array<Run, sizeof...(kCounts)> RunsOf(std::index_sequence<kCounts...>) {
  constexpr int kPerRun = kPaired ? 2 : 1;
  return {RunChunk<kPerRun*(static_cast<int>(kCounts) + 1), kResidual, kPaired>...};
}

using Counts = std::make_index_sequence<LanePositions::kMost>;
using PairCounts = std::make_index_sequence<LanePositions::kMost / 2>;
constexpr auto kRuns = RunsOf<false, false>(Counts());
constexpr auto kResidualRuns = RunsOf<true, false>(Counts());
constexpr auto kPairRuns = RunsOf<false, true>(PairCounts());
constexpr auto kResidualPairRuns = RunsOf<true, true>(PairCounts());

}  // namespace

void RunLanes(const LaneChunk& chunk, const LanePositions& positions, const OutputSteps& steps) {
  const bool adds = positions.residual != nullptr;
  if (positions.paired) {
    return (adds ? kResidualPairRuns : kPairRuns)[positions.count / 2 - 1](chunk, positions, steps);
  }
  (adds ? kResidualRuns : kRuns)[positions.count - 1](chunk, positions, steps);
}

void FillWindows(const LaneFill& fill, const LanePlace* places, int64_t count, uint8_t* windows) {
  if (fill.kernel_h == 1 && fill.kernel_w == 1 && fill.is_inside) {
    return FillPointwise(fill, places, count, windows);
  }
  const int64_t units = CeilDiv(fill.channels, LaneWeight::kUnit);
  const bool joins = fill.column_bytes == units * LaneWeight::kUnit;  // a row's taps lie one behind the other
  const uint32_t all = (uint64_t{1} << fill.kernel_w) - 1;
  const bool is_whole = joins && fill.first_unit == 0 && fill.units == units * fill.kernel_w * fill.kernel_h;
  const uint32_t rows = (uint64_t{1} << fill.kernel_h) - 1;
  for (int64_t p = 0; p < count; ++p, windows += kVector) {
    const LanePlace& place = places[p];
    if (is_whole && (place.columns & all) == all && (place.rows & rows) == rows) {
      FillInside(fill, place.first, count * kVector, windows);
      continue;
    }
    const WindowsOfPlace to{windows, count * kVector, fill.units};
    int64_t unit = -fill.first_unit;
    for (int64_t i = 0; i < fill.kernel_h && unit < fill.units; ++i) {
      const uint8_t* const row = place.first + i * fill.row_bytes;
      const bool is_inside = (place.rows >> i & 1) != 0;
      if (is_inside && joins && (place.columns & all) == all) {
        to.Copy(row, fill.kernel_w * fill.channels, unit, units * fill.kernel_w);
        unit += units * fill.kernel_w;
        continue;
      }
      for (int64_t j = 0; j < fill.kernel_w; ++j, unit += units) {
        const bool is_read = is_inside && (place.columns >> j & 1) != 0;
        to.Copy(is_read ? row + j * fill.column_bytes : fill.outside, fill.channels, unit, units);
      }
    }
  }
}

}  // namespace swizzle::cpu
SWIZZLE_AFTER_VNNI

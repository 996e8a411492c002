#include <algorithm>

#include "kernels/base/integers.h"
#include "kernels/cpu/int8/max_rows.h"
#include "kernels/cpu/int8/vnni-inl.h"

SWIZZLE_BEFORE_VBMI
namespace swizzle::cpu {
namespace {

using vnni::BytesFrom;
using vnni::kLanes;

// Rows of the plane, or columns, that a window reads: those of an output's taps that are inside.
struct Inside {
  Inside(int64_t first_at, int64_t step, int64_t taps, int64_t size) {
    const int64_t begin = first_at >= 0 ? 0 : CeilDiv(-first_at, step);
    const int64_t end = first_at < size ? std::min(taps, CeilDiv(size - first_at, step)) : 0;
    first = first_at + begin * step;
    count = std::max<int64_t>(end - begin, 0);
  }
  int64_t first, count;
};

// What all rows of a band have in common.
struct Columns {
  explicit Columns(const Window& window)
      : most(std::min<int64_t>(kLanes,
                               (2 * kLanes - 1 - (window.kernel_w - 1) * window.dilation_w) / window.stride_w + 1)),
        taps(window.kernel_w),
        step(_mm512_set1_epi8(static_cast<char>(window.dilation_w))) {
    alignas(kLanes) uint8_t of[kLanes];
    for (int64_t i = 0; i < kLanes; ++i) of[i] = static_cast<uint8_t>(i * window.stride_w);
    index = _mm512_load_si512(of);
  }

  // Of 128 neighbours, the largest of each output's taps.
  SWIZZLE_INLINE __m512i Largest(__m512i first, __m512i second) const {
    __m512i at = index, largest = _mm512_permutex2var_epi8(first, at, second);
    for (int64_t tap = 1; tap < taps; ++tap) {
      at = _mm512_add_epi8(at, step);
      largest = _mm512_max_epu8(largest, _mm512_permutex2var_epi8(first, at, second));
    }
    return largest;
  }

  int64_t most;  // outputs of a chunk
  int64_t taps;
  __m512i index, step;
};

// The rows that an output's window has inside the plane, one behind the other.
struct WindowRows {
  const uint8_t* first;
  int64_t count, stride;
};

SWIZZLE_INLINE __m512i LargestOfRows(const WindowRows& rows, int64_t offset, __mmask64 inside) {
  const uint8_t* from = rows.first + offset;
  __m512i largest = _mm512_setzero_si512();
  for (int64_t i = 0; i < rows.count; ++i, from += rows.stride) {
    largest = _mm512_max_epu8(largest, _mm512_maskz_loadu_epi8(inside, from));
  }
  return largest;
}

// Neighbouring positions, which may lie in two panels.
class Run {
 public:
  Run(int64_t position, int64_t count, int64_t channels)
      : first_(position / kLanes * kLanes * channels + position % kLanes),
        second_(first_ + kLanes * (channels - 1)),
        in_first_(BytesFrom(0, std::min(count, kLanes - position % kLanes))),
        in_second_(BytesFrom(0, count) & ~in_first_) {}

  // channel: of the first panel.
  SWIZZLE_INLINE void Store(__m512i bytes, uint8_t* channel) const {
    _mm512_mask_storeu_epi8(channel + first_, in_first_, bytes);
    if (in_second_ != 0) _mm512_mask_storeu_epi8(channel + second_, in_second_, bytes);
  }

 private:
  int64_t first_, second_;  // from a channel on, to lane 0
  __mmask64 in_first_, in_second_;
};

}  // namespace

void LargestOfBand(const Problem& problem, const MaxBand& band, const OutputSteps& steps, int64_t channel_bytes,
                   uint8_t* workspace) {
  const Window& window = problem.window();
  const Extent &in = problem.input, &out = problem.output;
  const __m512i low = _mm512_set1_epi8(static_cast<char>(steps.low));
  const __m512i high = _mm512_set1_epi8(static_cast<char>(steps.high));
  // The band's rows of the plane, from a panel's begin on.
  const int64_t top = band.first_row * window.stride_h - window.pad_top;
  const int64_t bottom = top + (band.rows - 1) * window.stride_h + (window.kernel_h - 1) * window.dilation_h + 1;
  const int64_t first = std::clamp<int64_t>(top, 0, in.height), last = std::clamp<int64_t>(bottom, first, in.height);
  const int64_t begin = (band.image * in.height + first) * in.width, begin_panel = begin / kLanes;
  const int64_t end_panel = CeilDiv((band.image * in.height + last) * in.width, kLanes);
  for (int64_t panel = begin_panel; panel < end_panel; ++panel) {
    const uint8_t* const from = band.input + (panel * in.channels + band.first_channel) * kLanes;
    uint8_t* const to = workspace + kLanes + (panel - begin_panel) * kLanes;
    for (int64_t c = 0; c < band.channels; ++c) {
      _mm512_store_si512(to + c * channel_bytes, _mm512_load_si512(from + c * kLanes));
    }
  }
  const uint8_t* const plane = workspace + kLanes + begin - begin_panel * kLanes - first * in.width;
  const Columns columns(window);
  for (int64_t x = 0, count; x < out.width; x += count) {
    count = std::min(columns.most, out.width - x);
    const int64_t left = x * window.stride_w - window.pad_left;
    const __mmask64 in_first = BytesFrom(0, in.width - left) & ~BytesFrom(0, -left);
    const __mmask64 in_second = BytesFrom(0, in.width - left - kLanes) & ~BytesFrom(0, -left - kLanes);
    for (int64_t y = band.first_row; y < band.first_row + band.rows; ++y) {
      const Inside rows(y * window.stride_h - window.pad_top, window.dilation_h, window.kernel_h, in.height);
      WindowRows of = {plane + rows.first * in.width, rows.count, window.dilation_h * in.width};
      const Run run((band.image * out.height + y) * out.width + x, count, out.channels);
      uint8_t* to = band.output + band.first_channel * kLanes;
      for (int64_t c = 0; c < band.channels; ++c, of.first += channel_bytes, to += kLanes) {
        const __m512i largest =
            columns.Largest(LargestOfRows(of, left, in_first), LargestOfRows(of, left + kLanes, in_second));
        run.Store(_mm512_min_epu8(_mm512_max_epu8(largest, low), high), to);
      }
    }
  }
}

}  // namespace swizzle::cpu
SWIZZLE_AFTER_VNNI

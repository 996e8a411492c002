#include <cstring>

#include "kernels/cpu/int8/window_lanes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/int8/window_cells.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {
namespace {

constexpr int64_t kLanes = kMaxPanelWidth;
constexpr int64_t kChunk = 16;  // bytes that are copied at once

// Where a position of the first channel lies.
int64_t ByteOffset(const ByteSource& source, int64_t position) {
  if (!source.panels) return position;
  return position / kLanes * kLanes * source.channels + position % kLanes;
}

// Neighbouring lanes that read neighbouring bytes, or every other one, or none.
struct ByteRun {
  static constexpr int64_t kNone = -1;
  int64_t lane, length, offset, step;

  // Takes the next lane, which reads there, if it suits.
  bool Take(int64_t at) {
    if ((at == kNone) != (offset == kNone)) return false;
    const int64_t from_last = at == kNone ? 0 : at - (offset + (length - 1) * step);
    if (at != kNone && length == 1 && from_last == 2) step = 2;
    if (at != kNone && from_last != step) return false;
    ++length;
    return true;
  }
};

// All lanes of a tap, in their order.
struct TapRuns {
  int count = 0;
  ByteRun runs[kLanes];
};

void PlanRuns(const ByteSource& source, const WindowLanes& lanes, int64_t tap, uint64_t read, TapRuns& to) {
  to.count = 0;
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    const bool reads = (read >> lane & 1) != 0;
    const int64_t offset = reads ? ByteOffset(source, tap + lanes.offset[lane]) : ByteRun::kNone;
    if (to.count == 0 || !to.runs[to.count - 1].Take(offset)) to.runs[to.count++] = {lane, 1, offset, 1};
  }
}

constexpr int kManyRuns = 24;  // more are copied byte by byte

// A chunk.
#if HWY_TARGET == HWY_EMU128
void CopyEverySecond(const uint8_t* from, uint8_t* to) {
  for (int64_t i = 0; i < kChunk; ++i) to[i] = from[2 * i];
}
#else
HWY_INLINE void CopyEverySecond(const uint8_t* from, uint8_t* to) {
  const __m128i low = _mm_set1_epi16(0xff);
  const __m128i first = _mm_and_si128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)), low);
  const __m128i second = _mm_and_si128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + kChunk)), low);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm_packus_epi16(first, second));
}
#endif

// Whole chunks, which reach over the end into what the next run overwrites, or the next row. The last row of the
// activation, and of the columns, is `exact`.
void CopyRuns(const TapRuns& tap, const uint8_t* from, const uint8_t* fill, bool exact, uint8_t* to) {
  for (int r = 0; r < tap.count; ++r) {
    const ByteRun& run = tap.runs[r];
    const uint8_t* const at = run.offset == ByteRun::kNone ? fill : from + run.offset;
    uint8_t* const lane = to + run.lane;
    if (exact) {
      for (int64_t i = 0; i < run.length; ++i) lane[i] = at[i * run.step];
    } else if (run.step == 2) {
      for (int64_t i = 0; i < run.length; i += kChunk) {
        CopyEverySecond(at + 2 * i, lane + i);
      }
    } else {
      for (int64_t i = 0; i < run.length; i += kChunk) std::memcpy(lane + i, at + i, kChunk);
    }
  }
}

// The bytes of runs one by one, without what reads none.
class SingleBytes {
 public:
  explicit SingleBytes(const TapRuns& tap) {
    for (int r = 0; r < tap.count; ++r) {
      const ByteRun& run = tap.runs[r];
      for (int64_t i = 0; i < run.length && run.offset != ByteRun::kNone; ++i) {
        lanes_[count_] = static_cast<int32_t>(run.lane + i);
        offsets_[count_++] = run.offset + i * run.step;
      }
    }
  }

  void Copy(const uint8_t* from, uint8_t fill, uint8_t* to) const {
    std::memset(to, fill, kLanes);
    for (int i = 0; i < count_; ++i) to[lanes_[i]] = from[offsets_[i]];
  }

 private:
  int count_ = 0;
  int32_t lanes_[kLanes];
  int64_t offsets_[kLanes];
};

}  // namespace

void GatherWindow(const ByteSource& source, const Window& window, const WindowLanes& lanes,
                  const ByteColumns& columns) {
  uint8_t fill[kLanes + kChunk];
  std::memset(fill, columns.fill, sizeof(fill));
  uint8_t* to = columns.to;
  TapRuns tap;
  for (int32_t i = 0; i < window.kernel_h; ++i) {
    for (int32_t j = 0; j < window.kernel_w; ++j) {
      const int64_t at = lanes.base + int64_t{i} * window.dilation_h * source.width + int64_t{j} * window.dilation_w;
      PlanRuns(source, lanes, at, lanes.rows[i] & lanes.columns[j], tap);
      const SingleBytes bytes(tap);
      const uint8_t* from = source.data + columns.first_channel * source.channel_stride;
      for (int64_t channel = 0; channel < columns.channels; ++channel, to += kLanes, from += source.channel_stride) {
        if (tap.count > kManyRuns) {
          bytes.Copy(from, columns.fill, to);
          continue;
        }
        // A channel of a plane may be shorter than a chunk: only panels have a row that is behind any other.
        const bool last = channel + 1 == columns.channels || columns.first_channel + channel + 1 == source.channels;
        CopyRuns(tap, from, fill, !source.panels || last, to);
      }
    }
  }
}

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

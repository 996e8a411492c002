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

// Neighbouring lanes that read neighbouring bytes, or none.
struct ByteRun {
  static constexpr int64_t kNone = -1;
  int64_t lane, length, offset;
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
    ByteRun* const last = to.count == 0 ? nullptr : to.runs + to.count - 1;
    const bool follows =
        last != nullptr && (reads ? last->offset != ByteRun::kNone && last->offset + last->length == offset
                                  : last->offset == ByteRun::kNone);
    if (follows) {
      ++last->length;
    } else {
      to.runs[to.count++] = {lane, 1, offset};
    }
  }
}

constexpr int kManyRuns = 24;  // more are copied byte by byte

// Whole chunks, which reach over the end into what the next run overwrites, or the next row. The last row of the
// activation, and of the columns, is `exact`.
void CopyRuns(const TapRuns& tap, const uint8_t* from, const uint8_t* fill, bool exact, uint8_t* to) {
  for (int r = 0; r < tap.count; ++r) {
    const ByteRun& run = tap.runs[r];
    const uint8_t* const at = run.offset == ByteRun::kNone ? fill : from + run.offset;
    if (exact) {
      std::memcpy(to + run.lane, at, run.length);
      continue;
    }
    for (int64_t i = 0; i < run.length; i += kChunk) std::memcpy(to + run.lane + i, at + i, kChunk);
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
        offsets_[count_++] = run.offset + i;
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
      const int64_t at = lanes.base + i * window.dilation_h * source.width + j * window.dilation_w;
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

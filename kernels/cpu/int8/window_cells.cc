#include <algorithm>
#include <bit>
#include <cstring>

#include "kernels/base/integers.h"
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

// Of some columns.
struct ChannelRange {
  int64_t begin = 0, end = 0;
};

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

void GatherRuns(const ByteSource& source, const ByteColumns& columns, const TapRuns& tap, const uint8_t* fill,
                const ChannelRange& channels, uint8_t* to) {
  const auto [begin, end] = channels;
  if (begin == end) return;
  const bool single = tap.count > kManyRuns;
  const SingleBytes bytes(single ? tap : TapRuns());
  const uint8_t* from = source.data + (columns.first_channel + begin) * source.channel_stride;
  to += begin * kLanes;
  for (int64_t channel = begin; channel < end; ++channel, to += kLanes, from += source.channel_stride) {
    if (single) {
      bytes.Copy(from, columns.fill, to);
      continue;
    }
    // A channel of a plane may be shorter than a chunk: only panels have a row that is behind any other.
    const bool last = channel + 1 == columns.channels || columns.first_channel + channel + 1 == source.channels;
    CopyRuns(tap, from, fill, !source.panels || last, to);
  }
}

#if HWY_TARGET == HWY_EMU128

struct Neighbours {
  ChannelRange channels;
};
bool PlanNeighbours(const ByteSource&, const ByteColumns&, const WindowLanes&, int64_t, uint64_t, Neighbours&) {
  return false;
}
void GatherNeighbours(const ByteSource&, const ByteColumns&, const Neighbours&, uint8_t*) {}

#else

constexpr int64_t kHalf = kLanes / 2;

// A byte of ones for each bit.
HWY_INLINE __m256i BytesOf(uint32_t bits) {
  const __m256i byte_of_bits = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
  const __m256i bit = _mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201));
  const __m256i all = _mm256_shuffle_epi8(_mm256_set1_epi32(static_cast<int32_t>(bits)), byte_of_bits);
  return _mm256_cmpeq_epi8(_mm256_and_si256(all, bit), bit);
}

// Lanes whose offset is as far from that of lane 0 as they are.
HWY_INLINE uint64_t InOrder(const WindowLanes& lanes, int32_t shift) {
  __m256i expected = _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(shift));
  uint64_t in_order = 0;
  for (int i = 0; i < kLanes; i += 8) {
    const __m256i offsets = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(lanes.offset + i));
    const int same = _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(offsets, expected)));
    in_order |= static_cast<uint64_t>(same) << i;
    expected = _mm256_add_epi32(expected, _mm256_set1_epi32(8));
  }
  return in_order;
}

// Lanes that read a neighbour each, in their order: two loads a half, of which each byte is one, or the fill.
struct Neighbours {
  int64_t first, second;          // bytes from the first channel's panel, or plane, to what lane 0 would read
  __m256i in_second[2], fill[2];  // of each half: which bytes are
  ChannelRange channels;          // all of whose loads are within the activation
};

// Whether the lanes `read` are such. tap: what lane 0 reads, less its offset.
bool PlanNeighbours(const ByteSource& source, const ByteColumns& columns, const WindowLanes& lanes, int64_t tap,
                    uint64_t read, Neighbours& to) {
  if (read == 0) return false;
  const int lane = std::countr_zero(read);
  const int32_t shift = lanes.offset[lane] - lane;
  if ((read & ~InOrder(lanes, shift)) != 0) return false;
  const int64_t begin = tap + shift, at = source.panels ? begin & (kLanes - 1) : 0;
  const int64_t panel_bytes = kLanes * source.channels;
  const uint64_t in_first = ~uint64_t{0} >> at;
  to.first = source.panels ? (begin - at) / kLanes * panel_bytes + at : begin;
  to.second = at == 0 ? to.first : to.first + panel_bytes - kLanes;
  if ((read & in_first) == 0) to.first = to.second;
  if ((read & ~in_first) == 0) to.second = to.first;
  const int64_t low = std::min(to.first, to.second), high = std::max(to.first, to.second) + kLanes;
  const int64_t before = low >= 0 ? 0 : CeilDiv(-low, source.channel_stride);
  const int64_t end = high > source.bytes ? 0 : (source.bytes - high) / source.channel_stride + 1;
  to.channels.begin = std::max<int64_t>(before - columns.first_channel, 0);
  to.channels.end = std::min(end - columns.first_channel, columns.channels);
  for (int h = 0; h < 2; ++h) {
    to.in_second[h] = BytesOf(static_cast<uint32_t>(~in_first >> (kHalf * h)));
    to.fill[h] = BytesOf(static_cast<uint32_t>(~read >> (kHalf * h)));
  }
  return to.channels.begin < to.channels.end;
}

void GatherNeighbours(const ByteSource& source, const ByteColumns& columns, const Neighbours& tap, uint8_t* to) {
  const __m256i fill = _mm256_set1_epi8(static_cast<char>(columns.fill));
  const auto [begin, end] = tap.channels;
  const uint8_t* from = source.data + (columns.first_channel + begin) * source.channel_stride;
  to += begin * kLanes;
  for (int64_t channel = begin; channel < end; ++channel, from += source.channel_stride, to += kLanes) {
    HWY_UNROLL(2)
    for (int h = 0; h < 2; ++h) {
      const __m256i first = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + tap.first + h * kHalf));
      const __m256i second = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + tap.second + h * kHalf));
      const __m256i bytes = _mm256_blendv_epi8(first, second, tap.in_second[h]);
      _mm256_store_si256(reinterpret_cast<__m256i*>(to + h * kHalf), _mm256_blendv_epi8(bytes, fill, tap.fill[h]));
    }
  }
}

#endif

}  // namespace

void GatherWindow(const ByteSource& source, const Window& window, const WindowLanes& lanes,
                  const ByteColumns& columns) {
  uint8_t fill[kLanes + kChunk];
  std::memset(fill, columns.fill, sizeof(fill));
  uint8_t* to = columns.to;
  TapRuns runs;
  for (int32_t i = 0; i < window.kernel_h; ++i) {
    for (int32_t j = 0; j < window.kernel_w; ++j, to += columns.channels * kLanes) {
      const int64_t tap = lanes.base + int64_t{i} * window.dilation_h * source.width + int64_t{j} * window.dilation_w;
      const uint64_t read = lanes.rows[i] & lanes.columns[j];
      Neighbours neighbours;
      ChannelRange taken;
      if (PlanNeighbours(source, columns, lanes, tap, read, neighbours)) taken = neighbours.channels;
      if (taken.begin > 0 || taken.end < columns.channels) PlanRuns(source, lanes, tap, read, runs);
      // Rows of runs reach into the next one: those before come first.
      GatherRuns(source, columns, runs, fill, {0, taken.begin}, to);
      if (taken.end > 0) GatherNeighbours(source, columns, neighbours, to);
      GatherRuns(source, columns, runs, fill, {taken.end, columns.channels}, to);
    }
  }
}

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#include <algorithm>
#include <vector>

#include "kernels/cpu/int8/stem_columns.h"
#include "kernels/cpu/int8/vnni-inl.h"

SWIZZLE_BEFORE_VBMI
namespace swizzle::cpu {
namespace {

using namespace vnni;  // NOLINT(google-build-using-namespace): VBMI is VNNI and more

constexpr int kUnits = 4;       // of a panel
constexpr int kPositions = 16;  // of a unit
constexpr uint64_t kFirstTaps = 0x1111111111111111;

// Outputs of a row that are neighbours: that of lane l reads from begin + l * stride on.
struct Run {
  int64_t begin;
  __mmask64 bytes;
};

struct Unit {
  int count = 0;          // of runs
  bool is_inside = true;  // at all taps
  Run runs[kPositions];
  // Else: the lanes that are, by rows and columns of the window.
  uint16_t rows[WindowLanes::kMostTaps], columns[WindowLanes::kMostTaps];
};

// Goes through the outputs of a batch, unit by unit.
class Outputs {
 public:
  Outputs(const Problem& problem, int64_t position)
      : problem_(problem),
        window_(problem.window()),
        image_bytes_(problem.input.plane() * problem.input.channels),
        left_(problem.output.positions() - position),
        image_(position / problem.output.plane()),
        row_(position % problem.output.plane() / problem.output.width),
        column_(position % problem.output.width) {}

  void Next(Unit& unit) {
    const Extent &in = problem_.input, &out = problem_.output;
    for (int64_t lane = 0, count; lane < kPositions && left_ > 0; lane += count, left_ -= count) {
      count = std::min({kPositions - lane, left_, out.width - column_});
      const int64_t top = row_ * window_.stride_h - window_.pad_top;
      const int64_t first = column_ * window_.stride_w - window_.pad_left;
      const auto lanes = static_cast<uint16_t>(((1u << count) - 1) << lane);
      unit.runs[unit.count++] = {image_ * image_bytes_ + top * in.width + first - lane * window_.stride_w,
                                 _pdep_u64(lanes, kFirstTaps) * 0xf};
      const int64_t bottom = top + int64_t{window_.kernel_h - 1} * window_.dilation_h;
      const int64_t last = first + (count - 1) * window_.stride_w + int64_t{window_.kernel_w - 1} * window_.dilation_w;
      if (top < 0 || bottom >= in.height || first < 0 || last >= in.width || count < kPositions) {
        AddInside(lanes, top, first - lane * window_.stride_w, unit);
      }
      column_ += count;
      if (column_ < out.width) continue;
      column_ = 0;
      if (++row_ < out.height) continue;
      row_ = 0;
      ++image_;
    }
    if (unit.count == 0) AddInside(0, 0, 0, unit);
  }

 private:
  // first: the column that lane 0 would read.
  void AddInside(uint16_t lanes, int64_t top, int64_t first, Unit& unit) const {
    if (unit.is_inside) {
      std::fill_n(unit.rows, window_.kernel_h, 0);
      std::fill_n(unit.columns, window_.kernel_w, 0);
      unit.is_inside = false;
    }
    for (int32_t i = 0; i < window_.kernel_h; ++i) {
      const int64_t y = top + int64_t{i} * window_.dilation_h;
      if (y >= 0 && y < problem_.input.height) unit.rows[i] |= lanes;
    }
    const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i steps = _mm512_mullo_epi32(lane, _mm512_set1_epi32(window_.stride_w));
    const __m512i width = _mm512_set1_epi32(static_cast<int32_t>(problem_.input.width));
    for (int32_t j = 0; j < window_.kernel_w; ++j) {
      const auto begin = static_cast<int32_t>(first + int64_t{j} * window_.dilation_w);
      // What is left of the plane is beyond its width, too, without a sign.
      const __mmask16 read = _mm512_cmplt_epu32_mask(_mm512_add_epi32(steps, _mm512_set1_epi32(begin)), width);
      unit.columns[j] |= static_cast<uint16_t>(lanes & read);
    }
  }

  const Problem& problem_;
  const Window& window_;
  const int64_t image_bytes_;
  int64_t left_;  // positions
  int64_t image_, row_, column_;
};

// Bytes of a unit's quad whose taps are inside the plane.
SWIZZLE_INLINE __mmask64 InsideBytes(const StemQuad& quad, const Unit& unit) {
  uint64_t bytes = 0;
  for (int t = 0; t < StemQuad::kTaps; ++t) {
    const uint64_t read = unit.rows[quad.taps[t].row] & unit.columns[quad.taps[t].column];
    bytes |= _pdep_u64(read, kFirstTaps << t);
  }
  return bytes;
}

// 64 bytes of an activation, those outside zero.
SWIZZLE_INLINE __m512i LoadAround(const ByteSource& source, int64_t begin) {
  if (begin >= 0 && begin + kLanes <= source.bytes) return _mm512_loadu_si512(source.data + begin);
  return _mm512_maskz_loadu_epi8(BytesFrom(begin, source.bytes) & ~BytesFrom(begin, 0), source.data + begin);
}

// Where a quad's two rows of the window begin, from where a run does.
struct Offsets {
  int64_t first, second;
};

// Of one run, all of whose vectors lie within the activation.
SWIZZLE_INLINE __m512i ReadWhole(const uint8_t* from, const Offsets& offsets, __m512i index) {
  const __m512i a = _mm512_loadu_si512(from + offsets.first), b = _mm512_loadu_si512(from + offsets.second);
  return _mm512_permutex2var_epi8(a, index, b);
}

SWIZZLE_INLINE __m512i ReadRuns(const ByteSource& source, const Unit& unit, const Offsets& offsets, __m512i index) {
  __m512i of = _mm512_setzero_si512();
  for (int r = 0; r < unit.count; ++r) {
    const __m512i a = LoadAround(source, unit.runs[r].begin + offsets.first);
    const __m512i b = LoadAround(source, unit.runs[r].begin + offsets.second);
    of = _mm512_mask_mov_epi8(of, unit.runs[r].bytes, _mm512_permutex2var_epi8(a, index, b));
  }
  return of;
}

// Lane j of unit u, 128 bits, becomes lane u of vector j.
SWIZZLE_INLINE void StoreInterleaved(const __m512i (&of)[kUnits], uint8_t* to) {
  const __m512i a = _mm512_shuffle_i32x4(of[0], of[1], 0x44), b = _mm512_shuffle_i32x4(of[2], of[3], 0x44);
  const __m512i c = _mm512_shuffle_i32x4(of[0], of[1], 0xee), d = _mm512_shuffle_i32x4(of[2], of[3], 0xee);
  _mm512_store_si512(to, _mm512_shuffle_i32x4(a, b, 0x88));
  _mm512_store_si512(to + kLanes, _mm512_shuffle_i32x4(a, b, 0xdd));
  _mm512_store_si512(to + 2 * kLanes, _mm512_shuffle_i32x4(c, d, 0x88));
  _mm512_store_si512(to + 3 * kLanes, _mm512_shuffle_i32x4(c, d, 0xdd));
}

// kWhole: ReadWhole() will do, for all units.
template <bool kWhole>
void Gather(const Problem& problem, const ByteSource& source, const Unit (&units)[kUnits],
            const std::vector<StemQuad>& quads, uint8_t* to) {
  const Window& window = problem.window();
  const auto offset_of = [&](const StemQuad::Tap& tap) {
    return tap.channel * source.channel_stride + int64_t{tap.row} * window.dilation_h * source.width +
           int64_t{tap.column} * window.dilation_w;
  };
  const __m512i outside = _mm512_set1_epi8(static_cast<char>(problem.inputs_as[0].zero_point));
  for (const StemQuad& quad : quads) {
    const __m512i index = _mm512_load_si512(quad.index.data());
    const Offsets offsets = {offset_of(quad.first_tap[0]), offset_of(quad.first_tap[1])};
    __m512i of[kUnits];
    HWY_UNROLL(4)
    for (int u = 0; u < kUnits; ++u) {
      of[u] = kWhole ? ReadWhole(source.data + units[u].runs[0].begin, offsets, index)
                     : ReadRuns(source, units[u], offsets, index);
      if (!units[u].is_inside) of[u] = _mm512_mask_mov_epi8(outside, InsideBytes(quad, units[u]), of[u]);
    }
    StoreInterleaved(of, to);
    to += kUnits * kLanes;
  }
}

}  // namespace

void GatherStem(const Problem& problem, const ByteSource& source, int64_t panel, const StemColumns& columns,
                uint8_t* to) {
  const Window& window = problem.window();
  const int64_t reach = (source.channels - 1) * source.channel_stride +
                        int64_t{window.kernel_h - 1} * window.dilation_h * source.width +
                        int64_t{window.kernel_w - 1} * window.dilation_w + kLanes;
  Outputs outputs(problem, panel * kMaxPanelWidth);
  Unit units[kUnits];
  bool whole = true;
  for (Unit& unit : units) {
    outputs.Next(unit);
    whole = whole && unit.count == 1 && unit.runs[0].begin >= 0 && unit.runs[0].begin + reach <= source.bytes;
  }
  if (whole) return Gather<true>(problem, source, units, columns.quads(), to);
  Gather<false>(problem, source, units, columns.quads(), to);
}

}  // namespace swizzle::cpu
SWIZZLE_AFTER_VNNI

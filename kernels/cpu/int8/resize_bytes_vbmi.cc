#include <algorithm>

#include "kernels/cpu/int8/resize_bytes.h"
#include "kernels/cpu/int8/vnni-inl.h"

SWIZZLE_BEFORE_VBMI
namespace swizzle::cpu {
namespace {

static_assert(kMaxPanelWidth == vnni::kLanes);

// Which positions are in two of the input's lines, and where.
struct PickedPair {
  int64_t first = 0, second = 0;  // lines
  __mmask64 positions = 0;
  __m512i at;  // below 64 in the first, from there on in the second
};

}  // namespace

void PickPanelVbmi(const PanelSources& sources, const uint8_t* input, int64_t channels, uint8_t* to) {
  std::array<PickedPair, kMaxPanelWidth / 2> pairs;
  size_t count = 0;
  // A panel's positions are read from few: neighbours are neighbours there, but where rows or images end.
  for (__mmask64 left = ~__mmask64{0}; left != 0; left &= ~pairs[count++].positions) {
    PickedPair& pair = pairs[count];
    alignas(64) uint8_t at[kMaxPanelWidth] = {};
    pair.first = pair.second = -1;
    for (int64_t i = 0; i < kMaxPanelWidth; ++i) {
      if ((left >> i & 1) == 0) continue;
      const int64_t line = sources.line[i];
      if (pair.first == -1) pair.first = line;
      if (pair.second == -1 && line != pair.first) pair.second = line;
      if (line != pair.first && line != pair.second) continue;
      at[i] = static_cast<uint8_t>(sources.byte[i] + (line == pair.first ? 0 : kMaxPanelWidth));
      pair.positions |= __mmask64{1} << i;
    }
    pair.second = std::max(pair.second, int64_t{0});
    pair.at = vnni::Load(at);
  }
  for (int64_t c = 0; c < channels; ++c, to += kMaxPanelWidth, input += sources.step * kMaxPanelWidth) {
    __m512i picked = _mm512_setzero_si512();
    for (size_t p = 0; p < count; ++p) {
      const __m512i first = vnni::Load(input + pairs[p].first * kMaxPanelWidth);
      const __m512i second = vnni::Load(input + pairs[p].second * kMaxPanelWidth);
      picked = _mm512_mask_blend_epi8(pairs[p].positions, picked, _mm512_permutex2var_epi8(first, pairs[p].at, second));
    }
    _mm512_storeu_si512(to, picked);
  }
}

}  // namespace swizzle::cpu
SWIZZLE_AFTER_VNNI

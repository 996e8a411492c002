// How an image's bytes, kNchw, become the columns of a window, in quads that the cells of dense byte convolutions read:
// row conv_stem_dense_u8_vbmi. Where an image has three channels, planning what a tap reads costs more than reading it;
// here that is planned when the weight is packed, for all taps.
//
// Columns are in the order of the image: a channel's taps row by row, channel by channel. A quad's four taps stand in
// one row of the window, or in two. Sixteen outputs that are neighbours in a row read them within 64 bytes of each row:
// one vector of indices takes the quad of all sixteen, wherever they are. Worked example, a 3x3 window of stride 2:
// quad 0 is taps 0 to 2 of row 0 and tap 0 of row 1; its index is 0 1 2 64, 2 3 4 66, 4 5 6 68, ...
//
// Immutable, thread-safe.
#ifndef SWIZZLE_KERNELS_CPU_INT8_STEM_COLUMNS_H_
#define SWIZZLE_KERNELS_CPU_INT8_STEM_COLUMNS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/base/layout.h"
#include "kernels/cpu/int8/window_lanes.h"
#include "kernels/operator/problem.h"
#include "kernels/whole_numbers/byte_weight.h"

namespace swizzle::cpu {

struct StemQuad {
  static constexpr int kTaps = 4;
  struct Tap {
    int32_t channel = 0, row = 0, column = 0;
  };

  // Of each position, four bytes: below 64 what the first row of the window has from its first tap on, above the
  // second.
  alignas(kBufferAlignment) std::array<uint8_t, kMaxPanelWidth> index = {};
  std::array<Tap, kTaps> taps;   // the last again where there are no more
  std::array<Tap, 2> first_tap;  // of each row of the window that the quad stands in
};

class StemColumns {
 public:
  // Whether quads of this window can be read so.
  static bool Fit(const Window& window);
  // REQUIRES: Fit(window).
  StemColumns(const Window& window, int64_t channels);

  const std::vector<StemQuad>& quads() const { return quads_; }
  size_t bytes() const { return quads_.size() * sizeof(StemQuad); }

 private:
  std::vector<StemQuad> quads_;
};

// The same weight, its columns in the order of the image.
ByteWeight InOrderOfImage(ByteWeight weight, const Window& window);

// Writes the columns of a panel, interleaved: [quad][4][64], those outside the plane the zero point. In
// stem_columns_vbmi.cc, with VBMI. REQUIRES: the source is kNchw, and HasWindowLanes(problem).
void GatherStem(const Problem& problem, const ByteSource& source, int64_t panel, const StemColumns& columns,
                uint8_t* to);

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_INT8_STEM_COLUMNS_H_

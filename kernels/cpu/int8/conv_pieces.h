// How a dense convolution over kNhwc is cut into pieces, each of which a library computes in one call: some output
// channels of some rows of an image's plane, or of some tokens. A piece's weights, and the sums of a piece, fit the
// second cache, and there are enough pieces for all threads of an image alone.
//
// Worked example, a 3x3 window with padding 1 over a 56x56 plane, 64 to 64 channels, one thread and 1 MiB of second
// cache: the sums of 14 rows are 14 * 56 * 64 * 4 = 200,704 bytes, of 19 rows 272,384. 256 KiB hold 18: four bands of
// 14 rows, the first of which reads input rows 0 to 14 below one row of padding.
//
// Plain values.
#ifndef SWIZZLE_KERNELS_CPU_INT8_CONV_PIECES_H_
#define SWIZZLE_KERNELS_CPU_INT8_CONV_PIECES_H_

#include <cstdint>
#include <vector>

#include "kernels/cpu/runtime/cache_sizes.h"
#include "kernels/operator/problem.h"

namespace swizzle::cpu {

// What a call computes, but for the output channels: as many as they may be.
struct BandShape {
  int64_t input_rows = 0, output_rows = 0;
  int64_t pad_top = 0, pad_bottom = 0;
  int64_t tokens = 0;  // where the plane is one position: of these; each is a row then
  bool operator==(const BandShape&) const = default;
};

// Rows of one image's plane.
struct Band {
  int64_t first_input_row = 0, first_output_row = 0;
  BandShape shape = {};
};

struct ConvPieces {
  static constexpr int64_t kTokens = 64;                      // that a piece has at most
  static constexpr int64_t kTokenCounts[] = {kTokens, 8, 1};  // that a call takes

  int64_t part_channels = 0;  // the last part may have fewer
  int64_t parts = 0;
  std::vector<Band> bands;        // of one image, in order; none where the plane is one position
  std::vector<BandShape> shapes;  // of all calls, each once

  int64_t PartChannels(int64_t part, int64_t channels) const {
    return part + 1 < parts ? part_channels : channels - part * part_channels;
  }
  // Of a batch, for each part of the channels.
  int64_t Count(int64_t batch) const;
};

// Whether every row of outputs reads rows that are inside the plane.
bool CanCutIntoPieces(const Problem& problem);
// REQUIRES: CanCutIntoPieces. Does not depend on the batch.
ConvPieces CutIntoPieces(const Problem& problem, const CacheSizes& caches);

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_INT8_CONV_PIECES_H_

// The walk of depthwise convolutions and pools over an activation in kPanels or kNchw.
//
// A tile is a band of output rows of one image. For a batch of channels, the input rows that it needs are gathered from
// the layout into scratch planes, output rows are computed into other scratch planes, and those are scattered into the
// output's layout. In a scratch plane rows follow each other without a gap, as they do in the layout, so that gathering
// and scattering copy long runs. Rows above and below the plane are there, filled with the padding; columns beside it
// are not, and are masked out by whoever computes. For windows of stride 2 even and odd columns stand in two scratch
// planes (split), so that every tap of neighbouring outputs is a row of neighbours.
//
// Channels come in batches that fit the first cache, so that no scratch plane is read right after it was written, and
// what is the same for all of them is worked out once.
//
// All counts are floats unless named otherwise. Immutable values, thread-safe; a workspace belongs to one run.
#ifndef SWIZZLE_KERNELS_CPU_WINDOW_WINDOW_TILES_H_
#define SWIZZLE_KERNELS_CPU_WINDOW_WINDOW_TILES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "kernels/backend/kernel_table.h"

namespace swizzle::cpu {

// Neighbouring positions that are neighbours in the layout too, and in a scratch plane.
struct Run {
  int64_t offset;          // of channel 0 in the layout
  int64_t channel_stride;  // from one channel to the next in the layout
  int32_t scratch;         // offset in the scratch plane
  int32_t length;

  int64_t At(int64_t channel) const { return offset + channel * channel_stride; }
};

// Writes the runs of positions [first, first + count) of one image to `runs` and returns their end; position `first`
// stands at `scratch`. REQUIRES: layout is kPanels or kNchw; room for MaxRuns(count) runs.
Run* AppendRuns(const Extent& extent, Layout layout, int64_t image, int64_t first, int64_t count, int64_t scratch,
                Run* runs);

// No layout cuts `count` positions into more.
inline int64_t MaxRuns(int64_t count) { return count / (kMaxPanelWidth / 2) + 2; }

struct Tile {
  int64_t image;
  int64_t first_row;  // of the output
  int64_t rows;
};

// How a problem is cut into tiles, and what its scratch planes look like.
class WindowTiles {
 public:
  explicit WindowTiles(const Problem& problem);

  int64_t count() const { return problem_.output.batch * tiles_per_image_; }
  Tile At(int64_t tile) const;

  // Whether columns are split, and floats from one scratch row to the next: of both planes, if split.
  bool split() const { return split_; }
  int64_t in_pitch() const { return in_pitch_; }

  // Of one channel's scratch planes, multiples of 16. The first row starts at in_front(): vectors may start that much
  // before it, and end beyond the plane. If split, odd columns' plane follows in the second half of in_floats().
  int64_t in_front() const { return in_front_; }
  int64_t in_floats() const { return in_floats_; }
  int64_t out_floats() const { return out_floats_; }
  int64_t channel_batch() const { return channel_batch_; }
  int64_t channel_batches() const { return channel_batches_; }

  // Of one thread: scratch planes of a batch, one more of out_floats(), the runs of both sides. A multiple of
  // kBufferAlignment.
  size_t WorkspaceBytes() const;

  // The runs between the input's rows of `tile` and an input scratch plane (from its first row on); the output's
  // likewise. If split, runs count columns as if both planes were one: offset s is offset s / 2 of the even or odd
  // plane. `room` has MaxInputRuns() or MaxOutputRuns() entries. Runs rise in scratch order.
  std::span<const Run> InputRuns(const Tile& tile, Layout layout, Run* room) const;
  std::span<const Run> OutputRuns(const Tile& tile, Layout layout, Run* room) const;
  // The parts [begin, end) of an input scratch plane, or of both, that are rows above and below the plane.
  std::array<std::pair<int64_t, int64_t>, 2> PaddingOf(const Tile& tile) const;
  int64_t MaxInputRuns() const;
  int64_t MaxOutputRuns() const { return MaxRuns(tile_rows_ * problem_.output.width); }

 private:
  struct Band {
    int64_t top;    // the input row that is a scratch plane's first, maybe above the plane
    int64_t rows;   // of the scratch plane
    int64_t first;  // the part inside the plane, counted in scratch rows
    int64_t end;
  };
  Band BandOf(const Tile& tile) const;

  const Problem& problem_;
  const bool split_;
  const int64_t in_pitch_;
  int64_t tile_rows_;  // output rows of a tile; the last of an image may have fewer
  int64_t tiles_per_image_;
  int64_t in_rows_;  // input rows of a whole tile
  int64_t in_front_;
  int64_t in_floats_;
  int64_t out_floats_;
  int64_t channel_batch_;
  int64_t channel_batches_;
};

// One thread's part of the workspace.
struct TileWorkspace {
  TileWorkspace(const WindowTiles& tiles, std::span<std::byte> workspace, int64_t slot);

  float* in;      // channel_batch() planes of in_floats()
  float* out;     // channel_batch() planes of out_floats()
  float* shared;  // out_floats(), for what all channels of a tile have in common
  Run* in_runs;
  Run* out_runs;
};

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_WINDOW_WINDOW_TILES_H_

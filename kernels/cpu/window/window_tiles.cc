#include "kernels/cpu/window/window_tiles.h"

#include <algorithm>

#include "kernels/base/integers.h"

namespace swizzle::cpu {
namespace {

constexpr int64_t kWidestVector = 16;
constexpr int64_t kPlaneFloats = 1024;  // an input scratch plane at most, where a tile has more than one row
constexpr int64_t kBatchFloats = 6144;  // scratch planes of all channels of a batch, if one is not more: fits an L1
constexpr int64_t kMaxChannelBatch = 16;

// Input rows or columns that `count` outputs look at, padding included.
int64_t Reach(int64_t count, int64_t stride, int64_t kernel, int64_t dilation) {
  return (count - 1) * stride + (kernel - 1) * dilation + 1;
}

Run* AppendPanelRuns(const Extent& extent, int64_t first, int64_t count, int64_t scratch, Run* runs) {
  const PanelGrid grid(extent.positions());
  const int64_t end = first + count;
  for (int64_t panel = grid.PanelOf(first); first < end; ++panel) {
    const int64_t begin = grid.Begin(panel);
    const int64_t length = std::min(end, grid.Begin(panel + 1)) - first;
    *runs++ = {begin * extent.channels + first - begin, grid.Width(panel), static_cast<int32_t>(scratch),
               static_cast<int32_t>(length)};
    first += length;
    scratch += length;
  }
  return runs;
}

}  // namespace

Run* AppendRuns(const Extent& extent, Layout layout, int64_t image, int64_t first, int64_t count, int64_t scratch,
                Run* runs) {
  if (layout == Layout::kPanels) {
    return AppendPanelRuns(extent, image * extent.plane() + first, count, scratch, runs);
  }
  *runs = {image * extent.channels * extent.plane() + first, extent.plane(), static_cast<int32_t>(scratch),
           static_cast<int32_t>(count)};
  return runs + 1;
}

WindowTiles::WindowTiles(const Problem& problem)
    : problem_(problem),
      split_(problem.window().stride_w == 2),
      in_pitch_(split_ ? CeilDiv(problem.input.width, 2) : problem.input.width) {
  const Window& window = problem.window();
  const int64_t max_in_rows = kPlaneFloats / problem.input.width;
  const int64_t window_rows = Reach(1, 1, window.kernel_h, window.dilation_h);
  const int64_t max_rows = max_in_rows < window_rows ? 1 : (max_in_rows - window_rows) / window.stride_h + 1;
  tile_rows_ = CeilDiv(problem.output.height, CeilDiv(problem.output.height, max_rows));
  tiles_per_image_ = CeilDiv(problem.output.height, tile_rows_);
  in_rows_ = Reach(tile_rows_, window.stride_h, window.kernel_h, window.dilation_h);
  in_front_ = RoundUp(window.pad_left, kWidestVector);
  // The first input row of an image is aligned, and with it most vectors that are copied from panels.
  in_front_ += RoundUp(window.pad_top * in_pitch_, kWidestVector) - window.pad_top * in_pitch_;
  const int64_t overhang = kWidestVector * (window.stride_w + 1) + (int64_t{window.kernel_w} - 1) * window.dilation_w;
  in_floats_ = RoundUp(in_front_ + in_rows_ * in_pitch_ + overhang, kWidestVector) * (split_ ? 2 : 1);
  out_floats_ = RoundUp(tile_rows_ * problem.output.width, kWidestVector) + kWidestVector;
  const int64_t max_batch = std::min(kMaxChannelBatch, problem.output.channels);
  channel_batch_ = std::clamp<int64_t>(kBatchFloats / (in_floats_ + out_floats_), 1, max_batch);
  channel_batches_ = CeilDiv(problem.output.channels, channel_batch_);
}

Tile WindowTiles::At(int64_t tile) const {
  const int64_t first = tile % tiles_per_image_ * tile_rows_;
  return {tile / tiles_per_image_, first, std::min(tile_rows_, problem_.output.height - first)};
}

size_t WindowTiles::WorkspaceBytes() const {
  const int64_t floats = channel_batch_ * (in_floats_ + out_floats_) + out_floats_;
  const int64_t runs = MaxInputRuns() + MaxOutputRuns();
  return RoundUp(floats * sizeof(float) + runs * sizeof(Run), kBufferAlignment);
}

WindowTiles::Band WindowTiles::BandOf(const Tile& tile) const {
  const Window& window = problem_.window();
  const int64_t top = tile.first_row * window.stride_h - window.pad_top;
  const int64_t rows = Reach(tile.rows, window.stride_h, window.kernel_h, window.dilation_h);
  const int64_t first = std::min(std::max<int64_t>(-top, 0), rows);
  return {top, rows, first, std::clamp(problem_.input.height - top, first, rows)};
}

// With an odd width, split rows do not follow each other without a gap: each is a run of its own.
std::span<const Run> WindowTiles::InputRuns(const Tile& tile, Layout layout, Run* room) const {
  const Band band = BandOf(tile);
  const int64_t width = problem_.input.width;
  const int64_t scratch_width = split_ ? 2 * in_pitch_ : in_pitch_;
  const int64_t step = scratch_width == width ? std::max<int64_t>(band.end - band.first, 1) : 1;
  Run* end = room;
  for (int64_t row = band.first; row < band.end; row += step) {
    const int64_t position = (band.top + row) * width;
    end = AppendRuns(problem_.input, layout, tile.image, position, step * width, row * scratch_width, end);
  }
  return {room, end};
}

int64_t WindowTiles::MaxInputRuns() const {
  const bool by_row = split_ && problem_.input.width % 2 != 0;
  return by_row ? in_rows_ * MaxRuns(problem_.input.width) : MaxRuns(in_rows_ * problem_.input.width);
}

std::array<std::pair<int64_t, int64_t>, 2> WindowTiles::PaddingOf(const Tile& tile) const {
  const Band band = BandOf(tile);
  return {{{0, band.first * in_pitch_}, {band.end * in_pitch_, band.rows * in_pitch_}}};
}

std::span<const Run> WindowTiles::OutputRuns(const Tile& tile, Layout layout, Run* room) const {
  const int64_t width = problem_.output.width;
  return {room, AppendRuns(problem_.output, layout, tile.image, tile.first_row * width, tile.rows * width, 0, room)};
}

TileWorkspace::TileWorkspace(const WindowTiles& tiles, std::span<std::byte> workspace, int64_t slot) {
  in = reinterpret_cast<float*>(workspace.data() + slot * tiles.WorkspaceBytes());
  out = in + tiles.channel_batch() * tiles.in_floats();
  shared = out + tiles.channel_batch() * tiles.out_floats();
  in_runs = reinterpret_cast<Run*>(shared + tiles.out_floats());
  out_runs = in_runs + tiles.MaxInputRuns();
}

}  // namespace swizzle::cpu

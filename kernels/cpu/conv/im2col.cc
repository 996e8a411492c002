#include "kernels/cpu/conv/im2col.h"

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>

#include "kernels/base/integers.h"

namespace swizzle::cpu {
namespace {

// Bit l becomes bit 2 l, of kPositionUnit bits.
constexpr uint32_t Spread(uint32_t lanes) {
  lanes = (lanes | lanes << 8) & 0x00FF00FF;
  lanes = (lanes | lanes << 4) & 0x0F0F0F0F;
  lanes = (lanes | lanes << 2) & 0x33333333;
  return (lanes | lanes << 1) & 0x55555555;
}
static_assert(kPositionUnit == 16 && Spread(0x8003) == 0x40000005);

// Bits [begin, end), of kPositionUnit.
constexpr uint32_t Bits(int64_t begin, int64_t end) { return begin < end ? (1u << end) - (1u << begin) : 0; }

// Of `count` inputs that are `stride` apart, the first at `begin`, the ones in [0, extent): bits from `lane` on.
uint32_t InsideBits(int64_t begin, int64_t stride, int64_t extent, int64_t lane, int64_t count) {
  const auto before = [=](int64_t limit) {
    const int64_t steps = stride == 1 ? limit - begin : CeilDiv(limit - begin, stride);
    return begin >= limit ? 0 : std::min(steps, count);
  };
  return Bits(lane + before(0), lane + before(extent));
}

}  // namespace

size_t PanelColumns::PieceBytes(const Problem& problem) {
  return RoundUp(sizeof(Piece) * problem.window().taps() * kMaxPanelWidth, kBufferAlignment);
}

size_t PanelColumns::CountBytes(const Problem& problem) {
  return RoundUp(sizeof(int32_t) * problem.window().taps(), kBufferAlignment);
}

size_t PanelColumns::MaskBytes(const Problem& problem) {
  return RoundUp(sizeof(uint32_t) * (problem.window().kernel_h + problem.window().kernel_w), kBufferAlignment);
}

size_t PanelColumns::WorkspaceBytes(const Problem& problem, int64_t rows) {
  if (IsDirect(problem)) return 0;
  if (problem.from.layout == Layout::kBlocked16) rows += 2 * (kBlockChannels - 1);  // from and to the ends of blocks
  return PieceBytes(problem) + CountBytes(problem) + MaskBytes(problem) + rows * kMaxPanelWidth * sizeof(float);
}

PanelColumns::PanelColumns(const Problem& problem, const Operand& input, std::span<std::byte> workspace)
    : problem_(problem),
      window_(problem.window()),
      input_(input),
      input_grid_(problem.input.positions()),
      output_grid_(problem.output.positions()),
      pieces_(reinterpret_cast<Piece*>(workspace.data())),
      counts_(reinterpret_cast<int32_t*>(workspace.data() + PieceBytes(problem))),
      row_masks_(reinterpret_cast<uint32_t*>(workspace.data() + PieceBytes(problem) + CountBytes(problem))),
      column_masks_(row_masks_ + window_.kernel_h),
      columns_(reinterpret_cast<float*>(workspace.data() + PieceBytes(problem) + CountBytes(problem) +
                                        MaskBytes(problem))) {}

std::span<const PanelColumns::Segment> PanelColumns::Segments(int64_t first, int64_t vector,
                                                              std::span<Segment, kPositionUnit> room) {
  const Extent& in = problem_.input;
  const Extent& out = problem_.output;
  std::fill_n(row_masks_, window_.kernel_h + window_.kernel_w, 0);
  int64_t image = first / out.plane();
  int64_t row = first % out.plane() / out.width;
  int64_t column = first % out.width;
  size_t count = 0;
  const int64_t lanes = std::min(vector, out.positions() - first);
  for (int64_t lane = 0, run; lane < lanes; lane += run) {  // each run in one row of the plane
    run = std::min(lanes - lane, out.width - column);
    const int64_t top = row * window_.stride_h - window_.pad_top;
    const int64_t left = column * window_.stride_w - window_.pad_left;
    for (int32_t i = 0; i < window_.kernel_h; ++i) {
      const int64_t y = top + int64_t{i} * window_.dilation_h;
      if (y >= 0 && y < in.height) row_masks_[i] |= Bits(lane, lane + run);
    }
    for (int32_t j = 0; j < window_.kernel_w; ++j) {
      column_masks_[j] |= InsideBits(left + int64_t{j} * window_.dilation_w, window_.stride_w, in.width, lane, run);
    }
    const int64_t begin = image * in.plane() + top * in.width + left - lane * window_.stride_w;
    if (count == 0 || room[count - 1].begin != begin || room[count - 1].image != image) {
      room[count++] = {begin, image, 0};
    }
    room[count - 1].lanes |= Bits(lane, lane + run);
    column = 0;
    if (++row == out.height) {
      row = 0;
      ++image;
    }
  }
  return room.first(count);
}

void PanelColumns::AddPiece(int64_t tap, int64_t offset, int64_t channel_stride, uint32_t lanes, int64_t position) {
  pieces_[tap * kMaxPanelWidth + counts_[tap]++] = {offset, channel_stride, stride() == 2 ? Spread(lanes) : lanes,
                                                    static_cast<uint16_t>(position), false};
}

void PanelColumns::AddPieces(int64_t tap, const Segment& segment, int64_t source, uint32_t lanes, int64_t position) {
  const Extent& in = problem_.input;
  if (problem_.from.layout == Layout::kNchw) {
    AddPiece(tap, segment.image * (in.channels - 1) * in.plane() + source, in.plane(), lanes, position);
    return;
  }
  while (lanes != 0) {  // panel by panel of the input
    const int64_t panel = input_grid_.PanelOf(source + std::countr_zero(lanes) * stride());
    const int64_t begin = input_grid_.Begin(panel);
    const int64_t lanes_in_panel = CeilDiv(input_grid_.Begin(panel + 1) - source, stride());
    const uint32_t part = lanes_in_panel < kPositionUnit ? lanes & ((1u << lanes_in_panel) - 1) : lanes;
    AddPiece(tap, begin * in.channels + source - begin, input_grid_.Width(panel), part, position);
    lanes &= ~part;
  }
}

void PanelColumns::SetPanel(int64_t panel, int64_t vector) {
  if (panel == panel_) return;
  panel_ = panel;
  const int64_t first = output_grid_.Begin(panel);
  std::fill_n(counts_, taps(), 0);
  for (int64_t position = 0; position < width(); position += vector) {
    std::array<Segment, kPositionUnit> room;
    const std::span<const Segment> segments = Segments(first + position, vector, room);
    for (int64_t tap = 0; tap < taps(); ++tap) {
      const int64_t i = tap / window_.kernel_w;
      const int64_t j = tap % window_.kernel_w;
      const int32_t count = counts_[tap];
      for (const Segment& segment : segments) {
        const uint32_t lanes = segment.lanes & row_masks_[i] & column_masks_[j];
        const int64_t source = segment.begin + i * window_.dilation_h * problem_.input.width + j * window_.dilation_w;
        if (lanes != 0) AddPieces(tap, segment, source, lanes, position);
      }
      if (counts_[tap] == count) AddPiece(tap, 0, 0, 0, position);
      pieces_[tap * kMaxPanelWidth + counts_[tap] - 1].last = true;
    }
  }
}

}  // namespace swizzle::cpu

#include "kernels/cpu/layout/channels.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "kernels/base/integers.h"
#include "kernels/cpu/layout/slab.h"
#include "kernels/cpu/runtime/cpu_stream.h"
#include "kernels/whole_numbers/kept_bytes.h"

namespace swizzle::cpu {
namespace {

// Neighbouring channels of an operand, and where in the output they go.
struct Piece {
  const std::byte* from;
  int64_t from_channels;  // of the operand
  int64_t from_first;
  int64_t first, end;  // of the output's

  int64_t FromChannel(int64_t channel) const { return from_first + channel - first; }
};
using Pieces = std::span<const Piece>;

// In order, and every channel belongs to one.
const Piece& PieceOf(Pieces pieces, int64_t channel) {
  return *std::ranges::find_if(pieces, [=](const Piece& piece) { return channel < piece.end; });
}

// An activation as blocks of [channels][width], one behind the other: element (channel, i) of block b lies at
// Begin(b) * channels + channel * Width(b) + i.
class ChannelBlocks {
 public:
  ChannelBlocks(const Extent& extent, Layout layout, bool of_planes)
      : layout_(layout), width_(of_planes ? 1 : extent.plane()), grid_(extent.positions()) {
    if (layout == Layout::kPanels) {
      count_ = grid_.count();
    } else if (layout == Layout::kFullPanels) {
      count_ = FullPanels(extent.positions());
      width_ = kMaxPanelWidth;
    } else {
      count_ = of_planes ? extent.batch * extent.channels : extent.batch;
    }
  }

  int64_t count() const { return count_; }
  int64_t Begin(int64_t block) const { return layout_ == Layout::kPanels ? grid_.Begin(block) : block * width_; }
  int64_t Width(int64_t block) const { return layout_ == Layout::kPanels ? grid_.Width(block) : width_; }
  int64_t least_width() const { return layout_ == Layout::kPanels ? kPositionUnit : width_; }

 private:
  const Layout layout_;
  int64_t width_;
  const PanelGrid grid_;
  int64_t count_;
};

void CopyRuns(const KernelArgs& args, Stream& stream, const ChannelBlocks& blocks, Pieces pieces) {
  constexpr int64_t kGrainBytes = int64_t{4} << 10;
  const int64_t channels = pieces.back().end;
  const auto bytes = static_cast<int64_t>(ElementBytes(args.problem->to.dtype));
  auto* const output = static_cast<std::byte*>(args.output.data);
  const auto copy = [&](int64_t, int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t block = begin / channels, channel = begin % channels;
      const int64_t first = blocks.Begin(block) * bytes, width = blocks.Width(block) * bytes;
      const Piece& piece = PieceOf(pieces, channel);
      const int64_t count = std::min(piece.end - channel, end - begin);
      const std::byte* const from = piece.from + first * piece.from_channels + piece.FromChannel(channel) * width;
      std::byte* const to = output + first * channels + channel * width;
      if (to != from) std::memcpy(to, from, static_cast<size_t>(count * width));
      begin += count;
    }
  };
  CpuStream::From(stream).ParallelRanges(blocks.count() * channels, copy,
                                         CeilDiv(kGrainBytes, blocks.least_width() * bytes));
}

// Some lanes of a block of kBlocked16, at all positions of an image.
void CopyLanes(const float* from, int64_t lanes, int64_t plane, float* to) {
  for (int64_t p = 0; p < plane; ++p) {
    std::memcpy(to + p * kBlockChannels, from + p * kBlockChannels, static_cast<size_t>(lanes) * sizeof(float));
  }
}

// Channels [block * 16, block * 16 + 16) of one image of kBlocked16.
void FillBlock(const Problem& problem, Pieces pieces, int64_t image, int64_t block, float* to) {
  const int64_t plane = problem.output.plane(), channels = problem.output.channels;
  const int64_t first = block * kBlockChannels, end = std::min(first + kBlockChannels, channels);
  int64_t channel = first;
  while (channel < end) {
    const Piece& piece = PieceOf(pieces, channel);
    const int64_t from_channel = piece.FromChannel(channel), lane = from_channel % kBlockChannels;
    const int64_t count = std::min({piece.end - channel, end - channel, kBlockChannels - lane});
    const int64_t from_block = image * CeilDiv(piece.from_channels, kBlockChannels) + from_channel / kBlockChannels;
    const auto* const from = reinterpret_cast<const float*>(piece.from) + from_block * plane * kBlockChannels + lane;
    if (count == kBlockChannels) {
      if (to != from) std::memcpy(to, from, static_cast<size_t>(plane * kBlockChannels) * sizeof(float));
    } else {
      CopyLanes(from, count, plane, to + channel - first);
    }
    channel += count;
  }
  if (end - first == kBlockChannels) return;
  for (int64_t p = 0; p < plane; ++p) {
    std::fill(to + p * kBlockChannels + end - first, to + (p + 1) * kBlockChannels, 0.0f);
  }
}

void CopyBlocked16(const KernelArgs& args, Stream& stream, Pieces pieces) {
  const Problem& problem = *args.problem;
  const int64_t blocks = CeilDiv(problem.output.channels, kBlockChannels);
  auto* const output = args.Output<float>();
  CpuStream::From(stream).ParallelRanges(problem.output.batch * blocks, [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      FillBlock(problem, pieces, item / blocks, item % blocks, output + item * problem.output.plane() * kBlockChannels);
    }
  });
}

// Whether all channels of an image are where they go.
bool IsInPlace(const KernelArgs& args, Pieces pieces) {
  const Problem& problem = *args.problem;
  const bool blocked = problem.to.layout == Layout::kBlocked16;
  if (problem.output.batch != 1 || (!blocked && problem.to.layout != Layout::kNchw)) return false;
  const auto channel_bytes = problem.output.plane() * static_cast<int64_t>(ElementBytes(problem.to.dtype));
  const auto at = [&](const std::byte* image, int64_t channel) { return image + channel * channel_bytes; };
  const auto in_place = [&](const Piece& piece) {
    const bool whole_blocks = !blocked || (piece.end % kBlockChannels == 0 && piece.from_first % kBlockChannels == 0);
    return whole_blocks &&
           at(piece.from, piece.from_first) == at(static_cast<std::byte*>(args.output.data), piece.first);
  };
  return std::ranges::all_of(pieces, in_place);
}

void Copy(const KernelArgs& args, Stream& stream, Pieces pieces, bool of_planes) {
  const Problem& problem = *args.problem;
  if (!of_planes && IsInPlace(args, pieces)) return;
  if (problem.to.layout == Layout::kBlocked16) return CopyBlocked16(args, stream, pieces);
  CopyRuns(args, stream, ChannelBlocks(problem.output, problem.to.layout, of_planes), pieces);
}

}  // namespace

bool AcceptsConcat(const Problem& problem) { return !problem.parts().of_planes || problem.to.layout == Layout::kNchw; }

bool AcceptsConcatBytes(const Problem& problem) { return AcceptsConcat(problem) && KeepsBytes(problem); }

bool AcceptsSliceBytes(const Problem& problem) { return KeepsBytes(problem); }

void RunConcat(const KernelArgs& args, Stream& stream) {
  const ConcatParts& parts = args.problem->parts();
  std::array<Piece, kMaxParts> pieces;
  int64_t first = 0;
  for (int i = 0; i < parts.count; ++i) {
    const int64_t end = first + parts.sizes[i];
    pieces[i] = {static_cast<const std::byte*>(args.inputs[i].data), parts.sizes[i], 0, first, end};
    first = end;
  }
  Copy(args, stream, std::span(pieces).first(parts.count), parts.of_planes);
}

void RunSlice(const KernelArgs& args, Stream& stream) {
  const Problem& problem = *args.problem;
  const Piece piece = {static_cast<const std::byte*>(args.inputs[0].data), problem.input.channels,
                       problem.channel_range().first, 0, problem.output.channels};
  Copy(args, stream, std::span(&piece, 1), false);
}

}  // namespace swizzle::cpu

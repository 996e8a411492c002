#include "kernels/cpu/int8/resize_bytes.h"

#include <algorithm>

#include "kernels/cpu/runtime/cpu_stream.h"
#include "kernels/cpu/window/resized_planes.h"
#include "kernels/whole_numbers/steps.h"

namespace swizzle::cpu {
namespace {

// Of an output of kDepthToSpace: x * block is below 2^32.
constexpr int64_t kMostSide = int64_t{1} << 20, kMostBlock = int64_t{1} << 12;

bool MovesBytes(const Problem& problem) {
  return ReadsBytes(problem, Layout::kFullPanels) && WritesBytes(problem, Layout::kFullPanels) &&
         problem.inputs_as[0] == *problem.epilogue.requantise;
}

void PickSingly(const PanelSources& sources, const uint8_t* input, int64_t channels, uint8_t* to) {
  std::array<int64_t, kMaxPanelWidth> at;  // of channel 0
  for (int64_t i = 0; i < kMaxPanelWidth; ++i) at[i] = sources.line[i] * kMaxPanelWidth + sources.byte[i];
  for (int64_t c = 0; c < channels; ++c, to += kMaxPanelWidth, input += sources.step * kMaxPanelWidth) {
    for (int64_t i = 0; i < kMaxPanelWidth; ++i) to[i] = input[at[i]];
  }
}

// A position of the output's planes, from one to the next without a division.
class Position {
 public:
  Position(const Extent& extent, int64_t position)
      : extent_(extent),
        image_(position / extent.plane()),
        y_(position % extent.plane() / extent.width),
        x_(position % extent.width) {}

  int64_t image() const { return image_; }
  int64_t y() const { return y_; }
  int64_t x() const { return x_; }
  // Stays where it is at the last one.
  void Next() {
    if (++x_ < extent_.width) return;
    if (++y_ < extent_.height) {
      x_ = 0;
    } else if (image_ + 1 < extent_.batch) {
      ++image_;
      y_ = x_ = 0;
    } else {
      --y_, --x_;
    }
  }

 private:
  const Extent& extent_;
  int64_t image_, y_, x_;
};

// Calls pick for each panel of the output. source(position, line, byte) tells where channel 0 is.
template <typename Source>
void PickPanels(const KernelArgs& args, int64_t step, PickPanel pick, Stream& stream, const Source& source) {
  const Extent& to = args.problem->output;
  const auto* const input = args.Input<uint8_t>(0);
  auto* const output = args.Output<uint8_t>();
  CpuStream::From(stream).ParallelRanges(FullPanels(to.positions()), [&](int64_t, int64_t begin, int64_t end) {
    PanelSources sources;
    sources.step = step;
    Position position(to, begin * kMaxPanelWidth);
    for (int64_t panel = begin; panel < end; ++panel) {
      for (int64_t i = 0; i < kMaxPanelWidth; ++i, position.Next()) {
        source(position, sources.line[i], sources.byte[i]);
      }
      pick(sources, input, to.channels, output + panel * kMaxPanelWidth * to.channels);
    }
  });
}

void SetSource(int64_t position, int64_t channels, int64_t& line, uint8_t& byte) {
  line = position / kMaxPanelWidth * channels;
  byte = static_cast<uint8_t>(position % kMaxPanelWidth);
}

void ResizePanels(const KernelArgs& args, Stream& stream, PickPanel pick) {
  const Problem& problem = *args.problem;
  const Extent& from = problem.input;
  const ResizedPlanes planes(problem);
  planes.FillTaps(args.workspace);
  const AxisTaps rows = planes.Rows(args.workspace), columns = planes.Columns(args.workspace);
  PickPanels(args, 1, pick, stream, [&](const Position& at, int64_t& line, uint8_t& byte) {
    const int64_t row = at.image() * from.height + rows.first[at.y()];
    SetSource(row * from.width + columns.first[at.x()], from.channels, line, byte);
  });
}

void RearrangePanels(const KernelArgs& args, Stream& stream, PickPanel pick) {
  const Problem& problem = *args.problem;
  const Extent& from = problem.input;
  const auto block = static_cast<uint64_t>(problem.space_block().block);
  const bool places_first = problem.space_block().places_first;
  const int64_t of_place = places_first ? problem.output.channels : 1;
  const auto step = static_cast<int64_t>(places_first ? 1 : block * block);
  // A division would take longer than all channels: exact below kMostSide.
  const uint64_t inverse = ((uint64_t{1} << 32) + block - 1) / block;
  PickPanels(args, step, pick, stream, [&](const Position& at, int64_t& line, uint8_t& byte) {
    const auto y = static_cast<uint64_t>(at.y()), x = static_cast<uint64_t>(at.x());
    const uint64_t from_y = y * inverse >> 32, from_x = x * inverse >> 32;
    const int64_t row = at.image() * from.height + static_cast<int64_t>(from_y);
    SetSource(row * from.width + static_cast<int64_t>(from_x), from.channels, line, byte);
    line += static_cast<int64_t>((y - from_y * block) * block + x - from_x * block) * of_place;
  });
}

}  // namespace

bool AcceptsDepthToSpaceBytes(const Problem& problem) {
  return MovesBytes(problem) && std::max(problem.output.height, problem.output.width) < kMostSide &&
         problem.space_block().block <= kMostBlock;
}

bool AcceptsResizeBytes(const Problem& problem) { return MovesBytes(problem) && !problem.resampling().linear; }

void ResizeBytes(const KernelArgs& args, Stream& stream) { ResizePanels(args, stream, PickSingly); }
void ResizeBytesVbmi(const KernelArgs& args, Stream& stream) { ResizePanels(args, stream, PickPanelVbmi); }
void DepthToSpaceBytes(const KernelArgs& args, Stream& stream) { RearrangePanels(args, stream, PickSingly); }
void DepthToSpaceBytesVbmi(const KernelArgs& args, Stream& stream) { RearrangePanels(args, stream, PickPanelVbmi); }

}  // namespace swizzle::cpu

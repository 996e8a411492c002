#include "kernels/cpu/int8/resize_bytes.h"

#include <algorithm>

#include "kernels/cpu/runtime/cpu_stream.h"
#include "kernels/cpu/window/resized_planes.h"
#include "kernels/whole_numbers/steps.h"

namespace swizzle::cpu {
namespace {

void PickSingly(const PanelSources& sources, const uint8_t* input, int64_t channels, uint8_t* to) {
  std::array<int64_t, kMaxPanelWidth> at;  // of channel 0
  for (int64_t i = 0; i < kMaxPanelWidth; ++i) {
    const int64_t source = sources.of[i];
    at[i] = source / kMaxPanelWidth * kMaxPanelWidth * channels + source % kMaxPanelWidth;
  }
  for (int64_t c = 0; c < channels; ++c, to += kMaxPanelWidth) {
    for (int64_t i = 0; i < kMaxPanelWidth; ++i) to[i] = input[at[i] + c * kMaxPanelWidth];
  }
}

void ResizePanels(const KernelArgs& args, Stream& stream, PickPanel pick) {
  const Problem& problem = *args.problem;
  const Extent &from = problem.input, &to = problem.output;
  const ResizedPlanes planes(problem);
  planes.FillTaps(args.workspace);
  const AxisTaps rows = planes.Rows(args.workspace), columns = planes.Columns(args.workspace);
  const auto* const input = args.Input<uint8_t>(0);
  auto* const output = args.Output<uint8_t>();
  CpuStream::From(stream).ParallelRanges(FullPanels(to.positions()), [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t panel = begin; panel < end; ++panel) {
      PanelSources sources;
      for (int64_t i = 0; i < kMaxPanelWidth; ++i) {
        const int64_t position = std::min(panel * kMaxPanelWidth + i, to.positions() - 1);
        const int64_t image = position / to.plane(), y = position % to.plane() / to.width, x = position % to.width;
        sources.of[i] = image * from.plane() + rows.first[y] * from.width + columns.first[x];
      }
      pick(sources, input, to.channels, output + panel * kMaxPanelWidth * to.channels);
    }
  });
}

// Where a position of the output is in the input, and which byte of its block.
struct Place {
  int64_t position;
  int64_t place;
};

Place PlaceOf(const Extent& from, const Extent& to, int64_t block, int64_t position) {
  const int64_t image = position / to.plane(), y = position % to.plane() / to.width, x = position % to.width;
  return {image * from.plane() + y / block * from.width + x / block, y % block * block + x % block};
}

}  // namespace

bool AcceptsDepthToSpaceBytes(const Problem& problem) {
  return ReadsBytes(problem, Layout::kFullPanels) && WritesBytes(problem, Layout::kFullPanels) &&
         problem.inputs_as[0] == *problem.epilogue.requantise;
}

void DepthToSpaceBytes(const KernelArgs& args, Stream& stream) {
  const Problem& problem = *args.problem;
  const Extent &from = problem.input, &to = problem.output;
  const auto [block, places_first] = problem.space_block();
  const int64_t of_place = places_first ? to.channels : 1, of_channel = places_first ? 1 : int64_t{block} * block;
  const auto* const input = args.Input<uint8_t>(0);
  auto* const output = args.Output<uint8_t>();
  CpuStream::From(stream).ParallelRanges(FullPanels(to.positions()), [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t panel = begin; panel < end; ++panel) {
      std::array<int64_t, kMaxPanelWidth> at;  // of channel 0
      for (int64_t i = 0; i < kMaxPanelWidth; ++i) {
        const auto [position, place] =
            PlaceOf(from, to, block, std::min(panel * kMaxPanelWidth + i, to.positions() - 1));
        at[i] =
            (position / kMaxPanelWidth * from.channels + place * of_place) * kMaxPanelWidth + position % kMaxPanelWidth;
      }
      uint8_t* row = output + panel * kMaxPanelWidth * to.channels;
      for (int64_t c = 0; c < to.channels; ++c, row += kMaxPanelWidth) {
        const uint8_t* const of_row = input + c * of_channel * kMaxPanelWidth;
        for (int64_t i = 0; i < kMaxPanelWidth; ++i) row[i] = of_row[at[i]];
      }
    }
  });
}

bool AcceptsResizeBytes(const Problem& problem) {
  return ReadsBytes(problem, Layout::kFullPanels) && WritesBytes(problem, Layout::kFullPanels) &&
         !problem.resampling().linear && problem.inputs_as[0] == *problem.epilogue.requantise;
}

void ResizeBytes(const KernelArgs& args, Stream& stream) { ResizePanels(args, stream, PickSingly); }
void ResizeBytesVbmi(const KernelArgs& args, Stream& stream) { ResizePanels(args, stream, PickPanelVbmi); }

}  // namespace swizzle::cpu

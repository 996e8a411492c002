#include "kernels/cpu/int8/window_bytes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "kernels/base/integers.h"
#include "kernels/cpu/runtime/cpu_stream.h"

namespace swizzle::cpu {
namespace {

constexpr int64_t kQuad = 4;

// Of the channels that are gathered at once: half of a first cache of 32 KiB.
constexpr int64_t kColumnBytes = int64_t{16} << 10;

int64_t ChannelsAtOnce(const Problem& problem) {
  return std::clamp<int64_t>(kColumnBytes / (problem.window().taps() * kMaxPanelWidth), 1, problem.input.channels);
}

size_t SlotBytes(const Problem& problem) {
  return static_cast<size_t>(ChannelsAtOnce(problem) * problem.window().taps() * kMaxPanelWidth);
}

// Calls run(panel, columns, first channel, channels) for all channels of all panels.
template <typename Run>
void ForEachWindow(const KernelArgs& args, const ByteCells& cells, Stream& stream, uint8_t fill, const Run& run) {
  const Problem& problem = *args.problem;
  const int64_t at_once = ChannelsAtOnce(problem);
  const int64_t parts = CeilDiv(problem.input.channels, at_once);
  const ByteSource source(problem, args.Input<uint8_t>(0));
  const auto run_range = [&](int64_t slot, int64_t begin, int64_t end) {
    auto* const workspace = reinterpret_cast<uint8_t*>(args.workspace.data()) + slot * SlotBytes(problem);
    WindowLanes lanes;
    for (int64_t item = begin; item < end; ++item) {
      const int64_t panel = item / parts;
      if (item == begin || item % parts == 0) PlanWindowLanes(problem, panel, lanes);
      const int64_t first = item % parts * at_once;
      const int64_t channels = std::min(at_once, problem.input.channels - first);
      cells.gather(source, problem.window(), lanes, {first, channels, fill, workspace});
      run(panel, workspace, first, channels);
    }
  };
  CpuStream::From(stream).ParallelRanges(FullPanels(problem.output.positions()) * parts, run_range);
}

PanelBytes OutputFrom(const KernelArgs& args, int64_t panel, int64_t channel) {
  const int64_t offset = (panel * args.problem->output.channels + channel) * kMaxPanelWidth;
  PanelBytes of{.bytes = args.Output<uint8_t>() + offset};
  if (args.problem->epilogue.residual) of.residual = args.Residual<uint8_t>() + offset;
  return of;
}

bool KeepsFullPanels(const Problem& problem) {
  return ReadsBytes(problem, Layout::kFullPanels) && WritesBytes(problem, Layout::kFullPanels) &&
         !problem.epilogue.function && HasWindowLanes(problem);
}

// What a sum of `count` bytes begins with and is multiplied with, to be their average; see steps.h.
struct Average {
  Average(const Problem& problem, int64_t count)
      : start(static_cast<int32_t>(-count * problem.inputs_as[0].zero_point)),
        scale(problem.inputs_as[0].scale / (problem.epilogue.requantise->scale * static_cast<float>(count))) {}
  int32_t start;
  float scale;
};

bool IsOfWholePlane(const Problem& problem) {
  const Window& window = problem.window();
  return window.kernel_h == problem.input.height && window.kernel_w == problem.input.width &&
         problem.output.plane() == 1 && window.pad_top + window.pad_left + window.pad_bottom + window.pad_right == 0;
}

// Each channel's taps as quads.
class TapWeight final : public PackedWeight {
 public:
  TapWeight(const ByteWeight& weight, int64_t taps)
      : quads_(CeilDiv(taps, kQuad)), start_(weight.start), scale_(weight.scale) {
    for (int64_t row = 0; row < weight.rows; ++row) {
      std::vector<std::array<int8_t, kQuad>> quads(quads_);
      for (const ByteWeight::Entry& entry : weight.entries[row]) {
        quads[entry.column / kQuad][entry.column % kQuad] = entry.value;
      }
      for (const auto& quad : quads) weights_.push_back(PackQuad({quad[0], quad[1], quad[2], quad[3]}));
    }
  }

  size_t bytes() const override {
    return (weights_.size() + start_.size()) * sizeof(int32_t) + scale_.size() * sizeof(float);
  }
  ChannelTaps From(int64_t channel) const {
    return {.weights = weights_.data() + channel * quads_,
            .start = start_.data() + channel,
            .scale = scale_.data() + channel};
  }

 private:
  int64_t quads_;
  std::vector<int32_t> weights_;
  std::vector<int32_t> start_;
  std::vector<float> scale_;
};

// A depthwise convolution that averages: the same for every channel.
class AverageTaps {
 public:
  explicit AverageTaps(const Problem& problem) : taps_(problem.window().taps()) {
    const Average average(problem, taps_);
    start_.fill(average.start);
    scale_.fill(average.scale);
    const int64_t quads = CeilDiv(taps_, kQuad);
    weights_.fill(0x01010101);
    if (taps_ % kQuad == 0) return;
    for (size_t last = quads - 1; last < weights_.size(); last += quads) {
      weights_[last] &= (1 << (8 * (taps_ % kQuad))) - 1;
    }
  }
  ChannelTaps Of(const uint8_t* columns, int64_t channels) const {
    return {.columns = columns,
            .channels = channels,
            .taps = taps_,
            .weights = weights_.data(),
            .start = start_.data(),
            .scale = scale_.data()};
  }

 private:
  // Channels at once times their quads are no more than that, as taps are.
  static constexpr size_t kMost = WindowLanes::kMostTaps * WindowLanes::kMostTaps;
  static_assert(kMost * kMaxPanelWidth >= kColumnBytes);

  int64_t taps_;
  std::array<int32_t, kMost> weights_, start_;
  std::array<float, kMost> scale_;
};

// Bytes of a plane of kFullPanels, which lies in one panel or several.
template <typename Sum>
int32_t SumOfPlane(const uint8_t* input, const Extent& extent, int64_t image, int64_t channel, const Sum& sum) {
  int32_t total = 0;
  const int64_t end = (image + 1) * extent.plane();
  for (int64_t position = image * extent.plane(), count; position < end; position += count) {
    const int64_t in_panel = position % kMaxPanelWidth;
    count = std::min(kMaxPanelWidth - in_panel, end - position);
    total += sum(input + (position - in_panel) * extent.channels + channel * kMaxPanelWidth + in_panel, count);
  }
  return total;
}

}  // namespace

bool AcceptsDepthwiseBytes(const Problem& problem) {
  return KeepsFullPanels(problem) && (!problem.epilogue.residual || problem.inputs_as[1].dtype == DType::kUint8);
}

bool AcceptsMaxPoolBytes(const Problem& problem) {
  return KeepsFullPanels(problem) && !problem.epilogue.residual && problem.inputs_as[0] == *problem.epilogue.requantise;
}

bool AcceptsAveragePoolBytes(const Problem& problem) {
  const Window& window = problem.window();
  const bool padded = window.pad_top + window.pad_left + window.pad_bottom + window.pad_right > 0;
  return KeepsFullPanels(problem) && !problem.epilogue.residual && (window.count_include_pad || !padded);
}

bool AcceptsGlobalPoolBytes(const Problem& problem) {
  return ReadsBytes(problem, Layout::kFullPanels) && WritesBytes(problem, Layout::kNchw) && IsOfWholePlane(problem) &&
         !problem.epilogue.residual && !problem.epilogue.function && problem.input.plane() < (1 << 23);
}

size_t WindowBytesWorkspace(const Problem& problem) { return problem.threads * SlotBytes(problem); }

StatusOr<std::unique_ptr<PackedWeight>> PrepareDepthwiseBytes(const Weight& weight, const Problem& problem) {
  SWIZZLE_ASSIGN_OR_RETURN(const ByteWeight bytes, MakeByteWeight(weight, problem));
  return std::make_unique<TapWeight>(bytes, problem.window().taps());
}

template <const ByteCells& kCells>
void DepthwiseBytes(const KernelArgs& args, Stream& stream) {
  const Problem& problem = *args.problem;
  const auto& weight = static_cast<const TapWeight&>(*args.weight);
  const OutputSteps steps = StepsOf(problem);
  const auto fill = static_cast<uint8_t>(problem.inputs_as[0].zero_point);
  ForEachWindow(args, kCells, stream, fill,
                [&](int64_t panel, const uint8_t* columns, int64_t first, int64_t channels) {
                  ChannelTaps taps = weight.From(first);
                  taps.columns = columns;
                  taps.channels = channels;
                  taps.taps = problem.window().taps();
                  kCells.depthwise(taps, OutputFrom(args, panel, first), steps);
                });
}

template <const ByteCells& kCells>
void MaxPoolBytes(const KernelArgs& args, Stream& stream) {
  const OutputSteps steps = StepsOf(*args.problem);
  const int64_t taps = args.problem->window().taps();
  ForEachWindow(args, kCells, stream, 0, [&](int64_t panel, const uint8_t* columns, int64_t first, int64_t channels) {
    uint8_t* const to = OutputFrom(args, panel, first).bytes;
    for (int64_t c = 0; c < channels; ++c) {
      const int64_t row = c * kMaxPanelWidth;
      kCells.largest(columns + row, taps, channels * kMaxPanelWidth, steps, to + row);
    }
  });
}

template <const ByteCells& kCells>
void AveragePoolBytes(const KernelArgs& args, Stream& stream) {
  const Problem& problem = *args.problem;
  const OutputSteps steps = StepsOf(problem);
  const AverageTaps ones(problem);
  const auto fill = static_cast<uint8_t>(problem.inputs_as[0].zero_point);
  ForEachWindow(args, kCells, stream, fill,
                [&](int64_t panel, const uint8_t* columns, int64_t first, int64_t channels) {
                  kCells.depthwise(ones.Of(columns, channels), OutputFrom(args, panel, first), steps);
                });
}

template <const ByteCells& kCells>
void GlobalPoolBytes(const KernelArgs& args, Stream& stream) {
  const Extent& extent = args.problem->input;
  const OutputSteps steps = StepsOf(*args.problem);
  const Average average(*args.problem, extent.plane());
  const auto* const input = args.Input<uint8_t>(0);
  auto* const output = args.Output<uint8_t>();
  CpuStream::From(stream).ParallelRanges(
      extent.batch * extent.channels,
      [&](int64_t, int64_t begin, int64_t end) {
        for (int64_t item = begin; item < end; ++item) {
          const int64_t image = item / extent.channels, channel = item % extent.channels;
          const int32_t sum = average.start + SumOfPlane(input, extent, image, channel, kCells.sum);
          const float value = std::nearbyint(static_cast<float>(sum) * average.scale);
          const int32_t step = static_cast<int32_t>(std::clamp(value, -1024.0f, 1024.0f)) + steps.zero_point;
          output[item] = static_cast<uint8_t>(std::clamp(step, steps.low, steps.high));
        }
      },
      64);
}

#define SWIZZLE_INSTANTIATE(cells)                                               \
  template void DepthwiseBytes<cells::kByteCells>(const KernelArgs&, Stream&);   \
  template void MaxPoolBytes<cells::kByteCells>(const KernelArgs&, Stream&);     \
  template void AveragePoolBytes<cells::kByteCells>(const KernelArgs&, Stream&); \
  template void GlobalPoolBytes<cells::kByteCells>(const KernelArgs&, Stream&);
SWIZZLE_INSTANTIATE(vnni)
SWIZZLE_INSTANTIATE(N_AVX3)
SWIZZLE_INSTANTIATE(N_AVX2)
SWIZZLE_INSTANTIATE(N_EMU128)
#undef SWIZZLE_INSTANTIATE

}  // namespace swizzle::cpu

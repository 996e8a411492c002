#include "kernels/cpu/int8/window_bytes.h"

#include <xmmintrin.h>

#include <algorithm>
#include <array>
#include <vector>

#include "kernels/base/integers.h"
#include "kernels/cpu/int8/max_rows.h"
#include "kernels/cpu/runtime/cpu_stream.h"

namespace swizzle::cpu {
namespace {

constexpr int64_t kQuad = 4;

// Of the channels that are taken at once: more would leave a first cache of 32 KiB, fewer plan too often.
constexpr int64_t kColumnBytes = int64_t{32} << 10;

int64_t ChannelsAtOnce(const Problem& problem) {
  return std::clamp<int64_t>(kColumnBytes / (problem.window().taps() * kMaxPanelWidth), 1, problem.input.channels);
}

// Of those that no columns are gathered of: enough for all threads, and else as many as can be, since a panel's windows
// are planned for each part.
int64_t DirectChannels(const Problem& problem) {
  constexpr int64_t kPartsPerThread = 4, kUnit = 8;  // channels that are summed side by side
  const int64_t panels = FullPanels(problem.output.positions());
  const int64_t parts = CeilDiv(kPartsPerThread * problem.threads, panels);
  return std::min(RoundUp(CeilDiv(problem.input.channels, parts), kUnit), problem.input.channels);
}

size_t SlotBytes(const Problem& problem) {
  return static_cast<size_t>(ChannelsAtOnce(problem) * problem.window().taps() * kMaxPanelWidth);
}

// Some channels of one panel of outputs.
struct WindowPart {
  int64_t panel, first_channel, channels;
  const WindowLanes* lanes;
  uint8_t* workspace;
};

// An operator's parts, and the columns of each.
class ByteWindows {
 public:
  explicit ByteWindows(const KernelArgs& args) : args_(args), source_(*args.problem, args.Input<uint8_t>(0)) {}

  const ByteSource& source() const { return source_; }

  const uint8_t* Gather(const ByteCells& cells, const WindowPart& part, uint8_t fill) const {
    cells.gather(source_, args_.problem->window(), *part.lanes,
                 {part.first_channel, part.channels, fill, part.workspace});
    return part.workspace;
  }

  // Calls run(part) for each part once, of `at_once` channels.
  template <typename Run>
  void ForEach(Stream& stream, int64_t at_once, const Run& run) const {
    const Problem& problem = *args_.problem;
    const int64_t parts = CeilDiv(problem.input.channels, at_once);
    const auto run_range = [&](int64_t slot, int64_t begin, int64_t end) {
      auto* const workspace = reinterpret_cast<uint8_t*>(args_.workspace.data()) + slot * SlotBytes(problem);
      WindowLanes lanes;
      for (int64_t item = begin; item < end; ++item) {
        const int64_t panel = item / parts, first = item % parts * at_once;
        if (item == begin || item % parts == 0) PlanWindowLanes(problem, panel, lanes);
        run(WindowPart{panel, first, std::min(at_once, problem.input.channels - first), &lanes, workspace});
      }
    };
    CpuStream::From(stream).ParallelRanges(FullPanels(problem.output.positions()) * parts, run_range);
  }

 private:
  const KernelArgs& args_;
  const ByteSource source_;
};

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

// Of a whole plane's sum. No function rounds here: in a target without SSE4.1 that is a call for each channel.
uint8_t AverageOf(int32_t sum, const Average& average, const OutputSteps& steps) {
  const float value = std::clamp(static_cast<float>(average.start + sum) * average.scale, -1024.0f, 1024.0f);
  const int32_t step = _mm_cvtss_si32(_mm_set_ss(value)) + steps.zero_point;
  return static_cast<uint8_t>(std::clamp(step, steps.low, steps.high));
}

bool IsOfWholePlane(const Problem& problem) {
  const Window& window = problem.window();
  return window.kernel_h == problem.input.height && window.kernel_w == problem.input.width &&
         problem.output.plane() == 1 && window.pad_top + window.pad_left + window.pad_bottom + window.pad_right == 0;
}

// Quads of a window's taps, each row's filled up.
int64_t QuadsOf(const Window& window) { return window.kernel_h * CeilDiv(window.kernel_w, kQuad); }

// Each channel's taps as quads.
class TapWeight final : public PackedWeight {
 public:
  TapWeight(const ByteWeight& weight, const Window& window)
      : quads_(QuadsOf(window)), start_(weight.start), scale_(weight.scale) {
    const int64_t row_quads = quads_ / window.kernel_h;
    for (int64_t row = 0; row < weight.rows; ++row) {
      std::vector<std::array<int8_t, kQuad>> quads(quads_);
      for (const ByteWeight::Entry& entry : weight.entries[row]) {
        const int64_t row_of = entry.column / window.kernel_w, tap = entry.column % window.kernel_w;
        quads[row_of * row_quads + tap / kQuad][tap % kQuad] = entry.value;
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
  explicit AverageTaps(const Problem& problem) : window_(problem.window()) {
    const Average average(problem, window_.taps());
    start_.fill(average.start);
    scale_.fill(average.scale);
    const int64_t row_quads = CeilDiv(window_.kernel_w, kQuad);
    const int64_t rest = window_.kernel_w % kQuad;
    for (size_t quad = 0; quad < weights_.size(); ++quad) {
      const bool is_last = static_cast<int64_t>(quad) % row_quads == row_quads - 1;
      weights_[quad] = is_last && rest != 0 ? 0x01010101 & ((1 << (8 * rest)) - 1) : 0x01010101;
    }
  }
  ChannelTaps Of(const uint8_t* columns, int64_t channels) const {
    return {.columns = columns,
            .channels = channels,
            .kernel_h = window_.kernel_h,
            .kernel_w = window_.kernel_w,
            .weights = weights_.data(),
            .start = start_.data(),
            .scale = scale_.data()};
  }

 private:
  // Channels at once times their quads are no more than that, as their taps are.
  static constexpr size_t kMost = kColumnBytes / kMaxPanelWidth;
  static_assert(kMost >= size_t{WindowLanes::kMostTaps} * WindowLanes::kMostTaps);

  const Window window_;
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

// Of neighbouring channels in kNhwc.
constexpr int64_t kChannelsAtOnce = 64;
using ChannelSums = std::array<int32_t, kChannelsAtOnce>;

template <bool kWhole>
ChannelSums SumPositions(const uint8_t* from, int64_t positions, int64_t step, int64_t channels) {
  constexpr int64_t kMostInShort = 257;  // bytes whose sum has 16 bits
  if (kWhole) channels = kChannelsAtOnce;
  ChannelSums sums = {};
  while (positions > 0) {
    std::array<uint16_t, kChannelsAtOnce> of = {};
    const int64_t count = std::min(positions, kMostInShort);
    for (int64_t p = 0; p < count; ++p, from += step) {
      for (int64_t c = 0; c < channels; ++c) of[c] = static_cast<uint16_t>(of[c] + from[c]);
    }
    for (int64_t c = 0; c < kChannelsAtOnce; ++c) sums[c] += of[c];
    positions -= count;
  }
  return sums;
}

bool CanAveragePlane(const Problem& problem, Layout layout) {
  return ReadsBytes(problem, layout) && WritesBytes(problem, Layout::kNchw) && IsOfWholePlane(problem) &&
         !problem.epilogue.residual && !problem.epilogue.function && problem.input.plane() < (1 << 23);
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

bool AcceptsGlobalPoolBytes(const Problem& problem) { return CanAveragePlane(problem, Layout::kFullPanels); }
bool AcceptsNhwcGlobalPool(const Problem& problem) { return CanAveragePlane(problem, Layout::kNhwc); }

size_t WindowBytesWorkspace(const Problem& problem) { return problem.threads * SlotBytes(problem); }

size_t MaxPoolWorkspace(const Problem& problem) {
  const Window& window = problem.window();
  const int64_t bands = MaxBands::Fit(window) ? MaxBands(problem).workspace_bytes() : 0;
  return problem.threads * std::max(SlotBytes(problem), static_cast<size_t>(bands));
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareDepthwiseBytes(const Weight& weight, const Problem& problem) {
  SWIZZLE_ASSIGN_OR_RETURN(const ByteWeight bytes, MakeByteWeight(weight, problem));
  return std::make_unique<TapWeight>(bytes, problem.window());
}

template <const ByteCells& kCells>
void DepthwiseBytes(const KernelArgs& args, Stream& stream) {
  const Problem& problem = *args.problem;
  const auto& weight = static_cast<const TapWeight&>(*args.weight);
  const OutputSteps steps = StepsOf(problem);
  const auto fill = static_cast<uint8_t>(problem.inputs_as[0].zero_point);
  const ByteWindows windows(args);
  const auto taps_of = [&](const WindowPart& part) {
    ChannelTaps taps = weight.From(part.first_channel);
    taps.channels = part.channels;
    taps.kernel_h = problem.window().kernel_h;
    taps.kernel_w = problem.window().kernel_w;
    return taps;
  };
  const auto run_gathered = [&](const WindowPart& part) {
    ChannelTaps taps = taps_of(part);
    taps.columns = windows.Gather(kCells, part, fill);
    kCells.depthwise(taps, OutputFrom(args, part.panel, part.first_channel), steps);
  };
  const int64_t gathered = ChannelsAtOnce(problem);
  if (kCells.direct_depthwise == nullptr) return windows.ForEach(stream, gathered, run_gathered);
  windows.ForEach(stream, DirectChannels(problem), [&](const WindowPart& part) {
    const WindowPlace place{&problem, part.lanes, part.first_channel, fill};
    const PanelBytes to = OutputFrom(args, part.panel, part.first_channel);
    if (kCells.direct_depthwise(windows.source(), place, taps_of(part), to, steps)) return;
    for (int64_t c = 0; c < part.channels; c += gathered) {
      WindowPart some = part;
      some.first_channel += c;
      some.channels = std::min(gathered, part.channels - c);
      run_gathered(some);
    }
  });
}

template <const ByteCells& kCells>
void MaxPoolBytes(const KernelArgs& args, Stream& stream) {
  const OutputSteps steps = StepsOf(*args.problem);
  const int64_t taps = args.problem->window().taps();
  const ByteWindows windows(args);
  windows.ForEach(stream, ChannelsAtOnce(*args.problem), [&](const WindowPart& part) {
    const uint8_t* const columns = windows.Gather(kCells, part, 0);
    uint8_t* const to = OutputFrom(args, part.panel, part.first_channel).bytes;
    for (int64_t c = 0; c < part.channels; ++c) {
      const int64_t row = c * kMaxPanelWidth;
      kCells.largest(columns + row, taps, part.channels * kMaxPanelWidth, steps, to + row);
    }
  });
}

void MaxPoolInBands(const KernelArgs& args, Stream& stream) {
  const Problem& problem = *args.problem;
  if (!MaxBands::Fit(problem.window())) return MaxPoolBytes<vbmi::kByteCells>(args, stream);
  const MaxBands bands(problem);
  const OutputSteps steps = StepsOf(problem);
  const Extent& out = problem.output;
  const int64_t parts = CeilDiv(out.channels, MaxBand::kChannels), in_plane = CeilDiv(out.height, bands.rows);
  const auto run_range = [&](int64_t slot, int64_t begin, int64_t end) {
    auto* const workspace = reinterpret_cast<uint8_t*>(args.workspace.data()) + slot * bands.workspace_bytes();
    for (int64_t item = begin; item < end; ++item) {
      const int64_t first_channel = item % parts * MaxBand::kChannels, row = item / parts % in_plane;
      MaxBand band{.input = args.Input<uint8_t>(0), .output = args.Output<uint8_t>()};
      band.image = item / (parts * in_plane);
      band.first_row = out.height * row / in_plane;
      band.rows = out.height * (row + 1) / in_plane - band.first_row;
      band.first_channel = first_channel;
      band.channels = std::min(MaxBand::kChannels, out.channels - first_channel);
      LargestOfBand(problem, band, steps, bands.channel_bytes, workspace);
    }
  };
  CpuStream::From(stream).ParallelRanges(out.batch * in_plane * parts, run_range);
}

template <const ByteCells& kCells>
void AveragePoolBytes(const KernelArgs& args, Stream& stream) {
  const Problem& problem = *args.problem;
  const OutputSteps steps = StepsOf(problem);
  const AverageTaps ones(problem);
  const auto fill = static_cast<uint8_t>(problem.inputs_as[0].zero_point);
  const ByteWindows windows(args);
  windows.ForEach(stream, ChannelsAtOnce(*args.problem), [&](const WindowPart& part) {
    const uint8_t* const columns = windows.Gather(kCells, part, fill);
    kCells.depthwise(ones.Of(columns, part.channels), OutputFrom(args, part.panel, part.first_channel), steps);
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
          const int32_t sum = SumOfPlane(input, extent, image, channel, kCells.sum);
          output[item] = AverageOf(sum, average, steps);
        }
      },
      64);
}

void NhwcGlobalPool(const KernelArgs& args, Stream& stream) {
  const Extent& extent = args.problem->input;
  const OutputSteps steps = StepsOf(*args.problem);
  const Average average(*args.problem, extent.plane());
  const int64_t blocks = CeilDiv(extent.channels, kChannelsAtOnce);
  const auto run_range = [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t image = item / blocks, first = item % blocks * kChannelsAtOnce;
      const int64_t channels = std::min(kChannelsAtOnce, extent.channels - first);
      const uint8_t* const from = args.Input<uint8_t>(0) + image * extent.plane() * extent.channels + first;
      const auto sum = channels == kChannelsAtOnce ? &SumPositions<true> : &SumPositions<false>;
      const ChannelSums sums = sum(from, extent.plane(), extent.channels, channels);
      uint8_t* const to = args.Output<uint8_t>() + image * extent.channels + first;
      for (int64_t c = 0; c < channels; ++c) to[c] = AverageOf(sums[c], average, steps);
    }
  };
  CpuStream::From(stream).ParallelRanges(extent.batch * blocks, run_range, /*grain=*/4);
}

#define SWIZZLE_INSTANTIATE(cells)                                               \
  template void DepthwiseBytes<cells::kByteCells>(const KernelArgs&, Stream&);   \
  template void MaxPoolBytes<cells::kByteCells>(const KernelArgs&, Stream&);     \
  template void AveragePoolBytes<cells::kByteCells>(const KernelArgs&, Stream&); \
  template void GlobalPoolBytes<cells::kByteCells>(const KernelArgs&, Stream&);
SWIZZLE_INSTANTIATE(vbmi)
SWIZZLE_INSTANTIATE(vnni)
SWIZZLE_INSTANTIATE(N_AVX3)
SWIZZLE_INSTANTIATE(N_AVX2)
SWIZZLE_INSTANTIATE(N_EMU128)
#undef SWIZZLE_INSTANTIATE

}  // namespace swizzle::cpu

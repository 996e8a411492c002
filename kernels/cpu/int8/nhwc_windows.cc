#include "kernels/cpu/int8/nhwc_windows.h"

#include <algorithm>
#include <array>
#include <vector>

#include "kernels/base/integers.h"
#include "kernels/cpu/elementwise/function.h"
#include "kernels/cpu/int8/nhwc_cells.h"
#include "kernels/cpu/int8/quad_weight.h"
#include "kernels/cpu/runtime/cpu_stream.h"
#include "kernels/whole_numbers/byte_weight.h"
#include "kernels/whole_numbers/steps.h"

namespace swizzle::cpu {
namespace {

constexpr int64_t kQuad = 4;

bool KeepsNhwc(const Problem& problem) {
  const Window& window = problem.window();
  return ReadsBytes(problem, Layout::kNhwc) && WritesBytes(problem, Layout::kNhwc) && !problem.epilogue.residual &&
         window.kernel_h <= NhwcRow::kMostTaps && window.kernel_w <= NhwcRow::kMostTaps;
}

// Of some channels, a dword each: see NhwcTaps.
template <typename T, int64_t kChannels>
struct alignas(64) OfChannels {
  std::array<T, kChannels> of = {};
};

// Taps of up to 64 channels, four rows to a dword.
struct Quads {
  static constexpr int64_t kChannels = kNhwcChannels, kRows = kQuad;
  static int64_t Lane(int64_t channel) { return channel % 16 / 4 * 16 + channel / 16 * 4 + channel % 4; }
  static int32_t Pack(const std::array<int8_t, kRows>& of) { return PackQuad({of[0], of[1], of[2], of[3]}); }
};

// Of 16, two rows to a dword.
struct Pairs {
  static constexpr int64_t kChannels = kNhwcPairChannels, kRows = 2;
  static int64_t Lane(int64_t channel) { return channel % 8 / 4 * 8 + channel / 8 * 4 + channel % 4; }
  static int32_t Pack(const std::array<int8_t, kRows>& of) {
    return static_cast<int32_t>(static_cast<uint32_t>(of[1]) << 16 | static_cast<uint16_t>(of[0]));
  }
};

// The first channel of a block: the last block begins earlier where it would reach beyond the channels, if it can.
template <typename Taps>
int64_t FirstChannel(int64_t block, int64_t channels) {
  const int64_t first = block * Taps::kChannels;
  return Taps::kChannels == kNhwcPairChannels ? std::min(first, channels - Taps::kChannels) : first;
}

template <typename Taps>
class NhwcTapWeight final : public PackedWeight {
 public:
  NhwcTapWeight(const ByteWeight& weight, const Window& window)
      : rows_each_(CeilDiv<int64_t>(window.kernel_h, Taps::kRows)), dwords_each_(window.kernel_w * rows_each_) {
    const int64_t blocks = CeilDiv(weight.rows, Taps::kChannels);
    start_.resize(blocks);
    scale_.resize(blocks);
    taps_.resize(blocks * dwords_each_);
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t first = FirstChannel<Taps>(block, weight.rows);
      for (int64_t row = first; row < std::min(first + Taps::kChannels, weight.rows); ++row) {
        AddChannel(weight, row, window, block, Taps::Lane(row - first));
        if (2 * weight.rows == Taps::kChannels) AddChannel(weight, row, window, block, Taps::Lane(weight.rows + row));
      }
    }
  }

  size_t bytes() const override { return start_.size() * sizeof(Dwords) * 2 + taps_.size() * sizeof(Dwords); }
  NhwcTaps Block(int64_t block) const {
    return {start_[block].of.data(), scale_[block].of.data(), taps_[block * dwords_each_].of.data()};
  }

 private:
  using Dwords = OfChannels<int32_t, Taps::kChannels>;

  void AddChannel(const ByteWeight& weight, int64_t row, const Window& window, int64_t block, int64_t lane) {
    start_[block].of[lane] = weight.start[row];
    scale_[block].of[lane] = weight.scale[row];
    std::vector<std::array<int8_t, Taps::kRows>> dwords(dwords_each_);
    for (const ByteWeight::Entry& entry : weight.entries[row]) {
      const int64_t i = entry.column / window.kernel_w, j = entry.column % window.kernel_w;
      dwords[j * rows_each_ + i / Taps::kRows][i % Taps::kRows] = entry.value;
    }
    for (int64_t k = 0; k < dwords_each_; ++k) taps_[block * dwords_each_ + k].of[lane] = Taps::Pack(dwords[k]);
  }

  const int64_t rows_each_, dwords_each_;  // of a column; of a channel
  std::vector<Dwords> start_, taps_;
  std::vector<OfChannels<float, Taps::kChannels>> scale_;
};

// Calls run(row, block of channels) for each once. fill: what taps outside the plane read.
template <typename Taps, typename Run>
void ForEachRow(const KernelArgs& args, Stream& stream, uint8_t fill, const Run& run) {
  const Problem& problem = *args.problem;
  const Extent &from = problem.input, &to = problem.output;
  const Window& window = problem.window();
  const int64_t blocks = CeilDiv(to.channels, Taps::kChannels);
  std::array<uint8_t, kNhwcChannels> outside;
  outside.fill(fill);
  const auto run_range = [&](int64_t, int64_t begin, int64_t end) {
    NhwcRow row{.outside = outside.data(), .width = from.width, .window = window, .output_width = to.width};
    row.output_step = to.channels;
    for (int64_t item = begin; item < end; ++item) {
      const int64_t block = item % blocks, line = item / blocks, image = line / to.height;
      const int64_t channel = FirstChannel<Taps>(block, to.channels),
                    y = line % to.height * window.stride_h - window.pad_top;
      row.channels = std::min(Taps::kChannels, to.channels - channel);
      row.output = args.Output<uint8_t>() + line * to.width * to.channels + channel;
      for (int64_t i = 0; i < window.kernel_h; ++i) {
        const int64_t input_y = y + i * window.dilation_h;
        const bool inside = input_y >= 0 && input_y < from.height;
        const int64_t first = (image * from.height + input_y) * from.width;
        row.rows[i] = inside ? args.Input<uint8_t>(0) + first * from.channels + channel : outside.data();
        row.steps[i] = inside ? from.channels : 0;
      }
      run(row, block);
    }
  };
  CpuStream::From(stream).ParallelRanges(to.batch * to.height * blocks, run_range);
}

template <typename Taps>
StatusOr<std::unique_ptr<PackedWeight>> Prepare(const Weight& weight, const Problem& problem) {
  SWIZZLE_ASSIGN_OR_RETURN(const ByteWeight bytes, MakeByteWeight(weight, problem));
  return std::make_unique<NhwcTapWeight<Taps>>(bytes, problem.window());
}

// Some positions of the row at a time end in the function, while they are in the first cache.
void FunctionRow(const NhwcRow& row, const NhwcTaps& taps, const OutputSteps& steps, const Epilogue& epilogue) {
  constexpr int64_t kPositions = 32;
  alignas(64) float reals[kPositions * kNhwcChannels];
  NhwcRow some = row;
  for (int64_t first = 0; first < row.output_width; first += kPositions) {
    some.output_width = std::min(kPositions, row.output_width - first);
    DepthwiseRealsRow(some, taps, reals);
    ApplyFunction(*epilogue.function, reals, some.output_width * kNhwcChannels);
    RoundRow(reals, some, *epilogue.requantise, steps);
    some.output += kPositions * row.output_step;
    some.window.pad_left -= static_cast<int32_t>(kPositions) * row.window.stride_w;
  }
}

void BytesRow(const NhwcRow& row, const NhwcTaps& taps, const OutputSteps& steps, const Epilogue&) {
  DepthwiseRow(row, taps, steps);
}

void PairsRow(const NhwcRow& row, const NhwcTaps& taps, const OutputSteps& steps, const Epilogue&) {
  DepthwiseRowInPairs(row, taps, steps);
}

template <typename Taps, auto kRunRow>
void RunDepthwise(const KernelArgs& args, Stream& stream) {
  const auto& weight = static_cast<const NhwcTapWeight<Taps>&>(*args.weight);
  const OutputSteps steps = StepsOf(*args.problem);
  const auto fill = static_cast<uint8_t>(args.problem->inputs_as[0].zero_point);
  ForEachRow<Taps>(args, stream, fill, [&](const NhwcRow& row, int64_t block) {
    kRunRow(row, weight.Block(block), steps, args.problem->epilogue);
  });
}

}  // namespace

bool AcceptsNhwcDepthwise(const Problem& problem) {
  return KeepsNhwc(problem) && (!problem.epilogue.function || !problem.epilogue.Clamps());
}

bool AcceptsNhwcPairDepthwise(const Problem& problem) {
  return KeepsNhwc(problem) && !problem.epilogue.function && problem.output.channels >= kNhwcPairChannels;
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareNhwcDepthwise(const Weight& weight, const Problem& problem) {
  return Prepare<Quads>(weight, problem);
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareNhwcPairDepthwise(const Weight& weight, const Problem& problem) {
  return Prepare<Pairs>(weight, problem);
}

void NhwcDepthwise(const KernelArgs& args, Stream& stream) {
  if (args.problem->epilogue.function) return RunDepthwise<Quads, FunctionRow>(args, stream);
  RunDepthwise<Quads, BytesRow>(args, stream);
}

void NhwcPairDepthwise(const KernelArgs& args, Stream& stream) { RunDepthwise<Pairs, PairsRow>(args, stream); }

bool AcceptsNhwcMaxPool(const Problem& problem) {
  return KeepsNhwc(problem) && !problem.epilogue.function && problem.inputs_as[0] == *problem.epilogue.requantise;
}

void NhwcMaxPool(const KernelArgs& args, Stream& stream) {
  const OutputSteps steps = StepsOf(*args.problem);
  ForEachRow<Quads>(args, stream, 0, [&](const NhwcRow& row, int64_t) { LargestRow(row, steps); });
}

}  // namespace swizzle::cpu

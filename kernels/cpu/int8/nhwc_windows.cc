#include "kernels/cpu/int8/nhwc_windows.h"

#include <algorithm>
#include <array>
#include <vector>

#include "kernels/base/integers.h"
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
  return ReadsBytes(problem, Layout::kNhwc) && WritesBytes(problem, Layout::kNhwc) && !problem.epilogue.function &&
         !problem.epilogue.residual && window.kernel_h <= NhwcRow::kMostTaps && window.kernel_w <= NhwcRow::kMostTaps;
}

// The weights of 64 channels.
template <typename T>
struct alignas(64) OfChannels {
  std::array<T, kNhwcChannels> of = {};
};

// Where unpacking leaves a channel.
int64_t Unpacked(int64_t channel) { return channel % 16 / 4 * 16 + channel / 16 * 4 + channel % 4; }

class NhwcTapWeight final : public PackedWeight {
 public:
  NhwcTapWeight(const ByteWeight& weight, const Window& window)
      : quads_each_(window.kernel_w * CeilDiv<int64_t>(window.kernel_h, kQuad)) {
    const int64_t blocks = CeilDiv(weight.rows, kNhwcChannels);
    start_.resize(blocks);
    scale_.resize(blocks);
    quads_.resize(blocks * quads_each_);
    for (int64_t row = 0; row < weight.rows; ++row) {
      const int64_t block = row / kNhwcChannels, lane = Unpacked(row % kNhwcChannels);
      start_[block].of[lane] = weight.start[row];
      scale_[block].of[lane] = weight.scale[row];
      std::vector<std::array<int8_t, kQuad>> quads(quads_each_);
      for (const ByteWeight::Entry& entry : weight.entries[row]) {
        const int64_t i = entry.column / window.kernel_w, j = entry.column % window.kernel_w;
        quads[j * quads_each_ / window.kernel_w + i / kQuad][i % kQuad] = entry.value;
      }
      for (int64_t quad = 0; quad < quads_each_; ++quad) {
        const auto& of = quads[quad];
        quads_[block * quads_each_ + quad].of[lane] = PackQuad({of[0], of[1], of[2], of[3]});
      }
    }
  }

  size_t bytes() const override {
    return (start_.size() + scale_.size() + quads_.size()) * sizeof(OfChannels<int32_t>);
  }
  NhwcTaps Block(int64_t block) const {
    return {start_[block].of.data(), scale_[block].of.data(), quads_[block * quads_each_].of.data()};
  }

 private:
  const int64_t quads_each_;
  std::vector<OfChannels<int32_t>> start_, quads_;
  std::vector<OfChannels<float>> scale_;
};

// Calls run(row, block of channels) for each once. fill: what taps outside the plane read.
template <typename Run>
void ForEachRow(const KernelArgs& args, Stream& stream, uint8_t fill, const Run& run) {
  const Problem& problem = *args.problem;
  const Extent &from = problem.input, &to = problem.output;
  const Window& window = problem.window();
  const int64_t blocks = CeilDiv(to.channels, kNhwcChannels);
  std::array<uint8_t, kNhwcChannels> outside;
  outside.fill(fill);
  const auto run_range = [&](int64_t, int64_t begin, int64_t end) {
    NhwcRow row{.outside = outside.data(), .width = from.width, .window = window, .output_width = to.width};
    row.output_step = to.channels;
    for (int64_t item = begin; item < end; ++item) {
      const int64_t block = item % blocks, line = item / blocks, image = line / to.height;
      const int64_t channel = block * kNhwcChannels, y = line % to.height * window.stride_h - window.pad_top;
      row.channels = std::min(kNhwcChannels, to.channels - channel);
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

}  // namespace

bool AcceptsNhwcDepthwise(const Problem& problem) { return KeepsNhwc(problem); }

StatusOr<std::unique_ptr<PackedWeight>> PrepareNhwcDepthwise(const Weight& weight, const Problem& problem) {
  SWIZZLE_ASSIGN_OR_RETURN(const ByteWeight bytes, MakeByteWeight(weight, problem));
  return std::make_unique<NhwcTapWeight>(bytes, problem.window());
}

void NhwcDepthwise(const KernelArgs& args, Stream& stream) {
  const auto& weight = static_cast<const NhwcTapWeight&>(*args.weight);
  const OutputSteps steps = StepsOf(*args.problem);
  const auto fill = static_cast<uint8_t>(args.problem->inputs_as[0].zero_point);
  ForEachRow(args, stream, fill,
             [&](const NhwcRow& row, int64_t block) { DepthwiseRow(row, weight.Block(block), steps); });
}

bool AcceptsNhwcMaxPool(const Problem& problem) {
  return KeepsNhwc(problem) && problem.inputs_as[0] == *problem.epilogue.requantise;
}

void NhwcMaxPool(const KernelArgs& args, Stream& stream) {
  const OutputSteps steps = StepsOf(*args.problem);
  ForEachRow(args, stream, 0, [&](const NhwcRow& row, int64_t) { LargestRow(row, steps); });
}

}  // namespace swizzle::cpu

#include "kernels/cpu/conv/conv_stem.h"

#include <algorithm>
#include <vector>

#include "kernels/base/integers.h"
#include "kernels/cpu/elementwise/function.h"
#include "kernels/cpu/runtime/cpu_stream.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv/conv_stem.cc"
#include "hwy/foreach_target.h"
#include "kernels/cpu/conv/block_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {
namespace {

using stem::Bands;

static_assert(kPositionsOf<1> <= stem::kMostPositions);

using RowFunction = void (*)(const BlockRow&);
template <int kBlocks>
RowFunction RowOf(int64_t stride) {
  return stride == 1 ? RunRow<1, kBlocks, true> : stride == 2 ? RunRow<2, kBlocks, true> : RunRow<4, kBlocks, true>;
}

// Some output rows of one image.
class Band {
 public:
  Band(const KernelArgs& args, const Bands& bands, float* copy)
      : args_(args),
        problem_(*args.problem),
        weight_(static_cast<const BlockWeight&>(*args.weight)),
        bands_(bands),
        copy_(copy) {
    const Window& window = problem_.window();
    int64_t* tap = taps_;
    for (int64_t channel = 0; channel < problem_.input.channels; ++channel) {
      for (int64_t i = 0; i < window.kernel_h; ++i) {
        for (int64_t j = 0; j < window.kernel_w; ++j) {
          *tap++ = (channel * bands.rows + i * window.dilation_h) * bands.pitch + j * window.dilation_w;
        }
      }
    }
  }

  void Run(int64_t image, int64_t begin, int64_t end) {
    const Window& window = problem_.window();
    Copy(image, begin * window.stride_h - window.pad_top, Bands::RowsFor(problem_, end - begin));
    const int64_t blocks = CeilDiv(problem_.output.channels, kBlockChannels);
    for (int64_t block = 0; block < blocks;) {
      const bool pair = kMostBlocks > 1 && block + 1 < blocks;
      const RowFunction run = pair ? RowOf<kMostBlocks>(window.stride_w) : RowOf<1>(window.stride_w);
      for (int64_t y = begin; y < end; ++y) run(RowAt(image * blocks + block, y, y - begin));
      block += pair ? 2 : 1;
    }
  }

 private:
  BlockRow RowAt(int64_t block_of_batch, int64_t y, int64_t band_row) const {
    const Extent& output = problem_.output;
    const int64_t block = block_of_batch % CeilDiv(output.channels, kBlockChannels);
    const int64_t at = (block_of_batch * output.plane() + y * output.width) * kBlockChannels;
    const float* const residual = args_.Residual<float>();
    BlockRow row;
    row.input = copy_ + band_row * problem_.window().stride_h * bands_.pitch;
    row.taps = taps_;
    row.tap_count = weight_.taps;
    row.weights = weight_.values.data() + block * weight_.taps * kBlockChannels;
    row.bias = weight_.bias.data() + block * kBlockChannels;
    row.residual = residual == nullptr ? nullptr : residual + at;
    row.output = args_.Output<float>() + at;
    row.block_stride = output.plane() * kBlockChannels;
    row.width = output.width;
    row.epilogue = &problem_.epilogue;
    return row;
  }

  // Rows of all channels, the first of them input row `top`, which may lie above the plane.
  void Copy(int64_t image, int64_t top, int64_t rows) {
    const Extent& input = problem_.input;
    const int64_t left = std::min<int64_t>(problem_.window().pad_left, bands_.pitch);
    const int64_t width = std::min(input.width, bands_.pitch - left);
    for (int64_t channel = 0; channel < input.channels; ++channel) {
      const float* const plane = args_.Input<float>(0) + (image * input.channels + channel) * input.plane();
      for (int64_t i = 0; i < rows; ++i) {
        float* const to = copy_ + (channel * bands_.rows + i) * bands_.pitch;
        const int64_t y = top + i;
        if (y < 0 || y >= input.height) {
          std::fill_n(to, bands_.pitch, 0.0f);
          continue;
        }
        std::fill_n(to, left, 0.0f);
        std::copy_n(plane + y * input.width, width, to + left);
        std::fill_n(to + left + width, bands_.pitch - left - width, 0.0f);
      }
    }
  }

  const KernelArgs& args_;
  const Problem& problem_;
  const BlockWeight& weight_;
  const Bands& bands_;
  float* const copy_;
  int64_t taps_[stem::kMostChannels * stem::kMostTaps];
};

}  // namespace

void ConvStem(const KernelArgs& args, Stream& stream) {
  const Problem& problem = *args.problem;
  const Bands bands(problem);
  const int64_t height = problem.output.height;
  const auto run = [&](int64_t slot, int64_t begin, int64_t end) {
    Band band(args, bands, reinterpret_cast<float*>(args.workspace.data()) + slot * bands.floats(problem));
    while (begin < end) {
      const int64_t image = begin / height, row = begin % height;
      const int64_t rows = std::min({stem::kBandRows, height - row, end - begin});
      band.Run(image, row, row + rows);
      begin += rows;
    }
  };
  CpuStream::From(stream).ParallelRanges(problem.output.batch * height, run);
}

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace swizzle::cpu {

bool AcceptsConvStem(const Problem& problem) {
  const Window& window = problem.window();
  const bool has_stride = window.stride_w == 1 || window.stride_w == 2 || window.stride_w == 4;
  return EpilogueKeepsZero(problem) && problem.input.channels <= stem::kMostChannels &&
         window.taps() <= stem::kMostTaps && has_stride && stem::Bands(problem).floats(problem) <= stem::kMostCopied;
}

size_t ConvStemWorkspaceBytes(const Problem& problem) {
  const stem::Bands bands(problem);
  return static_cast<size_t>(bands.floats(problem)) * sizeof(float) * static_cast<size_t>(problem.threads);
}

}  // namespace swizzle::cpu
#endif  // HWY_ONCE

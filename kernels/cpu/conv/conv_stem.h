// Convolutions of images, fp32: rows conv_stem_dense_f32_<isa>, from kNchw with up to four channels to kBlocked16. The
// sixteen output channels of a block stand in vectors, and each input that a window reads is broadcast to them. Rows of
// the output are shared among threads, whatever the channels: of few, oneDNN's row has no parts for all threads in a
// single image.
#ifndef SWIZZLE_KERNELS_CPU_CONV_CONV_STEM_H_
#define SWIZZLE_KERNELS_CPU_CONV_CONV_STEM_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/backend/kernel_table.h"
#include "kernels/base/integers.h"
#include "kernels/cpu/conv/block_rows.h"
#include "kernels/cpu/runtime/targets.h"

namespace swizzle::cpu {
namespace stem {

constexpr int64_t kMostChannels = 4, kMostTaps = 64;  // of the input; of a window
constexpr int64_t kBandRows = 8;                      // of the output that share a copy of the input
constexpr int64_t kMostPositions = 16;                // that a target computes at once
constexpr int64_t kMostCopied = int64_t{1} << 20;     // floats of a copy: taps may lie far apart

// Copies of some rows of an image with zeros around, channel by channel, as one thread has them.
struct Bands {
  explicit Bands(const Problem& problem)
      : pitch(RoundUp((RoundUp(problem.output.width, kMostPositions) - 1) * problem.window().stride_w +
                          int64_t{problem.window().kernel_w - 1} * problem.window().dilation_w + 1,
                      16)),
        rows(RowsFor(problem, std::min(kBandRows, problem.output.height))) {}

  static int64_t RowsFor(const Problem& problem, int64_t output_rows) {
    const Window& window = problem.window();
    return (output_rows - 1) * window.stride_h + int64_t{window.kernel_h - 1} * window.dilation_h + 1;
  }
  int64_t floats(const Problem& problem) const { return problem.input.channels * rows * pitch; }

  int64_t pitch, rows;  // of a channel
};

}  // namespace stem

// Few channels, taps and strides, and copies that a cache holds. Their weights are prepared by PrepareBlockRows.
bool AcceptsConvStem(const Problem& problem);
size_t ConvStemWorkspaceBytes(const Problem& problem);

SWIZZLE_DECLARE_PER_TARGET(void ConvStem(const KernelArgs& args, Stream& stream);)

}  // namespace swizzle::cpu

#endif  // SWIZZLE_KERNELS_CPU_CONV_CONV_STEM_H_

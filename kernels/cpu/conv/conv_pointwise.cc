#include "kernels/cpu/conv/conv_pointwise.h"

#include <algorithm>

#include "kernels/base/integers.h"
#include "kernels/cpu/conv/block_rows.h"
#include "kernels/cpu/elementwise/function.h"
#include "kernels/cpu/layout/slab.h"
#include "kernels/cpu/runtime/cpu_stream.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv/conv_pointwise.cc"
#include "hwy/foreach_target.h"
#include "kernels/cpu/conv/block_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {
namespace {

constexpr int64_t kChunk = 128;  // positions, whose outputs of two blocks are a third of the first cache

// Positions [begin, end) of an image, all output channels.
void RunChunk(const KernelArgs& args, const int64_t* taps, int64_t image, int64_t begin, int64_t end) {
  const Problem& problem = *args.problem;
  const auto& weight = static_cast<const BlockWeight&>(*args.weight);
  const int64_t plane = problem.output.plane();
  const int64_t inputs = CeilDiv(problem.input.channels, kBlockChannels);
  const int64_t blocks = CeilDiv(problem.output.channels, kBlockChannels);
  const float* const residual = args.Residual<float>();
  BlockRow row;
  row.input = args.Input<float>(0) + (image * inputs * plane + begin) * kBlockChannels;
  row.taps = taps;
  row.tap_count = weight.taps;
  row.block_stride = plane * kBlockChannels;
  row.width = end - begin;
  row.epilogue = &problem.epilogue;
  for (int64_t block = 0; block < blocks;) {
    const int64_t at = ((image * blocks + block) * plane + begin) * kBlockChannels;
    row.weights = weight.values.data() + block * weight.taps * kBlockChannels;
    row.bias = weight.bias.data() + block * kBlockChannels;
    row.residual = residual == nullptr ? nullptr : residual + at;
    row.output = args.Output<float>() + at;
    const bool together = block + kMostBlocks <= blocks;
    together ? RunRow<kBlockChannels, kMostBlocks, false>(row) : RunRow<kBlockChannels, 1, false>(row);
    block += together ? kMostBlocks : 1;
  }
}

}  // namespace

void ConvPointwise(const KernelArgs& args, Stream& stream) {
  const Problem& problem = *args.problem;
  const int64_t plane = problem.output.plane(), chunks = CeilDiv(plane, kChunk);
  int64_t taps[kMostPointwiseInputs];
  for (int64_t channel = 0; channel < problem.input.channels; ++channel) {
    taps[channel] = channel / kBlockChannels * plane * kBlockChannels + channel % kBlockChannels;
  }
  CpuStream::From(stream).ParallelRanges(problem.output.batch * chunks, [&](int64_t, int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t begin = i % chunks * kChunk;
      RunChunk(args, taps, i / chunks, begin, std::min(begin + kChunk, plane));
    }
  });
}

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace swizzle::cpu {

bool AcceptsConvPointwise(const Problem& problem) {
  return problem.window().IsPointwise() && problem.input.channels <= kMostPointwiseInputs && EpilogueKeepsZero(problem);
}

}  // namespace swizzle::cpu
#endif  // HWY_ONCE

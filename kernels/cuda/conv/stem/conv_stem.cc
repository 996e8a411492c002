#include "kernels/cuda/conv/stem/conv_stem.h"

#include <limits>
#include <utility>
#include <vector>

#include "kernels/base/half_bits.h"
#include "kernels/cuda/runtime/device_array.h"
#include "kernels/cuda/runtime/queue.h"

namespace swizzle::cuda {
namespace {

using W = StemWeight;

class PackedStem final : public PackedWeight {
 public:
  PackedStem(DeviceArray<uint32_t> words, DeviceArray<float> bias) : words_(std::move(words)), bias_(std::move(bias)) {}
  size_t bytes() const override { return words_.bytes() + bias_.bytes(); }
  StemWeight view() const { return {words_.data(), bias_.data()}; }

 private:
  const DeviceArray<uint32_t> words_;
  const DeviceArray<float> bias_;
};

// Tap `at` of a line of a window, 0 where there is none.
float TapOf(const DenseMatrix& matrix, int64_t channel, int line, int at) {
  if (line >= W::kLines || at >= W::kKernel) return 0;
  return matrix.values[channel * matrix.cols + line * W::kKernel + at];
}

}  // namespace

bool AcceptsConvStem(const Problem& problem) {
  const Window& w = problem.window();
  const Extent &in = problem.input, &out = problem.output;
  const bool window = w.kernel_h == W::kKernel && w.kernel_w == W::kKernel && w.stride_h == 2 && w.stride_w == 2 &&
                      w.dilation_h == 1 && w.dilation_w == 1 && w.pad_top == 3 && w.pad_left == 3;
  return window && in.channels == W::kInputs && out.channels == W::kChannels && !problem.epilogue.residual &&
         !problem.epilogue.function && LayoutElements(in, Layout::kNchw) <= std::numeric_limits<int32_t>::max() &&
         LayoutElements(out, Layout::kRows) <= std::numeric_limits<int32_t>::max();
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareConvStem(const Weight& weight, const Problem& problem) {
  const DenseMatrix matrix = weight.ToDense();
  const auto bits = [&](float value) { return uint32_t{HalfBits(value, problem.to.dtype)}; };
  std::vector<uint32_t> words;
  for (int product = 0; product < W::kProducts; ++product) {
    for (int tile = 0; tile < W::kChannels / 16; ++tile) {
      for (int lane = 0; lane < 32; ++lane) {
        for (int word = 0; word < 4; ++word) {
          const int64_t channel = tile * 16 + word % 2 * 8 + lane / 4;
          const int line = 2 * product + word / 2, at = lane % 4 * 2;
          words.push_back(bits(TapOf(matrix, channel, line, at)) | bits(TapOf(matrix, channel, line, at + 1)) << 16);
        }
      }
    }
  }
  std::vector<float> bias = weight.bias;
  bias.resize(W::kChannels);
  SWIZZLE_ASSIGN_OR_RETURN(auto device_words, DeviceArray<uint32_t>::Upload(words));
  SWIZZLE_ASSIGN_OR_RETURN(auto device_bias, DeviceArray<float>::Upload(bias));
  return std::make_unique<PackedStem>(std::move(device_words), std::move(device_bias));
}

void RunConvStem(const KernelArgs& args, Stream& stream) {
  QueueConvStem(args, static_cast<const PackedStem&>(*args.weight).view(), MultiprocessorsOf(stream), QueueOf(stream));
}

}  // namespace swizzle::cuda

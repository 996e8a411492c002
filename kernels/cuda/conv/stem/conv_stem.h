// The first layer of a ResNet with its max pooling, on tensor cores in half precision: 64 windows of 7x7, 2 apart, over
// three channels of images as requests bring them, then the largest of 3x3 neighbours, 2 apart. What lies between the
// two, which is larger than all else in the network, is never in memory: a row's output is `pooled` (base/storage.h).
//
// A block stages the lines of an image that a few rows of the result need, as halves. The seven taps of a window's line
// and one of weight zero are eight neighbours there, so that the operand of a product is what its lanes load as words:
// nothing is unfolded. A warp makes 32 channels of 112 columns of one line after the other, and keeps of the line
// before what pooling needs, in registers. Lines between the parts of two warps are made twice.
//
// An infinite element of an image makes a window NaN that ends just before it.
#ifndef SWIZZLE_KERNELS_CUDA_CONV_STEM_CONV_STEM_H_
#define SWIZZLE_KERNELS_CUDA_CONV_STEM_CONV_STEM_H_

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>

#include "kernels/backend/kernel_table.h"

namespace swizzle::cuda {

// Row functions: images in kNchw, FP32 or UINT8; FP16 and BF16 in kRows or kNhwc.
bool AcceptsConvStem(const Problem& problem);
StatusOr<std::unique_ptr<PackedWeight>> PrepareConvStem(const Weight& weight, const Problem& problem);
void RunConvStem(const KernelArgs& args, Stream& stream);

// What is below is for the launch function.

// Weights as a kernel's lanes take them: by product of depth 16, 16 channels, lane and word. Device memory.
struct StemWeight {
  static constexpr int kChannels = 64, kInputs = 3, kKernel = 7, kLineTaps = 8;
  static constexpr int kLines = kInputs * kKernel;    // of a window
  static constexpr int kProducts = (kLines + 1) / 2;  // of two lines each
  static constexpr int kWords = kProducts * kChannels / 16 * 32 * 4;
  const uint32_t* words = nullptr;
  const float* bias = nullptr;
};

void QueueConvStem(const KernelArgs& args, const StemWeight& weight, int multiprocessors, cudaStream_t queue);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_CONV_STEM_CONV_STEM_H_

// Dense convolution through cuDNN, kNhwc, any window that pads evenly, in any element type; fp32 in full precision,
// never TF32. Bias, residual and ReLU are cuDNN's too; other clamps, and functions, are one more pass. It takes whole
// activations; where a function ends it, that pass writes some of the channels of a wider one.
#ifndef SWIZZLE_KERNELS_CUDA_CONV_DENSE_CONV_DENSE_CUDNN_H_
#define SWIZZLE_KERNELS_CUDA_CONV_DENSE_CONV_DENSE_CUDNN_H_

#include <memory>

#include "kernels/backend/kernel_table.h"

namespace swizzle::cuda {

// cuDNN pads by as much at the end as at the start; less at the end is the same where no window reaches that far.
bool AcceptsConvCudnn(const Problem& problem);
StatusOr<std::unique_ptr<PackedWeight>> PrepareConvCudnn(const Weight& weight, const Problem& problem);
bool ConvCudnnWritesPitched(const Problem& problem);
size_t ConvCudnnWorkspaceBytes(const Problem& problem);
void ConvCudnn(const KernelArgs& args, Stream& stream);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_CONV_DENSE_CONV_DENSE_CUDNN_H_

// Layout conversions on a GPU, fp32: a transpose for each plane or matrix, in tiles through shared memory.
#ifndef SWIZZLE_KERNELS_CUDA_CONVERT_H_
#define SWIZZLE_KERNELS_CUDA_CONVERT_H_

#include "kernels/kernel_table.h"

namespace swizzle::cuda {

void ConvertNchwToRows(const KernelArgs& args, Stream& stream);
void ConvertRowsToNchw(const KernelArgs& args, Stream& stream);
void ConvertNchwToNhwc(const KernelArgs& args, Stream& stream);
void ConvertNhwcToNchw(const KernelArgs& args, Stream& stream);
void ConvertRowsToNhwc(const KernelArgs& args, Stream& stream);
void ConvertNhwcToRows(const KernelArgs& args, Stream& stream);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_CONVERT_H_

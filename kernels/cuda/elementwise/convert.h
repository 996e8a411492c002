// Layout conversions on a GPU: a transpose for each plane or matrix, in tiles through shared memory, or a copy of
// lines; to kBatched by pack_images.cuh. kNchw is fp32, or bytes where the rest is, the other layouts hold elements of
// kDType: what crosses over is rounded. Bytes are what the operand's scale and zero point say (base/quantised.h): rows
// quantise_, dequantise_ and move_.
#ifndef SWIZZLE_KERNELS_CUDA_ELEMENTWISE_CONVERT_H_
#define SWIZZLE_KERNELS_CUDA_ELEMENTWISE_CONVERT_H_

#include "kernels/backend/kernel_args.h"

namespace swizzle::cuda {

template <DType kDType, DType kEdge = DType::kFloat32>
void ConvertNchwToRows(const KernelArgs& args, Stream& stream);
template <DType kDType, DType kEdge = DType::kFloat32>
void ConvertRowsToNchw(const KernelArgs& args, Stream& stream);
template <DType kDType, DType kEdge = DType::kFloat32>
void ConvertNchwToNhwc(const KernelArgs& args, Stream& stream);
template <DType kDType, DType kEdge = DType::kFloat32>
void ConvertNhwcToNchw(const KernelArgs& args, Stream& stream);
template <DType kDType>
void ConvertRowsToNhwc(const KernelArgs& args, Stream& stream);
template <DType kDType>
void ConvertNhwcToRows(const KernelArgs& args, Stream& stream);

// Of half types.
template <DType kDType>
void ConvertNchwToBatched(const KernelArgs& args, Stream& stream);
template <DType kDType>
void ConvertRowsToBatched(const KernelArgs& args, Stream& stream);
template <DType kDType>
void ConvertBatchedToRows(const KernelArgs& args, Stream& stream);

// Between FP32 and a half type, or bytes and a real type, in either layout that has both.
template <Layout kFromLayout, DType kFrom, Layout kToLayout, DType kTo>
void ConvertTypes(const KernelArgs& args, Stream& stream);

// kTranspose in kNchw, fp32.
void TransposeNchw(const KernelArgs& args, Stream& stream);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_ELEMENTWISE_CONVERT_H_

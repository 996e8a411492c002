// Depthwise convolution on a GPU, fused with bias, residual and clamp: rows depthwise_rows_dense_,
// depthwise_nhwc_dense_ and depthwise_batched_dense_.
//
// A window of 3x3 without dilation has a kernel of its own: a thread makes several output rows of one column (kRows) or
// of one pack of channels (kNhwc) and reads each input row once for all of them, so that rows that windows share are
// read from near memory. In kRows it makes several columns as well where lines start on packs; in kBatched, in half
// precision, a thread has a pack of images, and reads the weights that are prepared for kRows. Other windows take one
// thread an output. Weights stay in fp32.
#ifndef SWIZZLE_KERNELS_CUDA_WINDOW_DEPTHWISE_H_
#define SWIZZLE_KERNELS_CUDA_WINDOW_DEPTHWISE_H_

#include <memory>

#include "kernels/backend/kernel_table.h"

namespace swizzle::cuda {

bool AcceptsDepthwise(const Problem& problem);  // fewer than about 2^31 elements, no function
bool TakesPitchedDepthwise(const Problem& problem);
template <Layout kLayout>
StatusOr<std::unique_ptr<PackedWeight>> PrepareDepthwise(const Weight& weight, const Problem& problem);
template <Layout kLayout, DType kDType>
void Depthwise(const KernelArgs& args, Stream& stream);

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_WINDOW_DEPTHWISE_H_

#include "kernels/base/check.h"
#include "kernels/cuda/conv/shfl_bw/conv_shfl_bw_launch.cuh"

namespace swizzle::cuda {

template <int kWidth>
void QueuePairs(const GroupOperands& operands, int multiprocessors, cudaStream_t queue) {
  SWIZZLE_CHECK(2 * operands.weight->pair_count() == operands.weight->count());
  if (operands.weight->count() == 0 || operands.columns == 0) return;
  shfl_bw::QueueOfType<kWidth, 2>(operands, multiprocessors, queue);
}

template void QueuePairs<64>(const GroupOperands&, int, cudaStream_t);
template void QueuePairs<128>(const GroupOperands&, int, cudaStream_t);
template void QueuePairs<192>(const GroupOperands&, int, cudaStream_t);
template void QueuePairs<256>(const GroupOperands&, int, cudaStream_t);

}  // namespace swizzle::cuda

#include "kernels/cuda/conv/shfl_bw/conv_shfl_bw_launch.cuh"

namespace swizzle::cuda {

template <int kWidth>
void QueueGroups(const GroupOperands& operands, int multiprocessors, cudaStream_t queue) {
  if (operands.weight->count() == 0 || operands.columns == 0) return;
  shfl_bw::QueueOfType<kWidth, 1>(operands, multiprocessors, queue);
}

template void QueueGroups<64>(const GroupOperands&, int, cudaStream_t);
template void QueueGroups<128>(const GroupOperands&, int, cudaStream_t);
template void QueueGroups<192>(const GroupOperands&, int, cudaStream_t);
template void QueueGroups<256>(const GroupOperands&, int, cudaStream_t);

}  // namespace swizzle::cuda

#include "kernels/cuda/conv/conv_shfl_bw_gather.cuh"

namespace swizzle::cuda {
namespace shfl_bw {
namespace {

template <typename T, int kWidth, typename Function>
__global__ __launch_bounds__(kThreads, 2) void MultiplyGroups(const __grid_constant__ Args args,
                                                              const __grid_constant__ Ending<Function> ending) {
  RunRoles<T, kWidth, RowColumns<kWidth>>(args, ending);
}

template <typename T, int kWidth>
void Queue(const GroupOperands& operands, int multiprocessors, cudaStream_t queue) {
  using Shared = typename Shape<kWidth>::Shared;
  Args args = ArgsOf(operands, kWidth);
  args.alpha = operands.alpha, args.beta = operands.beta;
  const LaunchGrid grid(std::min<int64_t>(args.tiles, 2 * multiprocessors));
  WithTileEnding(operands.epilogue, [&]<typename Function>(const Ending<Function>& ending) {
    auto* const kernel = MultiplyGroups<T, kWidth, Function>;
    AllowSharedMemory(kernel, sizeof(Shared));
    LaunchDependent(kernel, grid, kThreads, sizeof(Shared), queue, args, ending);
  });
}

}  // namespace
}  // namespace shfl_bw

template <int kWidth>
void QueueGroups(const GroupOperands& operands, int multiprocessors, cudaStream_t queue) {
  if (operands.weight->count() == 0 || operands.columns == 0) return;
  if (operands.dtype == DType::kFloat16) return shfl_bw::Queue<__half, kWidth>(operands, multiprocessors, queue);
  shfl_bw::Queue<__nv_bfloat16, kWidth>(operands, multiprocessors, queue);
}

template void QueueGroups<64>(const GroupOperands&, int, cudaStream_t);
template void QueueGroups<128>(const GroupOperands&, int, cudaStream_t);
template void QueueGroups<192>(const GroupOperands&, int, cudaStream_t);
template void QueueGroups<256>(const GroupOperands&, int, cudaStream_t);

}  // namespace swizzle::cuda

// The kernel of conv_shfl_bw.h's launch functions. Device code.
#ifndef SWIZZLE_KERNELS_CUDA_CONV_SHFL_BW_CONV_SHFL_BW_LAUNCH_CUH_
#define SWIZZLE_KERNELS_CUDA_CONV_SHFL_BW_CONV_SHFL_BW_LAUNCH_CUH_

#include "kernels/cuda/conv/shfl_bw/conv_shfl_bw_gather.cuh"

namespace swizzle::cuda::shfl_bw {

template <typename T, int kWidth, int kGroups, typename Function>
__global__ __launch_bounds__(Shape<kWidth, kGroups>::kThreads, Shape<kWidth, kGroups>::kCtas) void MultiplyGroups(
    const __grid_constant__ Args args, const __grid_constant__ Ending<Function> ending) {
  RunRoles<T, kWidth, RowColumns<kWidth>, kGroups>(args, ending);
}

template <typename T, int kWidth, int kGroups>
void Queue(const GroupOperands& operands, int multiprocessors, cudaStream_t queue) {
  using S = Shape<kWidth, kGroups>;
  Args args = ArgsOf(operands, kWidth);
  args.alpha = operands.alpha, args.beta = operands.beta;
  if (kGroups == 2) {
    args.groups = operands.weight->pairs();
    args.group_count /= 2, args.tiles /= 2;
  }
  const LaunchGrid grid(std::min<int64_t>(args.tiles, S::kCtas * multiprocessors));
  WithTileEnding(operands.epilogue, [&]<typename Function>(const Ending<Function>& ending) {
    auto* const kernel = MultiplyGroups<T, kWidth, kGroups, Function>;
    AllowSharedMemory(kernel, sizeof(typename S::Shared));
    LaunchDependent(kernel, grid, S::kThreads, sizeof(typename S::Shared), queue, args, ending);
  });
}

template <int kWidth, int kGroups>
void QueueOfType(const GroupOperands& operands, int multiprocessors, cudaStream_t queue) {
  VisitHalf(operands.dtype,
            [&]<DType kHalf>() { Queue<Element<kHalf>, kWidth, kGroups>(operands, multiprocessors, queue); });
}

}  // namespace swizzle::cuda::shfl_bw

#endif  // SWIZZLE_KERNELS_CUDA_CONV_SHFL_BW_CONV_SHFL_BW_LAUNCH_CUH_

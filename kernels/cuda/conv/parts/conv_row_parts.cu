#include "kernels/cuda/conv/parts/conv_row_parts.h"
#include "kernels/cuda/conv/shfl_bw/conv_shfl_bw_gather.cuh"

namespace swizzle::cuda {
namespace shfl_bw {
namespace {

template <int kWidth, typename Function>
__global__ __launch_bounds__(kThreads, 2) void MultiplyParts(const __grid_constant__ PartArgs args,
                                                             const __grid_constant__ Ending<Function> ending) {
  RunRoles<__half, kWidth, RowColumns<kWidth>>(args, ending);
}

}  // namespace
}  // namespace shfl_bw

template <int kWidth>
void QueueParts(const PartOperands& operands, int multiprocessors, cudaStream_t queue) {
  using Shared = typename shfl_bw::Shape<kWidth>::Shared;
  const RowGroups& weight = *operands.weight;
  if (weight.count() == 0 || operands.columns == 0) return;
  const GroupOperands halves = {.weight = &weight,
                                .dtype = DType::kFloat16,
                                .x = operands.x.halves,
                                .residual = nullptr,
                                .y = operands.y,
                                .stride = operands.stride,
                                .columns = operands.columns,
                                .epilogue = operands.epilogue};
  const shfl_bw::PartArgs args = {shfl_bw::ArgsOf(halves, kWidth), weight.inverses(), operands.x.inverses,
                                  operands.residual};
  const LaunchGrid grid(std::min<int64_t>(args.tiles, 2 * multiprocessors));
  WithTileEnding(operands.epilogue, [&]<typename Function>(const Ending<Function>& ending) {
    auto* const kernel = shfl_bw::MultiplyParts<kWidth, Function>;
    AllowSharedMemory(kernel, sizeof(Shared));
    LaunchDependent(kernel, grid, shfl_bw::kThreads, sizeof(Shared), queue, args, ending);
  });
}

template void QueueParts<64>(const PartOperands&, int, cudaStream_t);
template void QueueParts<128>(const PartOperands&, int, cudaStream_t);
template void QueueParts<256>(const PartOperands&, int, cudaStream_t);

}  // namespace swizzle::cuda

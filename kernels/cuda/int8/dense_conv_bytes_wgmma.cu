#include "kernels/cuda/int8/dense_conv_bytes.h"
#include "kernels/cuda/int8/dense_conv_bytes_wgmma.cuh"

namespace swizzle::cuda {

template <typename Shape>
void RunDenseConvBytesWgmma(const KernelArgs& args, Stream& stream) {
  const DenseConvArgs conv = DenseConvArgsOf(args, stream);
  WithStore(DenseConvEndsOf(args), args.output.data,
            [&](const auto& store) { byte_wgmma::QueueTiles<Shape>(conv, store, QueueOf(stream)); });
}

template void RunDenseConvBytesWgmma<ByteTile128x128>(const KernelArgs&, Stream&);
template void RunDenseConvBytesWgmma<ByteTile128x64>(const KernelArgs&, Stream&);
template void RunDenseConvBytesWgmma<ByteTile64x64>(const KernelArgs&, Stream&);
template void RunDenseConvBytesWgmma<ByteTileShort>(const KernelArgs&, Stream&);
template void RunDenseConvBytesWgmma<ByteTileSplit>(const KernelArgs&, Stream&);

}  // namespace swizzle::cuda

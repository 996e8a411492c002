#include "kernels/cuda/conv/parts/conv_csr_parts.h"

#include "kernels/cuda/conv/csr/conv_csr_wgmma.h"
#include "kernels/cuda/runtime/queue.h"

namespace swizzle::cuda {

template <int kWidth>
void RunConvCsrParts(const KernelArgs& args, Stream& stream) {
  QueueCsrParts<kWidth>(SplitOperands(FragmentCsrOf(*args.weight), args, stream), MultiprocessorsOf(stream),
                        QueueOf(stream));
}

template void RunConvCsrParts<64>(const KernelArgs&, Stream&);
template void RunConvCsrParts<128>(const KernelArgs&, Stream&);
template void RunConvCsrParts<192>(const KernelArgs&, Stream&);

}  // namespace swizzle::cuda

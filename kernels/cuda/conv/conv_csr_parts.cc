#include "kernels/cuda/conv/conv_csr_parts.h"

#include "kernels/cuda/conv/conv_csr_wgmma.h"
#include "kernels/cuda/conv/conv_row_parts.h"
#include "kernels/cuda/runtime/queue.h"

namespace swizzle::cuda {

template <int kWidth>
void RunConvCsrParts(const KernelArgs& args, Stream& stream) {
  const Problem& problem = *args.problem;
  const CsrPartOperands operands = {
      .weight = &FragmentCsrOf(*args.weight),
      .x = SplitAllColumns(args, stream),
      .residual = args.Residual<float>(),
      .y = args.Output<float>(),
      .stride = RowStride(problem.output.positions()),
      .columns = problem.output.positions(),
      .epilogue = problem.epilogue,
  };
  QueueCsrParts<kWidth>(operands, MultiprocessorsOf(stream), QueueOf(stream));
}

template void RunConvCsrParts<64>(const KernelArgs&, Stream&);
template void RunConvCsrParts<128>(const KernelArgs&, Stream&);
template void RunConvCsrParts<192>(const KernelArgs&, Stream&);

}  // namespace swizzle::cuda

#include "kernels/cpu/int8/elementwise_bytes.h"

#include "kernels/cpu/runtime/cpu_stream.h"

namespace swizzle::cpu {

bool AcceptsElementwiseBytes(const Problem& problem) {
  const bool binary = InputCount(problem) == 2;
  return ReadsBytes(problem, Layout::kFullPanels) && WritesBytes(problem, Layout::kFullPanels) &&
         (!binary || problem.inputs_as[1].dtype == DType::kUint8) && !problem.epilogue.function &&
         !problem.epilogue.residual;
}

template <const ByteCells& kCells>
void AddBytes(const KernelArgs& args, Stream& stream) {
  const Problem& problem = *args.problem;
  const Quantised &a = problem.inputs_as[0], &output = *problem.epilogue.requantise;
  const Quantised b = args.inputs.size() > 1 ? problem.inputs_as[1] : Quantised{};
  SumSteps steps{.output = StepsOf(problem)};
  const auto a_zero = static_cast<float>(a.zero_point), b_zero = static_cast<float>(b.zero_point);
  steps.a_scale = a.scale / output.scale;
  if (args.inputs.size() > 1) steps.b_scale = b.scale / output.scale;
  steps.offset = static_cast<float>(output.zero_point) - (steps.a_scale * a_zero + steps.b_scale * b_zero);
  const auto* const x = args.Input<uint8_t>(0);
  const auto* const y = args.inputs.size() > 1 ? args.Input<uint8_t>(1) : nullptr;
  auto* const to = args.Output<uint8_t>();
  const auto add = [&](int64_t, int64_t begin, int64_t end) {
    kCells.add(x + begin, y == nullptr ? nullptr : y + begin, end - begin, steps, to + begin);
  };
  CpuStream::From(stream).ParallelRanges(LayoutElements(problem.output, problem.to.layout), add, int64_t{4} << 10);
}

template void AddBytes<vnni::kByteCells>(const KernelArgs&, Stream&);
template void AddBytes<N_AVX3::kByteCells>(const KernelArgs&, Stream&);
template void AddBytes<N_AVX2::kByteCells>(const KernelArgs&, Stream&);
template void AddBytes<N_EMU128::kByteCells>(const KernelArgs&, Stream&);

}  // namespace swizzle::cpu

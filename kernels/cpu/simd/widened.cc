#include "kernels/cpu/simd/widened.h"

#include <array>

#include "kernels/cpu/runtime/cpu_stream.h"

namespace swizzle::cpu {
namespace {

int64_t InputElements(const Problem& problem, int input) {
  return LayoutElements(InputExtent(problem, input), Layout::kPanels);
}

// Calls convert(first, count) over all elements, in parallel.
template <typename Convert>
void ForAll(Stream& stream, int64_t elements, const Convert& convert) {
  CpuStream::From(stream).ParallelRanges(elements / kPositionUnit, [&](int64_t, int64_t first, int64_t last) {
    convert(first * kPositionUnit, (last - first) * kPositionUnit);
  });
}

}  // namespace

size_t WidenedBytes(const Problem& problem) {
  int64_t elements = LayoutElements(problem.output, Layout::kPanels);
  for (int i = 0; i < InputCount(problem); ++i) elements += InputElements(problem, i);
  return static_cast<size_t>(elements) * sizeof(float);
}

void RunWidened(const KernelArgs& args, Stream& stream, void (*run)(const KernelArgs&, Stream&)) {
  Problem problem = *args.problem;
  problem.from.dtype = problem.to.dtype = DType::kFloat32;
  auto* next = reinterpret_cast<float*>(args.workspace.data());
  std::array<Operand, kMaxKernelInputs> inputs;
  const int count = InputCount(problem);
  for (int i = 0; i < count; ++i) {
    const int64_t elements = InputElements(problem, i);
    const auto* from = args.Input<Bfloat16>(i);
    ForAll(stream, elements, [&](int64_t first, int64_t some) { Widen(from + first, some, next + first); });
    inputs[i] = {next, DType::kFloat32};
    next += elements;
  }
  KernelArgs widened = args;
  widened.problem = &problem;
  widened.inputs = std::span(inputs).first(count);
  widened.output = {next, DType::kFloat32};
  widened.workspace = args.workspace.subspan(WidenedBytes(problem));
  run(widened, stream);
  auto* to = args.Output<Bfloat16>();
  ForAll(stream, LayoutElements(problem.output, Layout::kPanels),
         [&](int64_t first, int64_t some) { Round(next + first, some, to + first); });
}

}  // namespace swizzle::cpu

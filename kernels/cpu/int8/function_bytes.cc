#include "kernels/cpu/int8/function_bytes.h"

#include <algorithm>
#include <cmath>

#include "kernels/base/layout.h"
#include "kernels/cpu/elementwise/function.h"
#include "kernels/cpu/runtime/cpu_stream.h"
#include "kernels/whole_numbers/steps.h"

namespace swizzle::cpu {
namespace {

// What each byte of the input becomes.
struct ByteTable {
  explicit ByteTable(const Problem& problem) {
    const Quantised &input = problem.inputs_as[0], &output = *problem.epilogue.requantise;
    float reals[kByteValues];
    for (int i = 0; i < kByteValues; ++i) reals[i] = static_cast<float>(i - input.zero_point) * input.scale;
    ApplyFunction(problem.function(), reals, kByteValues);
    const OutputSteps steps = StepsOf(problem);
    for (int i = 0; i < kByteValues; ++i) {
      const float step = std::clamp(std::nearbyint(reals[i] / output.scale), -1024.0f, 1024.0f);
      of[i] = static_cast<uint8_t>(std::clamp(static_cast<int32_t>(step) + steps.zero_point, steps.low, steps.high));
    }
  }

  alignas(kBufferAlignment) uint8_t of[kByteValues];
};

void LookUpSingly(const uint8_t* table, const uint8_t* from, int64_t count, uint8_t* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = table[from[i]];
}

void RunTable(const KernelArgs& args, Stream& stream, decltype(&LookUpBytes) look_up) {
  const Problem& problem = *args.problem;
  const ByteTable table(problem);
  const auto* const from = args.Input<uint8_t>(0);
  auto* const to = args.Output<uint8_t>();
  const auto run = [&](int64_t, int64_t begin, int64_t end) {
    look_up(table.of, from + begin, end - begin, to + begin);
  };
  CpuStream::From(stream).ParallelRanges(LayoutElements(problem.output, problem.to.layout), run, int64_t{4} << 10);
}

}  // namespace

bool AcceptsFunctionBytes(const Problem& problem) {
  return ReadsBytes(problem, problem.from.layout) && WritesBytes(problem, problem.to.layout) &&
         !problem.epilogue.function && !problem.epilogue.residual;
}

void FunctionBytes(const KernelArgs& args, Stream& stream) { RunTable(args, stream, LookUpSingly); }
void FunctionBytesVbmi(const KernelArgs& args, Stream& stream) { RunTable(args, stream, LookUpBytes); }

}  // namespace swizzle::cpu

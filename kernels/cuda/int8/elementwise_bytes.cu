#include "kernels/cuda/int8/elementwise_bytes.h"
#include "kernels/cuda/runtime/dependent_launch.cuh"
#include "kernels/cuda/runtime/elements.cuh"
#include "kernels/whole_numbers/steps.h"

namespace swizzle::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kPack = 16;

struct SumSteps {
  float a_scale, b_scale, offset;
  int32_t low, high;

  __device__ uint8_t operator()(uint8_t a, uint8_t b, bool binary) const {
    float value = offset;
    if (binary) value = fmaf(static_cast<float>(b), b_scale, value);
    value = fmaf(static_cast<float>(a), a_scale, value);
    return static_cast<uint8_t>(min(max(__float2int_rn(value), low), high));
  }
};

// b may be null. The last count % kPack elements go one by one.
__global__ void __launch_bounds__(kThreads)
    AddAll(const uint8_t* a, const uint8_t* b, uint8_t* output, int64_t count, SumSteps steps) {
  LetNextStart();
  WaitForResults();
  using Bytes = Pack<uint8_t, kPack>;
  const bool binary = b != nullptr;
  const int64_t step = int64_t{gridDim.x} * kThreads, first = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  for (int64_t i = first; i < count / kPack; i += step) {
    Bytes x = reinterpret_cast<const Bytes*>(a)[i], y = {};
    if (binary) y = reinterpret_cast<const Bytes*>(b)[i];
#pragma unroll
    for (int j = 0; j < kPack; ++j) x.values[j] = steps(x.values[j], y.values[j], binary);
    reinterpret_cast<Bytes*>(output)[i] = x;
  }
  const int64_t last = count / kPack * kPack + first;
  if (last < count) output[last] = steps(a[last], binary ? b[last] : 0, binary);
}

}  // namespace

bool AcceptsElementwiseBytes(const Problem& problem) {
  const Layout layout = problem.to.layout;
  return ReadsBytes(problem, layout) && WritesBytes(problem, layout) && !problem.epilogue.function &&
         !problem.epilogue.residual && (InputCount(problem) == 1 || problem.inputs_as[1].dtype == DType::kUint8);
}

void AddBytes(const KernelArgs& args, Stream& stream) {
  const Problem& problem = *args.problem;
  const bool binary = InputCount(problem) == 2;
  const Quantised &a = problem.inputs_as[0], &output = *problem.epilogue.requantise;
  const OutputSteps held = StepsOf(problem);
  SumSteps steps = {a.scale / output.scale, 0, 0, held.low, held.high};
  float zeros = steps.a_scale * static_cast<float>(a.zero_point);
  if (binary) {
    const Quantised& b = problem.inputs_as[1];
    steps.b_scale = b.scale / output.scale;
    zeros += steps.b_scale * static_cast<float>(b.zero_point);
  }
  steps.offset = static_cast<float>(output.zero_point) - zeros;
  const int64_t count = LayoutElements(problem.output, problem.to.layout);
  const auto grid = LaunchGrid::OfLoops(CeilDiv(count, kPack), kThreads, MultiprocessorsOf(stream));
  LaunchDependent(AddAll, grid, kThreads, 0, QueueOf(stream), args.Input<uint8_t>(0),
                  binary ? args.Input<uint8_t>(1) : nullptr, args.Output<uint8_t>(), count, steps);
}

}  // namespace swizzle::cuda

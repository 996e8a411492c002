#include "kernels/cpu/function_f32.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/function_f32.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "hwy/contrib/math/math-inl.h"
#include "kernels/cpu/cpu_stream.h"
#include "kernels/cpu/elementwise_f32.h"
#include "kernels/cpu/partial_vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {
namespace {

// The function, its numbers spread over vectors; made once a task.
struct FunctionVectors {
  explicit FunctionVectors(const Problem& problem)
      : alpha(hn::Set(FloatTag(), problem.function.alpha)),
        beta(hn::Set(FloatTag(), problem.function.beta)),
        low(hn::Set(FloatTag(), problem.epilogue.low)),
        high(hn::Set(FloatTag(), problem.epilogue.high)) {}

  FloatVector alpha, beta, low, high;
};

// Below -87 the exponential would leave FP32's range; the result is 0 to 38 places there.
HWY_INLINE FloatVector Sigmoid(FloatVector x) {
  const FloatTag d;
  const FloatVector one = hn::Set(d, 1.0f);
  return hn::Div(one, hn::Add(one, hn::Exp(d, hn::Neg(hn::Max(x, hn::Set(d, -87.0f))))));
}

HWY_INLINE FloatVector HardSigmoid(FloatVector x, const FunctionVectors& v) {
  const FloatTag d;
  return Clamp(hn::MulAdd(v.alpha, x, v.beta), hn::Zero(d), hn::Set(d, 1.0f));
}

template <FunctionKind kKind>
HWY_INLINE FloatVector Apply(FloatVector x, const FunctionVectors& v) {
  if constexpr (kKind == FunctionKind::kSigmoid) return Sigmoid(x);
  if constexpr (kKind == FunctionKind::kSilu) return hn::Mul(x, Sigmoid(x));
  if constexpr (kKind == FunctionKind::kHardSigmoid) return HardSigmoid(x, v);
  if constexpr (kKind == FunctionKind::kHardSwish) return hn::Mul(x, HardSigmoid(x, v));
  return hn::IfThenElse(hn::Lt(x, hn::Zero(FloatTag())), hn::Mul(v.alpha, x), x);
}

template <FunctionKind kKind>
void RunKind(const KernelArgs& args, Stream& stream, Layout layout) {
  const Problem& problem = *args.problem;
  const int64_t elements = LayoutElements(problem.output, layout);
  const float* input = args.inputs[0];
  float* output = args.output;
  const auto run_vectors = [=, &problem](int64_t, int64_t begin, int64_t end) HWY_ATTR {
    const FloatTag d;
    const FunctionVectors vectors(problem);
    const int64_t whole = std::min(end * kLanes, elements / kLanes * kLanes);
    for (int64_t i = begin * kLanes; i < whole; i += kLanes) {
      hn::Store(Clamp(Apply<kKind>(hn::Load(d, input + i), vectors), vectors.low, vectors.high), d, output + i);
    }
    const int64_t rest = std::min(end * kLanes, elements) - whole;
    if (rest == 0) return;
    const FloatVector last = Apply<kKind>(LoadFirst(d, input + whole, rest, hn::Zero(d)), vectors);
    StoreFirst(Clamp(last, vectors.low, vectors.high), d, output + whole, rest);
  };
  CpuStream::From(stream).ParallelRanges((elements + kLanes - 1) / kLanes, run_vectors);
}

void RunFunction(const KernelArgs& args, Stream& stream, Layout layout) {
  switch (args.problem->function.kind) {
    case FunctionKind::kSigmoid: return RunKind<FunctionKind::kSigmoid>(args, stream, layout);
    case FunctionKind::kSilu: return RunKind<FunctionKind::kSilu>(args, stream, layout);
    case FunctionKind::kHardSigmoid: return RunKind<FunctionKind::kHardSigmoid>(args, stream, layout);
    case FunctionKind::kHardSwish: return RunKind<FunctionKind::kHardSwish>(args, stream, layout);
    case FunctionKind::kLeakyRelu: return RunKind<FunctionKind::kLeakyRelu>(args, stream, layout);
  }
}

}  // namespace

void FunctionNchw(const KernelArgs& args, Stream& stream) { RunFunction(args, stream, Layout::kNchw); }
void FunctionPanels(const KernelArgs& args, Stream& stream) { RunFunction(args, stream, Layout::kPanels); }
void FunctionBlocked16(const KernelArgs& args, Stream& stream) { RunFunction(args, stream, Layout::kBlocked16); }

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace swizzle::cpu {

bool FunctionKeepsZero(const Problem& problem) {
  const FunctionKind kind = problem.function.kind;
  return kind != FunctionKind::kSigmoid && kind != FunctionKind::kHardSigmoid && ClampKeepsZero(problem);
}

}  // namespace swizzle::cpu
#endif  // HWY_ONCE

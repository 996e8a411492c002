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

// 1 - 2 / (exp(2x) + 1), clamped to where the exponential stays in FP32's range; tanh is 1 to all places there.
HWY_INLINE FloatVector Tanh(FloatVector x) {
  const FloatTag d;
  const FloatVector one = hn::Set(d, 1.0f), two = hn::Set(d, 2.0f);
  const FloatVector bounded = Clamp(x, hn::Set(d, -20.0f), hn::Set(d, 20.0f));
  return hn::Sub(one, hn::Div(two, hn::Add(one, hn::Exp(d, hn::Mul(two, bounded)))));
}

// x/2 * erfc(-x / sqrt(2)), erfc by formula 7.1.26 of Abramowitz and Stegun, Handbook of Mathematical Functions (1964):
// polynomial(1 / (1 + pz)) * exp(-z^2) for z >= 0, good to 1.5e-7. Below 0 there is no difference to lose places in.
HWY_INLINE FloatVector Gelu(FloatVector x) {
  const FloatTag d;
  const FloatVector z = hn::Min(hn::Abs(hn::Mul(x, hn::Set(d, 0.70710678f))), hn::Set(d, 9.0f));
  const FloatVector t = hn::Div(hn::Set(d, 1.0f), hn::MulAdd(hn::Set(d, 0.3275911f), z, hn::Set(d, 1.0f)));
  FloatVector tail = hn::Set(d, 1.061405429f);
  tail = hn::MulAdd(tail, t, hn::Set(d, -1.453152027f));
  tail = hn::MulAdd(tail, t, hn::Set(d, 1.421413741f));
  tail = hn::MulAdd(tail, t, hn::Set(d, -0.284496736f));
  tail = hn::MulAdd(tail, t, hn::Set(d, 0.254829592f));
  tail = hn::Mul(hn::Mul(tail, t), hn::Exp(d, hn::Neg(hn::Mul(z, z))));
  const FloatVector part = hn::Mul(hn::Mul(x, hn::Set(d, 0.5f)), tail);
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), part, hn::Sub(x, part));
}

// x/2 * (1 + tanh(u)) is x * sigmoid(2u).
HWY_INLINE FloatVector GeluTanh(FloatVector x) {
  const FloatTag d;
  const FloatVector cubic = hn::MulAdd(hn::Mul(hn::Set(d, 0.0713548163f), hn::Mul(x, x)), x,
                                       hn::Mul(hn::Set(d, 1.59576912f), x));
  return hn::Mul(x, Sigmoid(cubic));
}

template <FunctionKind kKind>
HWY_INLINE FloatVector Apply(FloatVector x, const FunctionVectors& v) {
  if constexpr (kKind == FunctionKind::kSigmoid) return Sigmoid(x);
  if constexpr (kKind == FunctionKind::kSilu) return hn::Mul(x, Sigmoid(x));
  if constexpr (kKind == FunctionKind::kHardSigmoid) return HardSigmoid(x, v);
  if constexpr (kKind == FunctionKind::kHardSwish) return hn::Mul(x, HardSigmoid(x, v));
  if constexpr (kKind == FunctionKind::kTanh) return Tanh(x);
  if constexpr (kKind == FunctionKind::kGelu) return Gelu(x);
  if constexpr (kKind == FunctionKind::kGeluTanh) return GeluTanh(x);
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
    case FunctionKind::kTanh: return RunKind<FunctionKind::kTanh>(args, stream, layout);
    case FunctionKind::kGelu: return RunKind<FunctionKind::kGelu>(args, stream, layout);
    case FunctionKind::kGeluTanh: return RunKind<FunctionKind::kGeluTanh>(args, stream, layout);
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

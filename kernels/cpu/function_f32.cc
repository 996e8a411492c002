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
  FunctionVectors(const Function& function, const Epilogue& epilogue)
      : alpha(hn::Set(FloatTag(), function.alpha)),
        beta(hn::Set(FloatTag(), function.beta)),
        low(hn::Set(FloatTag(), epilogue.low)),
        high(hn::Set(FloatTag(), epilogue.high)) {}

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

// x * phi(x), phi being the normal distribution's: 1/2 + x times a polynomial in x^2, a fit of our own between -5 and 5, good
// to 3e-7 x max(1, |x|). Beyond, phi is 0 or 1 to as many places. The variable of the polynomial runs from -1 to 1, which
// keeps its coefficients falling.
HWY_INLINE FloatVector Gelu(FloatVector x) {
  constexpr float kCoefficients[] = {0.14136378467f, -0.07029636204f, 0.05152067170f, -0.04044046625f, 0.03143922240f,
                                     -0.02328409068f, 0.01642106287f, -0.01112000272f, 0.00635950267f, -0.00274018478f,
                                     0.00178338517f, -0.00158920663f};
  const FloatTag d;
  const FloatVector bounded = Clamp(x, hn::Set(d, -5.0f), hn::Set(d, 5.0f));
  const FloatVector s = hn::MulSub(hn::Mul(bounded, bounded), hn::Set(d, 0.08f), hn::Set(d, 1.0f));
  FloatVector sum = hn::Set(d, 0.00058265089f);
  SWIZZLE_UNROLL for (int i = 11; i >= 0; --i) sum = hn::MulAdd(sum, s, hn::Set(d, kCoefficients[i]));
  const FloatVector phi = hn::MulAdd(sum, bounded, hn::Set(d, 0.5f));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -5.0f)), hn::Mul(x, phi));
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

// What runs over some floats: a function, then a clamp.
struct Run {
  const Function& function;
  const Epilogue& clamp;
  const float* input;
  float* output;
  int64_t count;
};

template <FunctionKind kKind>
void RunKind(const Run& run) {
  const FloatTag d;
  const FunctionVectors vectors(run.function, run.clamp);
  const int64_t whole = run.count / kLanes * kLanes;
  for (int64_t i = 0; i < whole; i += kLanes) {
    const FloatVector result = Apply<kKind>(hn::LoadU(d, run.input + i), vectors);
    hn::StoreU(Clamp(result, vectors.low, vectors.high), d, run.output + i);
  }
  if (whole == run.count) return;
  const FloatVector last = Apply<kKind>(LoadFirst(d, run.input + whole, run.count - whole, hn::Zero(d)), vectors);
  StoreFirst(Clamp(last, vectors.low, vectors.high), d, run.output + whole, run.count - whole);
}

void RunAny(const Run& run) {
  switch (run.function.kind) {
    case FunctionKind::kSigmoid: return RunKind<FunctionKind::kSigmoid>(run);
    case FunctionKind::kSilu: return RunKind<FunctionKind::kSilu>(run);
    case FunctionKind::kHardSigmoid: return RunKind<FunctionKind::kHardSigmoid>(run);
    case FunctionKind::kHardSwish: return RunKind<FunctionKind::kHardSwish>(run);
    case FunctionKind::kLeakyRelu: return RunKind<FunctionKind::kLeakyRelu>(run);
    case FunctionKind::kTanh: return RunKind<FunctionKind::kTanh>(run);
    case FunctionKind::kGelu: return RunKind<FunctionKind::kGelu>(run);
    case FunctionKind::kGeluTanh: return RunKind<FunctionKind::kGeluTanh>(run);
  }
}

void RunFunction(const KernelArgs& args, Stream& stream, Layout layout) {
  const Problem& problem = *args.problem;
  const int64_t elements = LayoutElements(problem.output, layout);
  CpuStream::From(stream).ParallelRanges((elements + kLanes - 1) / kLanes, [&](int64_t, int64_t begin, int64_t end) {
    const int64_t first = begin * kLanes, count = std::min(end * kLanes, elements) - first;
    RunAny({problem.function, problem.epilogue, args.inputs[0] + first, args.output + first, count});
  });
}

}  // namespace

void ApplyFunction(const Function& function, float* values, int64_t count) {
  RunAny({function, {}, values, values, count});
}

void FunctionNchw(const KernelArgs& args, Stream& stream) { RunFunction(args, stream, Layout::kNchw); }
void FunctionPanels(const KernelArgs& args, Stream& stream) { RunFunction(args, stream, Layout::kPanels); }
void FunctionBlocked16(const KernelArgs& args, Stream& stream) { RunFunction(args, stream, Layout::kBlocked16); }

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace swizzle::cpu {

namespace {

bool KeepsZero(const Function& function) {
  return function.kind != FunctionKind::kSigmoid && function.kind != FunctionKind::kHardSigmoid;
}

}  // namespace

bool FunctionKeepsZero(const Problem& problem) { return KeepsZero(problem.function) && ClampKeepsZero(problem); }

bool EpilogueKeepsZero(const Problem& problem) {
  return ClampKeepsZero(problem) && (!problem.epilogue.function || KeepsZero(*problem.epilogue.function));
}

void ApplyFunction(const Function& function, float* values, int64_t count) {
  static const auto widest = DetectFeatures() & kAvx512 ? N_AVX3::ApplyFunction
                             : DetectFeatures() & kAvx2 ? N_AVX2::ApplyFunction
                                                        : N_EMU128::ApplyFunction;
  widest(function, values, count);
}

}  // namespace swizzle::cpu
#endif  // HWY_ONCE

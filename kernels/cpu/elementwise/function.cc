#include "kernels/cpu/elementwise/function.h"

#include <cmath>
#include <numbers>

#include "kernels/base/integers.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise/function.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "kernels/cpu/elementwise/elementwise.h"
#include "kernels/cpu/runtime/cpu_stream.h"
#include "kernels/cpu/simd/bfloat16.h"
#include "kernels/cpu/simd/exponential-inl.h"
#include "kernels/cpu/simd/partial_vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_AVX3

// The normal distribution's upper tail, erfc(x / sqrt(2)) / 2, for 0 <= x <= kLast: a cubic around each of the points
// 0, kStep, 2 * kStep, ..., good to 2e-7. Their coefficients are looked up in registers. From 30.5 steps on, beyond 5,
// the tail is 0.
class NormalTail {
 public:
  static const NormalTail& Get() {
    static const NormalTail tail;  // made when first used: this code is for some machines only
    return tail;
  }

  NormalTail() {
    constexpr double kReach = kStep / 2, kReach2 = kReach * kReach;
    for (int i = 0; i + 1 < kPoints; ++i) {
      const double x = i * kStep, x2 = x * x;
      const double density = std::exp(-x2 / 2) / std::sqrt(2 * std::numbers::pi);
      // Taylor's, whose terms of fourth and fifth degree go to those of their parity by Chebyshev's polynomials.
      const double fourth = x * (x2 - 3) * density / 24, fifth = -(x2 * x2 - 6 * x2 + 3) * density / 120;
      coefficients_[0][i] = static_cast<float>(std::erfc(x / std::numbers::sqrt2) / 2 - fourth * kReach2 * kReach2 / 8);
      coefficients_[1][i] = static_cast<float>(-density - fifth * kReach2 * kReach2 * 5 / 16);
      coefficients_[2][i] = static_cast<float>(x * density / 2 + fourth * kReach2);
      coefficients_[3][i] = static_cast<float>((1 - x2) * density / 6 + fifth * kReach2 * 5 / 4);
    }
  }

  HWY_INLINE FloatVector operator()(FloatVector x) const {
    const FloatTag d;
    // Adding 3 * 2^22 rounds to a whole number and leaves it in the lowest bits, of which the lookup reads five.
    const FloatVector magic = hn::Set(d, 12582912.0f);
    const FloatVector index = hn::MulAdd(x, hn::Set(d, static_cast<float>(1 / kStep)), magic);
    const FloatVector rest = hn::NegMulAdd(hn::Sub(index, magic), hn::Set(d, static_cast<float>(kStep)), x);
    FloatVector tail = LookUp(3, index);
    SWIZZLE_UNROLL for (int i = 2; i >= 0; --i) tail = hn::MulAdd(tail, rest, LookUp(i, index));
    return tail;
  }

  static constexpr double kStep = 21.0 / 128;
  static constexpr double kLast = 31 * kStep;

 private:
  static constexpr int kPoints = 32;

  HWY_INLINE FloatVector LookUp(int power, FloatVector index) const {
    const FloatTag d;
    const float* const from = coefficients_[power];
    const __m512i bits = _mm512_castps_si512(index.raw);
    return FloatVector{_mm512_permutex2var_ps(hn::Load(d, from).raw, bits, hn::Load(d, from + kLanes).raw)};
  }

  alignas(64) float coefficients_[4][kPoints] = {};
};

#endif  // HWY_TARGET == HWY_AVX3

// The function, its numbers spread over vectors; made once a task.
struct FunctionVectors {
  FunctionVectors(const Function& function, const Epilogue& epilogue)
      : alpha(hn::Set(FloatTag(), function.alpha)),
        beta(hn::Set(FloatTag(), function.beta)),
        low(hn::Set(FloatTag(), epilogue.low)),
        high(hn::Set(FloatTag(), epilogue.high)) {}

  FloatVector alpha, beta, low, high;
#if HWY_TARGET == HWY_AVX3
  const NormalTail& tail = NormalTail::Get();
#endif
};

// The exponential makes a number of a NaN.
HWY_INLINE FloatVector UnlessNan(FloatVector x, FloatVector result) { return hn::IfThenElse(hn::Eq(x, x), result, x); }

// factor / (1 + exp(-x)); of a NaN in x anything. Below -87 the exponential would leave FP32's range; the result is 0
// to 38 places of the factor there.
HWY_INLINE FloatVector TimesSigmoid(FloatVector factor, FloatVector x) {
  const FloatTag d;
  const FloatVector power = PowerOfTwo(hn::Min(hn::Mul(x, hn::Set(d, -kLog2E)), hn::Set(d, 126.0f)));
  return hn::Div(factor, hn::Add(hn::Set(d, 1.0f), power));
}

HWY_INLINE FloatVector Sigmoid(FloatVector x) { return UnlessNan(x, TimesSigmoid(hn::Set(FloatTag(), 1.0f), x)); }

HWY_INLINE FloatVector HardSigmoid(FloatVector x, const FunctionVectors& v) {
  const FloatTag d;
  return Clamp(hn::MulAdd(v.alpha, x, v.beta), hn::Zero(d), hn::Set(d, 1.0f));
}

// 1 - 2 / (exp(2x) + 1), clamped to where the exponential stays in FP32's range; tanh is 1 to all places there.
HWY_INLINE FloatVector Tanh(FloatVector x) {
  const FloatTag d;
  const FloatVector one = hn::Set(d, 1.0f), two = hn::Set(d, 2.0f);
  const FloatVector bounded = Clamp(x, hn::Set(d, -20.0f), hn::Set(d, 20.0f));
  const FloatVector power = PowerOfTwo(hn::Mul(bounded, hn::Set(d, 2 * kLog2E)));
  return UnlessNan(x, hn::Sub(one, hn::Div(two, hn::Add(one, power))));
}

#if HWY_TARGET == HWY_AVX3

// x * phi(x), phi being the normal distribution's, is x - |x| * tail(|x|) where x is positive, else -|x| * tail(|x|);
// good to 3e-7 x max(1, |x|).
HWY_INLINE FloatVector Gelu(FloatVector x, const FunctionVectors& v) {
  const FloatTag d;
  const FloatVector size = hn::Min(hn::Abs(x), hn::Set(d, static_cast<float>(NormalTail::kLast)));
  return hn::NegMulAdd(size, v.tail(size), hn::Max(hn::Zero(d), x));  // Max gives a NaN that stands second
}

#else

// x * phi(x), phi being the normal distribution's: 1/2 + x times a polynomial in x^2, a fit of our own between -5 and
// 5, good to 3e-7 x max(1, |x|). Beyond, phi is 0 or 1 to as many places. The variable of the polynomial runs from -1
// to 1, which keeps its coefficients falling.
HWY_INLINE FloatVector Gelu(FloatVector x, const FunctionVectors&) {
  constexpr float kCoefficients[] = {0.14136378467f, -0.07029636204f, 0.05152067170f, -0.04044046625f,
                                     0.03143922240f, -0.02328409068f, 0.01642106287f, -0.01112000272f,
                                     0.00635950267f, -0.00274018478f, 0.00178338517f, -0.00158920663f};
  const FloatTag d;
  const FloatVector bounded = Clamp(x, hn::Set(d, -5.0f), hn::Set(d, 5.0f));
  const FloatVector s = hn::MulSub(hn::Mul(bounded, bounded), hn::Set(d, 0.08f), hn::Set(d, 1.0f));
  FloatVector sum = hn::Set(d, 0.00058265089f);
  SWIZZLE_UNROLL for (int i = 11; i >= 0; --i) sum = hn::MulAdd(sum, s, hn::Set(d, kCoefficients[i]));
  const FloatVector phi = hn::MulAdd(sum, bounded, hn::Set(d, 0.5f));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -5.0f)), hn::Mul(x, phi));
}

#endif  // HWY_TARGET == HWY_AVX3

// x/2 * (1 + tanh(u)) is x * sigmoid(2u).
HWY_INLINE FloatVector GeluTanh(FloatVector x) {
  const FloatTag d;
  const FloatVector cubic =
      hn::MulAdd(hn::Mul(hn::Set(d, 0.0713548163f), hn::Mul(x, x)), x, hn::Mul(hn::Set(d, 1.59576912f), x));
  return TimesSigmoid(x, cubic);
}

template <FunctionKind kKind>
HWY_INLINE FloatVector Apply(FloatVector x, const FunctionVectors& v) {
  if constexpr (kKind == FunctionKind::kSigmoid) return Sigmoid(x);
  if constexpr (kKind == FunctionKind::kSilu) return TimesSigmoid(x, x);  // which is NaN where x is
  if constexpr (kKind == FunctionKind::kHardSigmoid) return HardSigmoid(x, v);
  if constexpr (kKind == FunctionKind::kHardSwish) return hn::Mul(x, HardSigmoid(x, v));
  if constexpr (kKind == FunctionKind::kTanh) return Tanh(x);
  if constexpr (kKind == FunctionKind::kGelu) return Gelu(x, v);
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

// kClamps: false where nothing is to be clamped.
template <FunctionKind kKind, bool kClamps>
void RunClamped(const Run& run) {
  const FloatTag d;
  const FunctionVectors vectors(run.function, run.clamp);
  const auto apply = [&](FloatVector x) HWY_ATTR {
    const FloatVector result = Apply<kKind>(x, vectors);
    return kClamps ? Clamp(result, vectors.low, vectors.high) : result;
  };
  const int64_t whole = run.count / kLanes * kLanes;
  for (int64_t i = 0; i < whole; i += kLanes) hn::StoreU(apply(hn::LoadU(d, run.input + i)), d, run.output + i);
  if (whole == run.count) return;
  const FloatVector last = apply(LoadFirst(d, run.input + whole, run.count - whole, hn::Zero(d)));
  StoreFirst(last, d, run.output + whole, run.count - whole);
}

template <FunctionKind kKind>
void RunKind(const Run& run) {
  return run.clamp.Clamps() ? RunClamped<kKind, true>(run) : RunClamped<kKind, false>(run);
}

void RunAny(const Run& run) {
  switch (run.function.kind) {
    case FunctionKind::kSigmoid:
      return RunKind<FunctionKind::kSigmoid>(run);
    case FunctionKind::kSilu:
      return RunKind<FunctionKind::kSilu>(run);
    case FunctionKind::kHardSigmoid:
      return RunKind<FunctionKind::kHardSigmoid>(run);
    case FunctionKind::kHardSwish:
      return RunKind<FunctionKind::kHardSwish>(run);
    case FunctionKind::kLeakyRelu:
      return RunKind<FunctionKind::kLeakyRelu>(run);
    case FunctionKind::kTanh:
      return RunKind<FunctionKind::kTanh>(run);
    case FunctionKind::kGelu:
      return RunKind<FunctionKind::kGelu>(run);
    case FunctionKind::kGeluTanh:
      return RunKind<FunctionKind::kGeluTanh>(run);
  }
}

// Elements [first, first + count) of bfloat16, a first cache's worth of floats at a time.
void RunBfloat16(const KernelArgs& args, int64_t first, int64_t count) {
  const Bfloat16* const input = args.Input<Bfloat16>(0);
  Bfloat16* const output = args.Output<Bfloat16>();
  constexpr int64_t kFloats = 1024;
  HWY_ALIGN float values[kFloats];
  for (const int64_t end = first + count; first < end; first += kFloats) {
    const int64_t some = std::min(kFloats, end - first);
    Widen(input + first, some, values);
    RunAny({args.problem->function(), args.problem->epilogue, values, values, some});
    Round(values, some, output + first);
  }
}

}  // namespace

void ApplyFunction(const Function& function, float* values, int64_t count) {
  RunAny({function, {}, values, values, count});
}

void RunFunction(const KernelArgs& args, Stream& stream) {
  const Problem& problem = *args.problem;
  const int64_t elements = LayoutElements(problem.output, problem.to.layout);
  CpuStream::From(stream).ParallelRanges(CeilDiv(elements, kLanes), [&](int64_t, int64_t begin, int64_t end) {
    const int64_t first = begin * kLanes, count = std::min(end * kLanes, elements) - first;
    if (IsBfloat16(problem.to)) return RunBfloat16(args, first, count);
    RunAny({problem.function(), problem.epilogue, args.Input<float>(0) + first, args.Output<float>() + first, count});
  });
}

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace swizzle::cpu {

bool AcceptsFunction(const Problem& problem) {
  return AcceptsElementwise(problem) && (problem.to.layout != Layout::kBlocked16 || problem.function().KeepsZero());
}

bool EpilogueKeepsZero(const Problem& problem) {
  return ClampKeepsZero(problem) && (!problem.epilogue.function || problem.epilogue.function->KeepsZero());
}

void ApplyFunction(const Function& function, float* values, int64_t count) {
  static const auto widest = Widest(N_AVX3::ApplyFunction, N_AVX2::ApplyFunction, N_EMU128::ApplyFunction);
  widest(function, values, count);
}

}  // namespace swizzle::cpu
#endif  // HWY_ONCE

// What kernels do to a sum before they store it: function(clamp(sum + bias + residual)), in fp32; see Epilogue. A NaN
// stays one throughout. Device code, and what makes it of a problem.
#ifndef SWIZZLE_KERNELS_CUDA_RUNTIME_EPILOGUE_CUH_
#define SWIZZLE_KERNELS_CUDA_RUNTIME_EPILOGUE_CUH_

#include "kernels/cuda/runtime/elements.cuh"
#include "kernels/cuda/runtime/powers.cuh"

namespace swizzle::cuda {

__device__ inline float LargerOrNan(float a, float b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  return a < b ? b : a == a ? a : a + b;
#else
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
#endif
}
__device__ inline float SmallerOrNan(float a, float b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  return a > b ? b : a == a ? a : a + b;
#else
  float result;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
#endif
}

struct Clamp {
  float low, high;
  explicit Clamp(const Epilogue& epilogue) : low(epilogue.low), high(epilogue.high) {}
  __device__ float operator()(float value) const { return SmallerOrNan(LargerOrNan(value, low), high); }
};

__device__ inline float Sigmoid(float x) { return 1 / (1 + expf(-x)); }

// GELU in few instructions, for results in half precision: off by at most a third of a unit in their last place before
// they are rounded. The negative side is -a * 2^p(a) for a = |x|, p being fitted to log2(erfc(a / sqrt(2)) / 2) by its
// largest error in such units, up to where results vanish; the positive side is x more.
template <typename T>
__device__ float HalfGelu(float x) {
  static_assert(std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>);
  const float end = std::is_same_v<T, __half> ? 6.0f : 13.0f, a = SmallerOrNan(fabsf(x), end);
  float power;
  if constexpr (std::is_same_v<T, __half>) {
    constexpr float kCoefficients[] = {5.8272728e-03f, -4.8237126e-02f, -4.6412128e-01f, -1.1491754f, -1.0001209f};
    power = -3.2051103e-04f;
#pragma unroll
    for (const float coefficient : kCoefficients) power = fmaf(power, a, coefficient);
  } else {
    constexpr float kCoefficients[] = {-1.8011427e-06f, 4.8917932e-05f,  -7.5733353e-04f, 7.4932859e-03f,
                                       -5.1025193e-02f, -4.6245554e-01f, -1.1492190f,     -1.0001675f};
    power = 2.8604548e-08f;
#pragma unroll
    for (const float coefficient : kCoefficients) power = fmaf(power, a, coefficient);
  }
  return fmaf(-a, PowerOfTwo(power), LargerOrNan(x, 0.0f));
}

// See swizzle::FunctionKind; the result is rounded to T.
template <FunctionKind kKind, typename T>
__device__ float FunctionOf(float x, float alpha, float beta) {
  if constexpr (kKind == FunctionKind::kSigmoid) return Sigmoid(x);
  if constexpr (kKind == FunctionKind::kSilu) return x * Sigmoid(x);
  // Saturation makes zero of a NaN.
  if constexpr (kKind == FunctionKind::kHardSigmoid) {
    return SmallerOrNan(LargerOrNan(fmaf(alpha, x, beta), 0.0f), 1.0f);
  }
  if constexpr (kKind == FunctionKind::kHardSwish) return x * __saturatef(fmaf(alpha, x, beta));
  if constexpr (kKind == FunctionKind::kLeakyRelu) return x < 0 ? alpha * x : x;
  if constexpr (kKind == FunctionKind::kTanh) return tanhf(x);
  if constexpr (kKind == FunctionKind::kGelu && sizeof(T) == 2) return HalfGelu<T>(x);
  // Not 1 + erf, which loses all places of small results.
  if constexpr (kKind == FunctionKind::kGelu) return x / 2 * erfcf(x * -0.70710678f);
  // (1 + tanh(u)) / 2 is the sigmoid of 2u.
  if constexpr (kKind == FunctionKind::kGeluTanh) return x * Sigmoid(1.59576912f * (x + 0.044715f * x * x * x));
  return x;
}

// visit.operator()<kind>() for what is known at run time only, on either side.
#pragma nv_exec_check_disable
template <typename Visit>
__host__ __device__ void WithKind(FunctionKind kind, const Visit& visit) {
  switch (kind) {
    case FunctionKind::kSigmoid:
      return visit.template operator()<FunctionKind::kSigmoid>();
    case FunctionKind::kSilu:
      return visit.template operator()<FunctionKind::kSilu>();
    case FunctionKind::kHardSigmoid:
      return visit.template operator()<FunctionKind::kHardSigmoid>();
    case FunctionKind::kHardSwish:
      return visit.template operator()<FunctionKind::kHardSwish>();
    case FunctionKind::kLeakyRelu:
      return visit.template operator()<FunctionKind::kLeakyRelu>();
    case FunctionKind::kTanh:
      return visit.template operator()<FunctionKind::kTanh>();
    case FunctionKind::kGelu:
      return visit.template operator()<FunctionKind::kGelu>();
    case FunctionKind::kGeluTanh:
      return visit.template operator()<FunctionKind::kGeluTanh>();
  }
}

// How a kernel ends. It is made twice: with NoFunction it has none of the registers and instructions that functions
// take; with AnyFunction it branches once, alike in all threads, for the values that a thread stores at once.
struct NoFunction {
  explicit NoFunction(const Epilogue&) {}
  template <typename T, int kCount>
  __device__ void Apply(float (&)[kCount]) const {}
};

class AnyFunction {
 public:
  explicit AnyFunction(const Epilogue& epilogue) : function_(*epilogue.function) {}
  // To values that are stored as T.
  template <typename T, int kCount>
  __device__ void Apply(float (&values)[kCount]) const {
    const float alpha = function_.alpha, beta = function_.beta;
    WithKind(function_.kind, [&]<FunctionKind kKind>() {
#pragma unroll
      for (float& value : values) value = FunctionOf<kKind, T>(value, alpha, beta);
    });
  }

 private:
  Function function_;
};

template <typename Function>
struct Ending {
  Clamp clamp;
  Function function;
  explicit Ending(const Epilogue& epilogue) : clamp(epilogue), function(epilogue) {}

  // To sums with bias and residual, which are then stored as T.
  template <typename T, int kCount>
  __device__ void Apply(float (&sums)[kCount]) const {
#pragma unroll
    for (float& sum : sums) sum = clamp(sum);
    function.template Apply<T>(sums);
  }
};

// launch(ending) for an epilogue with a function or without.
template <typename Launch>
void WithEnding(const Epilogue& epilogue, const Launch& launch) {
  if (epilogue.function) return launch(Ending<AnyFunction>(epilogue));
  launch(Ending<NoFunction>(epilogue));
}

}  // namespace swizzle::cuda

#endif  // SWIZZLE_KERNELS_CUDA_RUNTIME_EPILOGUE_CUH_

#include "kernels/cuda/elementwise/elementwise.h"
#include "kernels/cuda/runtime/elements.cuh"
#include "kernels/cuda/runtime/instantiate.h"

namespace swizzle::cuda {
namespace {

constexpr int kThreads = 256;

struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct Product {
  __device__ float operator()(float a, float b) const { return a * b; }
};
struct Identity {
  __device__ float operator()(float a, float) const { return a; }
};

__device__ float Sigmoid(float x) { return 1 / (1 + expf(-x)); }

// GELU to 1.3e-4 of itself, less than halves round by, for a third of erfcf's instructions. The negative side is
// -a * 2^p(a) for a = |x|, p being fitted to log2(erfc(a / sqrt(2)) / 2) by its largest error up to 13, where FP32 and
// BF16 end; the positive side is x more. A NaN stays one.
__device__ float HalfGelu(float x) {
  constexpr float kCoefficients[] = {4.8917932e-05f,  -7.5733353e-04f, 7.4932859e-03f, -5.1025193e-02f,
                                     -4.6245554e-01f, -1.1492190f,     -1.0001675f};
  const float a = fminf(fabsf(x), 13.0f);
  float power = fmaf(2.8604548e-08f, a, -1.8011427e-06f);
#pragma unroll
  for (const float coefficient : kCoefficients) power = fmaf(power, a, coefficient);
  return (x < 0 ? 0.0f : x) - a * exp2f(power);
}

// See swizzle::FunctionKind; kHalf: of FP16 or BF16.
template <FunctionKind kKind, bool kHalf>
struct FunctionOf {
  float alpha, beta;
  __device__ float operator()(float x, float) const {
    if constexpr (kKind == FunctionKind::kSigmoid) return Sigmoid(x);
    if constexpr (kKind == FunctionKind::kSilu) return x * Sigmoid(x);
    if constexpr (kKind == FunctionKind::kHardSigmoid) return __saturatef(fmaf(alpha, x, beta));
    if constexpr (kKind == FunctionKind::kHardSwish) return x * __saturatef(fmaf(alpha, x, beta));
    if constexpr (kKind == FunctionKind::kLeakyRelu) return x < 0 ? alpha * x : x;
    if constexpr (kKind == FunctionKind::kTanh) return tanhf(x);
    if constexpr (kKind == FunctionKind::kGelu && kHalf) return HalfGelu(x);
    // Not 1 + erf, which loses all places of small results.
    if constexpr (kKind == FunctionKind::kGelu) return x / 2 * erfcf(x * -0.70710678f);
    // (1 + tanh(u)) / 2 is the sigmoid of 2u.
    if constexpr (kKind == FunctionKind::kGeluTanh) return x * Sigmoid(1.59576912f * (x + 0.044715f * x * x * x));
    return x;
  }
};

// output[i] = clamp(function(a[i], b[i])), in packs of 16 bytes; the last count % kPack elements go one by one.
template <bool kBinary, typename T, typename Apply>
__global__ void __launch_bounds__(kThreads)
    Elementwise(const T* a, const T* b, T* output, int64_t count, Apply function, Clamp clamp) {
  constexpr int kPack = 16 / sizeof(T);
  const int64_t step = int64_t{gridDim.x} * kThreads, first = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  for (int64_t i = first; i < count / kPack; i += step) {
    float x[kPack], y[kPack] = {};
    LoadPack<kPack>(a + i * kPack, x);
    if constexpr (kBinary) LoadPack<kPack>(b + i * kPack, y);
#pragma unroll
    for (int j = 0; j < kPack; ++j) x[j] = clamp(function(x[j], y[j]));
    StorePack<kPack>(x, output + i * kPack);
  }
  const int64_t last = count / kPack * kPack + first;
  if (last >= count) return;
  output[last] = FromFloat<T>(clamp(function(ToFloat(a[last]), kBinary ? ToFloat(b[last]) : 0.0f)));
}

template <Layout kLayout, DType kDType, bool kBinary, typename Apply>
void Run(const KernelArgs& args, Stream& stream, Apply function) {
  using T = Element<kDType>;
  const int64_t count = LayoutElements(args.problem->output, kLayout);
  const unsigned blocks = BlocksFor(CeilDiv(count, 16 / sizeof(T)), kThreads, stream);
  Elementwise<kBinary, T>
      <<<blocks, kThreads, 0, QueueOf(stream)>>>(InputAs<T>(args, 0), kBinary ? InputAs<T>(args, 1) : nullptr,
                                                 OutputAs<T>(args), count, function, Clamp(args.problem->epilogue));
}

}  // namespace

template <Layout kLayout, DType kDType>
void Add(const KernelArgs& args, Stream& stream) {
  Run<kLayout, kDType, true>(args, stream, Sum());
}

template <Layout kLayout, DType kDType>
void Multiply(const KernelArgs& args, Stream& stream) {
  Run<kLayout, kDType, true>(args, stream, Product());
}

template <Layout kLayout, DType kDType>
void Activation(const KernelArgs& args, Stream& stream) {
  Run<kLayout, kDType, false>(args, stream, Identity());
}

template <Layout kLayout, DType kDType>
void ApplyFunction(const KernelArgs& args, Stream& stream) {
  const Function& function = args.problem->function;
  const auto run = [&]<FunctionKind kKind>() {
    const FunctionOf<kKind, kDType != DType::kFloat32> compute{function.alpha, function.beta};
    Run<kLayout, kDType, false>(args, stream, compute);
  };
  switch (function.kind) {
    case FunctionKind::kSigmoid:
      return run.template operator()<FunctionKind::kSigmoid>();
    case FunctionKind::kSilu:
      return run.template operator()<FunctionKind::kSilu>();
    case FunctionKind::kHardSigmoid:
      return run.template operator()<FunctionKind::kHardSigmoid>();
    case FunctionKind::kHardSwish:
      return run.template operator()<FunctionKind::kHardSwish>();
    case FunctionKind::kLeakyRelu:
      return run.template operator()<FunctionKind::kLeakyRelu>();
    case FunctionKind::kTanh:
      return run.template operator()<FunctionKind::kTanh>();
    case FunctionKind::kGelu:
      return run.template operator()<FunctionKind::kGelu>();
    case FunctionKind::kGeluTanh:
      return run.template operator()<FunctionKind::kGeluTanh>();
  }
}

SWIZZLE_INSTANTIATE(Add);
SWIZZLE_INSTANTIATE(Multiply);
SWIZZLE_INSTANTIATE(Activation);
SWIZZLE_INSTANTIATE(ApplyFunction);

}  // namespace swizzle::cuda

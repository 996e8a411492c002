#include "kernels/cpu/elementwise/elementwise.h"

#include "kernels/base/integers.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise/elementwise.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "kernels/cpu/runtime/cpu_stream.h"
#include "kernels/cpu/simd/elements-inl.h"

HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {
namespace {

enum class Binary { kNone, kAdd, kMultiply };

template <Binary kBinary>
HWY_INLINE FloatVector Combine(FloatVector a, FloatVector b) {
  return kBinary == Binary::kAdd ? hn::Add(a, b) : hn::Mul(a, b);
}

// Over elements of type T.
template <Binary kBinary, typename T>
void RunElements(const KernelArgs& args, Stream& stream, int64_t elements) {
  const Epilogue& epilogue = args.problem->epilogue;
  const T* a = args.Input<T>(0);
  const T* b = kBinary == Binary::kNone ? nullptr : args.Input<T>(1);
  T* output = args.Output<T>();
  const auto run_vectors = [=](int64_t, int64_t begin, int64_t end) HWY_ATTR {
    const FloatTag d;
    const FloatVector low = hn::Set(d, epilogue.low);
    const FloatVector high = hn::Set(d, epilogue.high);
    const int64_t whole = std::min(end * kLanes, elements / kLanes * kLanes);
    for (int64_t i = begin * kLanes; i < whole; i += kLanes) {
      FloatVector sum = LoadAll(a + i);
      if constexpr (kBinary != Binary::kNone) sum = Combine<kBinary>(sum, LoadAll(b + i));
      StoreAll(Clamp(sum, low, high), output + i);
    }
    const int64_t rest = std::min(end * kLanes, elements) - whole;
    if (rest == 0) return;
    FloatVector sum = LoadFirst(d, a + whole, rest, hn::Zero(d));
    if constexpr (kBinary != Binary::kNone) {
      sum = Combine<kBinary>(sum, LoadFirst(d, b + whole, rest, hn::Zero(d)));
    }
    StoreFirst(Clamp(sum, low, high), d, output + whole, rest);
  };
  CpuStream::From(stream).ParallelRanges(CeilDiv(elements, kLanes), run_vectors);
}

template <Binary kBinary>
void RunElementwise(const KernelArgs& args, Stream& stream) {
  const Problem& problem = *args.problem;
  const int64_t elements = LayoutElements(problem.output, problem.to.layout);
  if (IsBfloat16(problem.to)) return RunElements<kBinary, Bfloat16>(args, stream, elements);
  RunElements<kBinary, float>(args, stream, elements);
}

}  // namespace

void Add(const KernelArgs& args, Stream& stream) { RunElementwise<Binary::kAdd>(args, stream); }
void Multiply(const KernelArgs& args, Stream& stream) { RunElementwise<Binary::kMultiply>(args, stream); }
void Activation(const KernelArgs& args, Stream& stream) { RunElementwise<Binary::kNone>(args, stream); }

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace swizzle::cpu {

bool ClampKeepsZero(const Problem& problem) { return problem.epilogue.low <= 0 && problem.epilogue.high >= 0; }

bool AcceptsElementwise(const Problem& problem) {
  return problem.to.layout != Layout::kBlocked16 || ClampKeepsZero(problem);
}

}  // namespace swizzle::cpu
#endif  // HWY_ONCE

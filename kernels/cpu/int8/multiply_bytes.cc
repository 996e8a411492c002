#include "kernels/cpu/int8/multiply_bytes.h"

#include <algorithm>
#include <cstring>

#include "kernels/base/integers.h"
#include "kernels/base/layout.h"
#include "kernels/whole_numbers/steps.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/int8/multiply_bytes.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "hwy/highway.h"
#include "kernels/cpu/runtime/cpu_stream.h"

HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

const hn::ScalableTag<float> kFloats;
const hn::Rebind<int32_t, decltype(kFloats)> kWords;
const hn::Rebind<uint8_t, decltype(kFloats)> kBytes;
using Floats = hn::Vec<decltype(kFloats)>;

// The product's numbers, spread over vectors; made once a task.
struct Product {
  explicit Product(const Problem& problem) {
    const Quantised &a = problem.inputs_as[0], &b = problem.inputs_as[1], &y = *problem.epilogue.requantise;
    const OutputSteps steps = StepsOf(problem);
    a_zero = hn::Set(kFloats, static_cast<float>(a.zero_point));
    b_zero = hn::Set(kFloats, static_cast<float>(b.zero_point));
    ratio = hn::Set(kFloats, a.scale * b.scale / y.scale);
    y_zero = hn::Set(kFloats, static_cast<float>(y.zero_point));
    low = hn::Set(kFloats, static_cast<float>(steps.low));
    high = hn::Set(kFloats, static_cast<float>(steps.high));
  }

  HWY_INLINE static Floats FloatsAt(const uint8_t* from) {
    return hn::ConvertTo(kFloats, hn::PromoteTo(kWords, hn::LoadU(kBytes, from)));
  }

  // Held before it is rounded, which comes to the same: bounds are whole.
  HWY_INLINE void Store(const uint8_t* a, Floats b, uint8_t* to) const {
    const Floats product = hn::Mul(hn::Sub(FloatsAt(a), a_zero), hn::Sub(b, b_zero));
    const Floats step = hn::Min(hn::Max(hn::Add(hn::Mul(product, ratio), y_zero), low), high);
    hn::StoreU(hn::DemoteTo(kBytes, hn::NearestInt(step)), kBytes, to);
  }

  // What is left of whole vectors goes through one of its own.
  void Run(const uint8_t* a, const uint8_t* b, int64_t count, uint8_t* to) const {
    const auto lanes = static_cast<int64_t>(hn::Lanes(kFloats));
    int64_t i = 0;
    for (; i + lanes <= count; i += lanes) Store(a + i, FloatsAt(b + i), to + i);
    if (i == count) return;
    HWY_ALIGN uint8_t rest[2][HWY_MAX_BYTES] = {};
    std::memcpy(rest[0], a + i, count - i);
    std::memcpy(rest[1], b + i, count - i);
    Store(rest[0], FloatsAt(rest[1]), rest[0]);
    std::memcpy(to + i, rest[0], count - i);
  }

  Floats a_zero, b_zero, ratio, y_zero, low, high;
};

// An item is one channel of one panel.
void ScaleFullPanels(const KernelArgs& args, Stream& stream) {
  const Problem& problem = *args.problem;
  const int64_t channels = problem.output.channels, plane = problem.output.plane();
  const int64_t positions = problem.output.positions();
  const auto *const from = args.Input<uint8_t>(0), *const factors = args.Input<uint8_t>(1);
  auto* const to = args.Output<uint8_t>();
  const auto scale = [&](int64_t, int64_t first, int64_t last) HWY_ATTR {
    const Product product(problem);
    HWY_ALIGN uint8_t spread[kMaxPanelWidth] = {};
    for (int64_t item = first; item < last; ++item) {
      const int64_t begin = item / channels * kMaxPanelWidth, end = std::min(begin + kMaxPanelWidth, positions);
      for (int64_t position = begin; position < end;) {
        const int64_t image = position / plane, next = std::min((image + 1) * plane, end);
        const int64_t panel = image / kMaxPanelWidth * channels + item % channels;
        std::memset(spread + position - begin, factors[panel * kMaxPanelWidth + image % kMaxPanelWidth],
                    next - position);
        position = next;
      }
      product.Run(from + item * kMaxPanelWidth, spread, kMaxPanelWidth, to + item * kMaxPanelWidth);
    }
  };
  CpuStream::From(stream).ParallelRanges(FullPanels(positions) * channels, scale, 16);
}

// An item is one position, whose factors lie as its channels do.
void ScaleNhwc(const KernelArgs& args, Stream& stream) {
  const Problem& problem = *args.problem;
  const int64_t channels = problem.output.channels, plane = problem.output.plane();
  const auto *const from = args.Input<uint8_t>(0), *const factors = args.Input<uint8_t>(1);
  auto* const to = args.Output<uint8_t>();
  const auto scale = [&](int64_t, int64_t first, int64_t last) HWY_ATTR {
    const Product product(problem);
    for (int64_t i = first; i < last; ++i) {
      product.Run(from + i * channels, factors + i / plane * channels, channels, to + i * channels);
    }
  };
  CpuStream::From(stream).ParallelRanges(problem.output.positions(), scale, CeilDiv(int64_t{1} << 10, channels));
}

}  // namespace

void MultiplyBytes(const KernelArgs& args, Stream& stream) {
  const Problem& problem = *args.problem;
  const auto *const a = args.Input<uint8_t>(0), *const b = args.Input<uint8_t>(1);
  auto* const to = args.Output<uint8_t>();
  const auto multiply = [&](int64_t, int64_t begin, int64_t end) {
    Product(problem).Run(a + begin, b + begin, end - begin, to + begin);
  };
  CpuStream::From(stream).ParallelRanges(LayoutElements(problem.output, problem.to.layout), multiply, int64_t{2} << 10);
}

void ScaleBytes(const KernelArgs& args, Stream& stream) {
  if (args.problem->to.layout == Layout::kNhwc) return ScaleNhwc(args, stream);
  ScaleFullPanels(args, stream);
}

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace swizzle::cpu {

bool AcceptsMultiplyBytes(const Problem& problem) {
  return ReadsBytes(problem, problem.from.layout) && WritesBytes(problem, problem.to.layout) &&
         problem.inputs_as[1].dtype == DType::kUint8 && !problem.epilogue.function && !problem.epilogue.residual;
}

}  // namespace swizzle::cpu
#endif  // HWY_ONCE

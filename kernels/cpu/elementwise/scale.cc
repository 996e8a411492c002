#include "kernels/cpu/elementwise/scale.h"

#include "kernels/base/integers.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise/scale.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "kernels/cpu/layout/slab.h"
#include "kernels/cpu/runtime/cpu_stream.h"
#include "kernels/cpu/simd/elements-inl.h"

HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {
namespace {

// to[i] = clamp(from[i] * factor) for `count` neighbours, on any boundary.
template <typename T>
HWY_INLINE void ScaleRun(const Epilogue& epilogue, const T* from, float factor, int64_t count, T* to) {
  const FloatTag d;
  const FloatVector factors = hn::Set(d, factor);
  const FloatVector low = hn::Set(d, epilogue.low);
  const FloatVector high = hn::Set(d, epilogue.high);
  const int64_t whole = count / kLanes * kLanes;
  for (int64_t i = 0; i < whole; i += kLanes) {
    StoreAll(Clamp(hn::Mul(LoadAll(from + i), factors), low, high), to + i);
  }
  if (whole == count) return;
  const FloatVector last = hn::Mul(LoadFirst(d, from + whole, count - whole, hn::Zero(d)), factors);
  StoreFirst(Clamp(last, low, high), d, to + whole, count - whole);
}

// The factor of one image's channel: both grids are cut alike, the factors' over images instead of positions.
template <typename T>
float PanelFactor(const T* factors, const PanelGrid& grid, int64_t channels, int64_t image, int64_t channel) {
  const int64_t panel = grid.PanelOf(image);
  const int64_t begin = grid.Begin(panel);
  return FloatOf(factors[begin * channels + channel * grid.Width(panel) + image - begin]);
}

template <typename T>
void ScalePanels(const KernelArgs& args, Stream& stream) {
  const Problem& problem = *args.problem;
  const int64_t channels = problem.output.channels;
  const int64_t plane = problem.output.plane();
  const int64_t positions = problem.output.positions();
  const T *const from = args.Input<T>(0), *const factors = args.Input<T>(1);
  T* const to = args.Output<T>();
  const PanelGrid grid(positions), images(problem.output.batch);
  // An item is one channel of one panel.
  CpuStream::From(stream).ParallelRanges(grid.count() * channels, [&](int64_t, int64_t first, int64_t last) HWY_ATTR {
    for (int64_t item = first; item < last; ++item) {
      const int64_t panel = item / channels, channel = item % channels;
      const int64_t begin = grid.Begin(panel), end = std::min(begin + grid.Width(panel), positions);
      const int64_t row = begin * channels + channel * grid.Width(panel) - begin;  // of position 0, were it in here
      for (int64_t position = begin; position < end;) {
        const int64_t image = position / plane;
        const int64_t count = std::min((image + 1) * plane, end) - position;
        const float factor = PanelFactor(factors, images, channels, image, channel);
        ScaleRun(problem.epilogue, from + row + position, factor, count, to + row + position);
        position += count;
      }
    }
  });
}

void ScaleNchw(const KernelArgs& args, Stream& stream) {
  const Problem& problem = *args.problem;
  const int64_t plane = problem.output.plane();
  const float *const from = args.Input<float>(0), *const factors = args.Input<float>(1);
  float* const to = args.Output<float>();
  CpuStream::From(stream).ParallelRanges(
      problem.output.batch * problem.output.channels, [&](int64_t, int64_t first, int64_t last) HWY_ATTR {
        for (int64_t i = first; i < last; ++i) {
          ScaleRun(problem.epilogue, from + i * plane, factors[i], plane, to + i * plane);
        }
      });
}

void ScaleBlocked16(const KernelArgs& args, Stream& stream) {
  const Problem& problem = *args.problem;
  const int64_t plane = problem.output.plane();
  const int64_t blocks = problem.output.batch * CeilDiv(problem.output.channels, kBlockChannels);
  const float *const input = args.Input<float>(0), *const all_factors = args.Input<float>(1);
  float* const output = args.Output<float>();
  CpuStream::From(stream).ParallelRanges(blocks, [&](int64_t, int64_t first, int64_t last) HWY_ATTR {
    const FloatTag d;
    const FloatVector low = hn::Set(d, problem.epilogue.low);
    const FloatVector high = hn::Set(d, problem.epilogue.high);
    for (int64_t block = first; block < last; ++block) {
      const float* from = input + block * plane * kBlockChannels;
      float* to = output + block * plane * kBlockChannels;
      for (int64_t lane = 0; lane < kBlockChannels; lane += kLanes) {
        const FloatVector factors = hn::Load(d, all_factors + block * kBlockChannels + lane);
        for (int64_t i = lane; i < plane * kBlockChannels; i += kBlockChannels) {
          hn::Store(Clamp(hn::Mul(hn::Load(d, from + i), factors), low, high), d, to + i);
        }
      }
    }
  });
}

}  // namespace

void Scale(const KernelArgs& args, Stream& stream) {
  const Storage& storage = args.problem->to;
  if (storage.layout == Layout::kNchw) return ScaleNchw(args, stream);
  if (storage.layout == Layout::kBlocked16) return ScaleBlocked16(args, stream);
  IsBfloat16(storage) ? ScalePanels<Bfloat16>(args, stream) : ScalePanels<float>(args, stream);
}

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

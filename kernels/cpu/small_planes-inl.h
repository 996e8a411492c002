// Depthwise 3x3 convolution of small planes in kPanels, for FitsSmallPlanes. Compiled per target; for targets whose
// masks are registers and whose masked loads touch no other memory.
//
// Outputs are computed in the order in which a panel holds them, straight from it, with masks for the planes' borders
// (plane_masks.h): vectors are full however small the plane, and nothing is copied.
#if defined(SWIZZLE_KERNELS_CPU_SMALL_PLANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWIZZLE_KERNELS_CPU_SMALL_PLANES_INL_H_
#undef SWIZZLE_KERNELS_CPU_SMALL_PLANES_INL_H_
#else
#define SWIZZLE_KERNELS_CPU_SMALL_PLANES_INL_H_
#endif

#include <algorithm>

#include "kernels/cpu/cpu_stream.h"
#include "kernels/cpu/depthwise_dense_f32.h"
#include "kernels/cpu/partial_vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {

// One channel's weights, spread over vectors.
struct SameWeights {
  HWY_INLINE SameWeights(FloatTag d, const DepthwiseWeight& weight, int64_t channel)
      : bias(hn::Set(d, weight.bias(channel))) {
    SWIZZLE_UNROLL
    for (int i = 0; i < 9; ++i) taps[i] = hn::Set(d, weight.taps(channel)[i]);
  }
  FloatVector taps[9];
  FloatVector bias;
};

// Bits [lane, lane + kLanes) of one side's mask.
HWY_INLINE FloatMask LaneMask(FloatTag d, const uint16_t& bits, int64_t lane) {
  return hn::LoadMaskBits(d, reinterpret_cast<const uint8_t*>(&bits) + lane / 8);
}

// The sums of kLanes positions of a panel, whose spare positions have neighbours outside the buffer: nothing is read
// for any but the first `valid` positions.
HWY_INLINE FloatVector SameSums(FloatTag d, const SameWeights& weights, const BlockMasks& masks, int64_t lane,
                                int64_t valid, int64_t width, const float* in) {
  const FloatMask inside = hn::FirstN(d, static_cast<size_t>(std::clamp<int64_t>(valid, 0, kLanes)));
  const FloatMask left = hn::And(inside, LaneMask(d, masks.left, lane));
  const FloatMask right = hn::And(inside, LaneMask(d, masks.right, lane));
  const FloatMask above = hn::And(inside, LaneMask(d, masks.above, lane));
  const FloatMask below = hn::And(inside, LaneMask(d, masks.below, lane));
  const FloatVector* taps = weights.taps;
  const float* up = in - width;
  const float* down = in + width;
  FloatVector first = hn::MulAdd(hn::MaskedLoad(hn::And(above, left), d, up - 1), taps[0], weights.bias);
  FloatVector second = hn::Mul(hn::MaskedLoad(left, d, in - 1), taps[3]);
  FloatVector third = hn::Mul(hn::MaskedLoad(hn::And(below, left), d, down - 1), taps[6]);
  first = hn::MulAdd(hn::MaskedLoad(above, d, up), taps[1], first);
  second = hn::MulAdd(hn::Load(d, in), taps[4], second);
  third = hn::MulAdd(hn::MaskedLoad(below, d, down), taps[7], third);
  first = hn::MulAdd(hn::MaskedLoad(hn::And(above, right), d, up + 1), taps[2], first);
  second = hn::MulAdd(hn::MaskedLoad(right, d, in + 1), taps[5], second);
  third = hn::MulAdd(hn::MaskedLoad(hn::And(below, right), d, down + 1), taps[8], third);
  return hn::Add(hn::Add(first, second), third);
}

// One panel of one channel.
struct SmallPanel {
  int64_t channel;
  int64_t begin;   // its first position
  int64_t width;   // positions in the panel
  int64_t offset;  // of the channel's first position in the buffers
};

template <bool kResidual>
HWY_INLINE void SmallPanelChannel(const KernelArgs& args, const DepthwiseWeight& weight, const SmallPanel& panel) {
  const FloatTag d;
  const SameWeights weights(d, weight, panel.channel);
  const FloatVector low = hn::Set(d, args.problem->epilogue.low);
  const FloatVector high = hn::Set(d, args.problem->epilogue.high);
  const int64_t valid = args.problem->input.positions() - panel.begin;
  const std::vector<BlockMasks>& masks = weight.masks();
  const float* in = args.inputs[0] + panel.offset;
  float* out = args.output + panel.offset;
  size_t block = 0;  // a panel starts with an image, and one of several images has a period of one block
  for (int64_t unit = 0; unit < panel.width; unit += kPositionUnit) {
    for (int64_t i = unit; i < unit + kPositionUnit; i += kLanes) {
      FloatVector sums = SameSums(d, weights, masks[block], i - unit, valid - i, args.problem->input.width, in + i);
      if constexpr (kResidual) sums = hn::Add(sums, hn::Load(d, args.inputs[1] + panel.offset + i));
      hn::Store(Clamp(sums, low, high), d, out + i);
    }
    block = block + 1 < masks.size() ? block + 1 : 0;
  }
}

inline void RunSmallPlanes(const KernelArgs& args, Stream& stream) {
  const auto& weight = static_cast<const DepthwiseWeight&>(*args.weight);
  const int64_t channels = args.problem->input.channels;
  const PanelGrid grid(args.problem->input.positions());
  CpuStream::From(stream).ParallelRanges(grid.count() * channels, [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t panel = begin / channels; panel * channels < end; ++panel) {
      const int64_t position = grid.Begin(panel);
      const int64_t width = grid.Width(panel);
      const int64_t last = std::min(end - panel * channels, channels);
      for (int64_t c = std::max<int64_t>(begin - panel * channels, 0); c < last; ++c) {
        const SmallPanel piece{c, position, width, position * channels + c * width};
        if (args.problem->epilogue.residual) {
          SmallPanelChannel<true>(args, weight, piece);
        } else {
          SmallPanelChannel<false>(args, weight, piece);
        }
      }
    }
  });
}

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

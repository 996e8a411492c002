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
#include "kernels/cpu/elements-inl.h"

HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {

// Bits [lane, lane + kLanes) of one side's mask.
HWY_INLINE FloatMask LaneMask(FloatTag d, const uint16_t& bits, int64_t lane) {
  return hn::LoadMaskBits(d, reinterpret_cast<const uint8_t*>(&bits) + lane / 8);
}

// Which neighbours count, for kLanes positions of a panel. Spare positions have neighbours outside the buffer: nothing
// is read for any but the first `valid` positions.
struct SameMasks {
  HWY_INLINE SameMasks(FloatTag d, const BlockMasks& block, int64_t lane, int64_t valid) {
    const FloatMask inside = hn::FirstN(d, static_cast<size_t>(std::clamp<int64_t>(valid, 0, kLanes)));
    left = hn::And(inside, LaneMask(d, block.left, lane));
    right = hn::And(inside, LaneMask(d, block.right, lane));
    above = hn::And(inside, LaneMask(d, block.above, lane));
    below = hn::And(inside, LaneMask(d, block.below, lane));
    above_left = hn::And(above, left);
    above_right = hn::And(above, right);
    below_left = hn::And(below, left);
    below_right = hn::And(below, right);
  }
  FloatMask left, right, above, below, above_left, above_right, below_left, below_right;
};

template <typename T>
HWY_INLINE FloatVector SameSums(FloatTag d, const SameMasks& masks, const float* taps, float bias, int64_t width,
                                const T* in) {
  const auto tap = [d, taps](int i) HWY_ATTR { return hn::Set(d, taps[i]); };
  const T* up = in - width;
  const T* down = in + width;
  FloatVector first = hn::MulAdd(MaskedLoad(masks.above_left, up - 1), tap(0), hn::Set(d, bias));
  FloatVector second = hn::Mul(MaskedLoad(masks.left, in - 1), tap(3));
  FloatVector third = hn::Mul(MaskedLoad(masks.below_left, down - 1), tap(6));
  first = hn::MulAdd(MaskedLoad(masks.above, up), tap(1), first);
  second = hn::MulAdd(LoadAll(in), tap(4), second);
  third = hn::MulAdd(MaskedLoad(masks.below, down), tap(7), third);
  first = hn::MulAdd(MaskedLoad(masks.above_right, up + 1), tap(2), first);
  second = hn::MulAdd(MaskedLoad(masks.right, in + 1), tap(5), second);
  third = hn::MulAdd(MaskedLoad(masks.below_right, down + 1), tap(8), third);
  return hn::Add(hn::Add(first, second), third);
}

// Some channels of one panel.
struct SmallPanel {
  int64_t first_channel;
  int64_t last_channel;
  int64_t width;   // positions in the panel
  int64_t valid;   // positions of the batch from the panel's first on
  int64_t offset;  // of the panel in the buffers
};

// Positions of a panel's channels that are computed together: what they read and write fits the first cache.
constexpr int64_t kPositionsTogether = 2048;

// Vector by vector of positions, so that the masks, which cost as much as the sums, are made once for many channels.
template <bool kResidual, typename T>
HWY_INLINE void RunSmallPanel(const KernelArgs& args, const DepthwiseWeight& weight, const SmallPanel& panel) {
  const FloatTag d;
  const FloatVector low = hn::Set(d, args.problem->epilogue.low);
  const FloatVector high = hn::Set(d, args.problem->epilogue.high);
  const std::vector<BlockMasks>& blocks = weight.masks();
  for (int64_t i = 0; i < panel.width; i += kLanes) {
    // A panel starts with an image, and one of several images has a period of one block.
    const BlockMasks& block = blocks[i / kPositionUnit % static_cast<int64_t>(blocks.size())];
    const SameMasks masks(d, block, i % kPositionUnit, panel.valid - i);
    int64_t at = panel.offset + panel.first_channel * panel.width + i;
    for (int64_t c = panel.first_channel; c < panel.last_channel; ++c, at += panel.width) {
      FloatVector sums =
          SameSums(d, masks, weight.taps(c), weight.bias(c), args.problem->input.width, InputAs<T>(args, 0) + at);
      if constexpr (kResidual) sums = hn::Add(sums, LoadAll(InputAs<T>(args, 1) + at));
      StoreAll(Clamp(sums, low, high), OutputAs<T>(args) + at);
    }
  }
}

template <typename T>
void RunSmallPlanes(const KernelArgs& args, Stream& stream) {
  const auto& weight = static_cast<const DepthwiseWeight&>(*args.weight);
  const int64_t channels = args.problem->input.channels;
  const PanelGrid grid(args.problem->input.positions());
  CpuStream::From(stream).ParallelRanges(grid.count() * channels, [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t panel = begin / channels; panel * channels < end; ++panel) {
      const int64_t position = grid.Begin(panel);
      const int64_t width = grid.Width(panel);
      const int64_t last = std::min(end - panel * channels, channels);
      for (int64_t c = std::max<int64_t>(begin - panel * channels, 0); c < last;
           c += kPositionsTogether / width) {
        const SmallPanel part{.first_channel = c,
                              .last_channel = std::min(c + kPositionsTogether / width, last),
                              .width = width,
                              .valid = args.problem->input.positions() - position,
                              .offset = position * channels};
        if (args.problem->epilogue.residual) {
          RunSmallPanel<true, T>(args, weight, part);
        } else {
          RunSmallPanel<false, T>(args, weight, part);
        }
      }
    }
  });
}

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

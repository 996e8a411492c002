// Depthwise 3x3 convolution in kPanels, for IsSame3x3. Compiled per target; for targets with vectors of kPositionUnit.
//
// Outputs are computed in the order in which a panel holds them, so that vectors are full however small the plane. What
// a tap reads for 16 of them are 16 neighbouring positions, which lie in two units of 16 wherever panels end: a shuffle
// of both shifts them into place, and masks (plane_masks.h) leave out what is beside the plane. Nothing is copied, and
// all loads and stores are aligned.
#if defined(SWIZZLE_KERNELS_CPU_SHIFTED_PLANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWIZZLE_KERNELS_CPU_SHIFTED_PLANES_INL_H_
#undef SWIZZLE_KERNELS_CPU_SHIFTED_PLANES_INL_H_
#else
#define SWIZZLE_KERNELS_CPU_SHIFTED_PLANES_INL_H_
#endif

#include <algorithm>
#include <optional>
#include <vector>

#include "kernels/cpu/elementwise/function.h"
#include "kernels/cpu/runtime/cpu_stream.h"
#include "kernels/cpu/simd/in_register-inl.h"
#include "kernels/cpu/simd/partial_vector-inl.h"
#include "kernels/cpu/window/depthwise_dense.h"
#include "kernels/cpu/window/shifted_planes.h"

HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3

static_assert(kLanes == kPositionUnit);

// Channels that are computed in turn for a unit. With more, what is worked out for the unit costs less; with fewer,
// what it shares with the next row of the plane is still in the first cache. 16 are up to 15 % slower on Zen 4.
constexpr int64_t kShiftedChannels = 32;

// From one channel's taps to the next: nine, and the bias.
constexpr int64_t kShiftedTaps = 10;

// The three taps of one row of the window for one unit of outputs, channel after channel. What the left tap reads
// starts in the last lane of the first of three units, or, unless kThree, anywhere else in the first of two. kEven: all
// units have the same stride.
template <bool kThree, bool kEven>
class TapRow {
 public:
  static constexpr int kUnits = kThree ? 3 : 2;

  // places: of the units that are read. lane: where the left tap starts in the first.
  HWY_INLINE TapRow(const float* input, const UnitPlace* places, int64_t lane, int64_t channel) {
    SWIZZLE_UNROLL
    for (int i = 0; i < kUnits; ++i) {
      at_[i] = input + places[i].offset + channel * places[i].channel_stride;
      stride_[i] = places[i].channel_stride;
    }
    const hn::RebindToSigned<FloatTag> di;
    SWIZZLE_UNROLL
    for (int i = 0; i < 3; ++i) lanes_[i] = hn::Iota(di, static_cast<int32_t>(kThree ? (15 + i) % 16 : lane + i));
  }

  // Adds the products with the three taps, for the next channel. offset: of its units from the first channel's, if
  // kEven.
  template <bool kEdge>
  HWY_INLINE FloatVector Add(FloatVector sum, const float* taps, int64_t offset, FloatMask left, FloatMask middle,
                             FloatMask right) {
    const FloatTag d;
    FloatVector units[kUnits];
    SWIZZLE_UNROLL
    for (int i = 0; i < kUnits; ++i) {
      units[i] = InRegister(hn::Load(d, kEven ? at_[i] + offset : at_[i]));
      if constexpr (!kEven) at_[i] += stride_[i];
    }
    sum = hn::MulAdd(Shift(left, units[0], units[1], 0), hn::Set(d, taps[0]), sum);
    FloatVector below = units[1];
    if constexpr (!kThree) {
      below = kEdge ? Shift(middle, units[0], units[1], 1)
                    : FloatVector{_mm512_permutex2var_ps(units[0].raw, lanes_[1].raw, units[1].raw)};
    } else if constexpr (kEdge) {
      below = hn::IfThenElseZero(middle, below);
    }
    sum = hn::MulAdd(below, hn::Set(d, taps[1]), sum);
    return hn::MulAdd(Shift(right, units[kUnits - 2], units[kUnits - 1], 2), hn::Set(d, taps[2]), sum);
  }

 private:
  HWY_INLINE FloatVector Shift(FloatMask inside, FloatVector low, FloatVector high, int tap) const {
    return FloatVector{_mm512_maskz_permutex2var_ps(inside.raw, low.raw, lanes_[tap].raw, high.raw)};
  }

  const float* at_[kUnits];
  int64_t stride_[kUnits];
  hn::Vec<hn::RebindToSigned<FloatTag>> lanes_[3];
};

// One unit of outputs, and the channels to compute.
struct ShiftedUnit {
  const UnitPlace* place;  // those of units before and behind it stand beside it
  BlockMasks masks;
  int64_t first_channel;
  int64_t last_channel;
};

// From an output to what the left taps of the row above and the row below read: units, and lanes in the first of them.
struct RowShift {
  explicit RowShift(int64_t positions) : units(positions >> 4), lane(positions & 15) {}
  int64_t units;
  int64_t lane;
};

// kWhole: rows of the plane are whole units. kEdge: some taps are above or below the plane. kEven: all units that are
// read or written have the same stride.
template <bool kWhole, bool kResidual, bool kEdge, bool kEven>
HWY_INLINE void RunShiftedUnit(const KernelArgs& args, const DepthwiseWeight& weight, const ShiftedUnit& unit) {
  const FloatTag d;
  const FloatVector low = hn::Set(d, args.problem->epilogue.low);
  const FloatVector high = hn::Set(d, args.problem->epilogue.high);
  const auto mask = [](int bits) HWY_ATTR { return FloatMask{static_cast<__mmask16>(bits)}; };
  const int above = kEdge ? unit.masks.above : 0xffff, below = kEdge ? unit.masks.below : 0xffff;
  const int left = unit.masks.left, right = unit.masks.right;
  const RowShift up(-args.problem->input.width - 1), down(args.problem->input.width - 1);
  const float* input = args.Input<float>(0);
  TapRow<kWhole, kEven> up_row(input, unit.place + up.units, up.lane, unit.first_channel);
  TapRow<true, kEven> same_row(input, unit.place - 1, 15, unit.first_channel);
  TapRow<kWhole, kEven> down_row(input, unit.place + down.units, down.lane, unit.first_channel);
  const int64_t stride = unit.place->channel_stride;
  const int64_t begin = unit.place->offset + unit.first_channel * stride;
  float* output = args.Output<float>() + begin;
  const float* residual = kResidual ? args.Residual<float>() + begin : nullptr;
  const float* taps = weight.taps(unit.first_channel);
  const float* const taps_end = weight.taps(unit.last_channel);
  for (int64_t offset = 0; taps != taps_end; offset += stride, taps += kShiftedTaps) {
    FloatVector sum = up_row.template Add<kEdge>(hn::Set(d, taps[9]), taps, offset, mask(left & above), mask(above),
                                                 mask(right & above));
    const FloatVector same =
        same_row.template Add<false>(hn::Zero(d), taps + 3, offset, mask(left), mask(0), mask(right));
    sum = down_row.template Add<kEdge>(sum, taps + 6, offset, mask(left & below), mask(below), mask(right & below));
    sum = hn::Add(sum, same);
    if constexpr (kResidual) sum = hn::Add(sum, hn::Load(d, residual + offset));
    hn::Store(Clamp(sum, low, high), d, output + offset);
  }
}

// Whether what a unit's outputs read has the stride of the unit itself.
template <bool kWhole>
HWY_INLINE bool IsEven(const UnitPlace* place, int64_t width) {
  const auto even = [place](int64_t unit) { return place[unit].channel_stride == place->channel_stride; };
  const int64_t up = RowShift(-width - 1).units, down = RowShift(width - 1).units;
  constexpr int64_t kLast = kWhole ? 2 : 1;
  return even(-1) && even(1) && even(up) && even(up + kLast) && even(down) && even(down + kLast);
}

// Ends channels [first, last) of all units of the panels of a range (FirstRange): what was just stored.
inline void ApplyFunctionTo(const KernelArgs& args, const UnitPlace* places, int64_t units, int64_t first,
                            int64_t last) {
  const std::optional<Function>& function = args.problem->epilogue.function;
  if (!function) return;
  for (int64_t u = 0; u < units;) {
    const int64_t stride = places[u].channel_stride;  // as wide as the panel
    ApplyFunction(*function, args.Output<float>() + places[u].offset + first * stride, (last - first) * stride);
    u += stride / kPositionUnit;
  }
}

template <bool kWhole, bool kResidual>
void RunShiftedUnits(const KernelArgs& args, const DepthwiseWeight& weight, const ShiftedPart& part) {
  const std::vector<BlockMasks>& blocks = weight.masks();
  const UnitRange& range = part.range;
  for (int64_t c = range.first_channel; c < range.last_channel; c += kShiftedChannels) {
    int64_t block = range.first_unit % static_cast<int64_t>(blocks.size());
    for (int64_t u = 0; u < range.units; ++u, ++block) {
      if (block == static_cast<int64_t>(blocks.size())) block = 0;
      const ShiftedUnit unit{part.places + u, blocks[block], c, std::min(c + kShiftedChannels, range.last_channel)};
      const bool edge = (unit.masks.above & unit.masks.below) != 0xffff;
      if (IsEven<kWhole>(unit.place, args.problem->input.width)) {
        edge ? RunShiftedUnit<kWhole, kResidual, true, true>(args, weight, unit)
             : RunShiftedUnit<kWhole, kResidual, false, true>(args, weight, unit);
      } else {
        edge ? RunShiftedUnit<kWhole, kResidual, true, false>(args, weight, unit)
             : RunShiftedUnit<kWhole, kResidual, false, false>(args, weight, unit);
      }
    }
    ApplyFunctionTo(args, part.places, range.units, c, std::min(c + kShiftedChannels, range.last_channel));
  }
}

inline void RunShiftedPlanes(const KernelArgs& args, Stream& stream) {
  const auto& weight = static_cast<const DepthwiseWeight&>(*args.weight);
  const Problem& problem = *args.problem;
  const bool whole = problem.input.width % kPositionUnit == 0;
  const auto run = problem.epilogue.residual ? (whole ? RunShiftedUnits<true, true> : RunShiftedUnits<false, true>)
                                             : (whole ? RunShiftedUnits<true, false> : RunShiftedUnits<false, false>);
  ForEachShiftedPart(args, CpuStream::From(stream), [&](const ShiftedPart& part) { run(args, weight, part); });
}

#endif  // HWY_TARGET == HWY_AVX3

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

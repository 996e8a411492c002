// Depthwise 3x3 convolution of stride 2 in kPanels, for IsHalved3x3. Compiled per target; for targets with vectors of
// kPositionUnit.
//
// As in shifted_planes-inl.h, outputs are computed in the order in which a panel holds them and nothing is copied. For
// a row of the window one shuffle of two units of inputs makes the first columns of 16 outputs' pairs, another the
// second ones; where a row of the plane ends among the outputs, each further unit takes a shuffle more for either. The
// outer taps are those of the neighbours, a shuffle by one lane.
#if defined(SWIZZLE_KERNELS_CPU_HALVED_PLANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SWIZZLE_KERNELS_CPU_HALVED_PLANES_INL_H_
#undef SWIZZLE_KERNELS_CPU_HALVED_PLANES_INL_H_
#else
#define SWIZZLE_KERNELS_CPU_HALVED_PLANES_INL_H_
#endif

#include <algorithm>

#include "kernels/cpu/runtime/cpu_stream.h"
#include "kernels/cpu/simd/partial_vector-inl.h"
#include "kernels/cpu/window/depthwise_dense.h"
#include "kernels/cpu/window/halved_planes.h"
#include "kernels/cpu/window/shifted_planes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3

// As kShiftedChannels: more is worked out for a unit, and it shares less.
constexpr int64_t kHalvedChannels = 64;

// One unit of outputs, and the channels to compute.
struct HalvedWork {
  // unit_of_inputs: counted from the period's first.
  const UnitPlace& Input(int32_t unit_of_inputs) const { return inputs[period_begin + unit_of_inputs]; }

  const HalvedUnit& unit;
  const UnitPlace* inputs;  // of the part
  int64_t period_begin;     // where the period's first unit would be among them; may be negative
  const UnitPlace& output;
  int64_t first_channel;
  int64_t last_channel;
};

// The three taps of one row of the window for one unit of outputs, channel after channel. kLeft: the outer tap is the
// left one. kEven: all units that are read have the same stride.
template <int kSources, bool kLeft, bool kEven>
class HalvedTaps {
 public:
  // width: of the input plane.
  HWY_INLINE HalvedTaps(const float* input, const HalvedWork& work, int tap_row, int64_t width) {
    const HalvedUnit& unit = work.unit;
    const HalvedRow& row = unit.rows[tap_row];
    SWIZZLE_UNROLL
    for (int i = 0; i <= kSources; ++i) {
      const UnitPlace& place = work.Input(i < kSources ? row.sources[i] : row.outer);
      at_[i] = input + place.offset + work.first_channel * place.channel_stride;
      stride_[i] = place.channel_stride;
    }
    const hn::RebindToSigned<FloatTag> d;
    const auto pairs = hn::Add(hn::LoadU(d, unit.pairs), hn::Set(d, static_cast<int32_t>(tap_row * width)));
    const auto units = hn::ShiftRight<4>(pairs);
    const auto lanes = hn::And(pairs, hn::Set(d, 15));
    inside_ = FloatMask{row.inside};
    first_ = hn::Add(lanes, hn::IfThenElseZero(hn::Eq(units, hn::Set(d, row.sources[1])), hn::Set(d, 16)));
    second_ = hn::Add(first_, hn::Set(d, 1));
    SWIZZLE_UNROLL
    for (int i = 2; i < kSources; ++i) {
      others_[i - 2] = hn::And(inside_, hn::RebindMask(FloatTag(), hn::Eq(units, hn::Set(d, row.sources[i]))));
    }
    // Lanes of the neighbours; the one that has none reads the outer unit, the second operand.
    constexpr int kAlone = kLeft ? 0 : 15;
    const auto alone = hn::Eq(hn::Iota(d, 0), hn::Set(d, kAlone));
    const auto columns = hn::And(hn::Add(pairs, hn::Set(d, kLeft ? -1 : 2)), hn::Set(d, 15));
    outer_ = hn::IfThenElse(alone, hn::Add(columns, hn::Set(d, 16)), hn::Iota(d, kLeft ? -1 : 1));
    outer_inside_ = FloatMask{static_cast<__mmask16>(row.inside & unit.outer_inside)};
  }

  // Adds the products with the three taps, for the next channel. offset: of its units from the first channel's, if
  // kEven.
  HWY_INLINE FloatVector Add(FloatVector sum, const float* taps, int64_t offset) {
    const FloatTag d;
    FloatVector units[kSources + 1];
    SWIZZLE_UNROLL
    for (int i = 0; i <= kSources; ++i) {
      units[i] = InRegister(hn::Load(d, kEven ? at_[i] + offset : at_[i]));
      if constexpr (!kEven) at_[i] += stride_[i];
    }
    const FloatVector first = Gather(first_.raw, units), second = Gather(second_.raw, units);
    const FloatVector outer{
        _mm512_maskz_permutex2var_ps(outer_inside_.raw, (kLeft ? second : first).raw, outer_.raw, units[kSources].raw)};
    sum = hn::MulAdd(kLeft ? outer : first, hn::Set(d, taps[0]), sum);
    sum = hn::MulAdd(kLeft ? first : second, hn::Set(d, taps[1]), sum);
    return hn::MulAdd(kLeft ? second : outer, hn::Set(d, taps[2]), sum);
  }

 private:
  HWY_INLINE FloatVector Gather(__m512i lanes, const FloatVector* units) const {
    __m512 gathered = _mm512_maskz_permutex2var_ps(inside_.raw, units[0].raw, lanes, units[1].raw);
    SWIZZLE_UNROLL
    for (int i = 2; i < kSources; ++i) {
      gathered = _mm512_mask_permutexvar_ps(gathered, others_[i - 2].raw, lanes, units[i].raw);
    }
    return FloatVector{gathered};
  }

  using Lanes = hn::Vec<hn::RebindToSigned<FloatTag>>;
  const float* at_[kSources + 1];
  int64_t stride_[kSources + 1];
  Lanes first_, second_, outer_;
  FloatMask inside_, outer_inside_;
  FloatMask others_[std::max(kSources - 2, 1)];  // the outputs whose pairs are in the third source, the fourth, ...
};

template <int kSources, bool kLeft, bool kEven>
void RunHalvedUnit(const KernelArgs& args, const DepthwiseWeight& weight, const HalvedWork& work) {
  const FloatTag d;
  const Problem& problem = *args.problem;
  const FloatVector low = hn::Set(d, problem.epilogue.low);
  const FloatVector high = hn::Set(d, problem.epilogue.high);
  using Taps = HalvedTaps<kSources, kLeft, kEven>;
  const float* const input = args.Input<float>(0);
  const auto row = [&](int i) HWY_ATTR { return Taps(input, work, i, problem.input.width); };
  Taps rows[3] = {row(0), row(1), row(2)};
  const int64_t input_stride = work.Input(work.unit.rows[1].sources[0]).channel_stride;
  const int64_t output_stride = work.output.channel_stride;
  const int64_t begin = work.output.offset + work.first_channel * output_stride;
  float* output = args.Output<float>() + begin;
  const float* residual = problem.epilogue.residual ? args.Residual<float>() + begin : nullptr;
  const float* taps = weight.taps(work.first_channel);
  const float* const taps_end = weight.taps(work.last_channel);
  for (int64_t offset = 0; taps != taps_end; offset += input_stride, taps += kShiftedTaps) {
    FloatVector sum = rows[0].Add(hn::Set(d, taps[9]), taps, offset);
    const FloatVector middle = rows[1].Add(hn::Zero(d), taps + 3, offset);
    sum = hn::Add(rows[2].Add(sum, taps + 6, offset), middle);
    if (residual != nullptr) {
      sum = hn::Add(sum, hn::Load(d, residual));
      residual += output_stride;
    }
    hn::Store(Clamp(sum, low, high), d, output);
    output += output_stride;
  }
}

inline bool IsEven(const HalvedWork& work) {
  const int64_t stride = work.Input(work.unit.rows[1].sources[0]).channel_stride;
  const auto even = [&](int32_t source) { return work.Input(source).channel_stride == stride; };
  return std::ranges::all_of(
      work.unit.rows, [&](const HalvedRow& row) { return even(row.outer) && std::ranges::all_of(row.sources, even); });
}

template <bool kLeft, bool kEven>
void RunHalvedUnitOf(const KernelArgs& args, const DepthwiseWeight& weight, const HalvedWork& work) {
  static_assert(HalvedRow::kMaxSources == 5);
  switch (work.unit.max_sources) {
    case 5:
      return RunHalvedUnit<5, kLeft, kEven>(args, weight, work);
    case 4:
      return RunHalvedUnit<4, kLeft, kEven>(args, weight, work);
    case 3:
      return RunHalvedUnit<3, kLeft, kEven>(args, weight, work);
    default:
      return RunHalvedUnit<2, kLeft, kEven>(args, weight, work);
  }
}

template <bool kLeft>
void RunHalvedPart(const KernelArgs& args, const DepthwiseWeight& weight, const HalvedPart& part) {
  const HalvedPeriod& period = weight.halved();
  const auto period_units = static_cast<int64_t>(period.units.size());
  const UnitRange& range = part.range;
  for (int64_t c = range.first_channel; c < range.last_channel; c += kHalvedChannels) {
    int64_t in_period = range.first_unit % period_units;
    int64_t period_begin = range.first_unit / period_units * period.input_units - part.first_input;
    for (int64_t u = 0; u < range.units; ++u, ++in_period) {
      if (in_period == period_units) {
        in_period = 0;
        period_begin += period.input_units;
      }
      const HalvedWork work{period.units[in_period], part.inputs, period_begin,
                            part.outputs[u],         c,           std::min(c + kHalvedChannels, range.last_channel)};
      IsEven(work) ? RunHalvedUnitOf<kLeft, true>(args, weight, work)
                   : RunHalvedUnitOf<kLeft, false>(args, weight, work);
    }
    ApplyFunctionTo(args, part.outputs, range.units, c, std::min(c + kHalvedChannels, range.last_channel));
  }
}

inline void RunHalvedPlanes(const KernelArgs& args, Stream& stream) {
  const auto& weight = static_cast<const DepthwiseWeight&>(*args.weight);
  const Problem& problem = *args.problem;
  const auto run = problem.window().pad_left == 1 ? RunHalvedPart<true> : RunHalvedPart<false>;
  ForEachUnitRange(problem.output, CpuStream::From(stream), [&](int64_t slot, const UnitRange& range) {
    auto* const places = reinterpret_cast<UnitPlace*>(args.workspace.data() + slot * HalvedWorkspaceBytes(problem));
    run(args, weight, PlaceHalvedPart(problem, weight.halved(), range, places));
  });
}

#endif  // HWY_TARGET == HWY_AVX3

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

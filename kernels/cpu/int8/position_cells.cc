#include "kernels/cpu/int8/position_cells.h"

#include <algorithm>

#include "kernels/cpu/elementwise/function.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/int8/position_cells.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/simd/partial_vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {
namespace {

using Tag = FloatTag;
using Floats = FloatVector;
constexpr int kUnitVectors = kPositionUnit / kLanes;
// Positions of neighbouring units that are read together, as far as registers reach.
constexpr int kMostUnits = kLanes == kPositionUnit ? RealUnits::kUnits : 1;

// Of one position's values: scale and zero point, for a range of `low` <= 0 to `high` >= 0.
struct Steps {
  Floats scale, inverse, zero_point;
};

HWY_INLINE Steps StepsOf(Floats low, Floats high) {
  constexpr float kLeastRange = 1e-30f, kSteps = 255.0f;  // what is less is nothing: its inverse would be infinite
  const Tag d;
  const Floats range = hn::Sub(high, low);
  const Floats one = hn::Set(d, 1.0f);
  const Floats scale = hn::IfThenElse(hn::Gt(range, hn::Set(d, kLeastRange)), hn::Div(range, hn::Set(d, kSteps)), one);
  const Floats zero_point = hn::Round(hn::Div(hn::Neg(low), scale));
  return {scale, hn::Div(one, scale), hn::Min(zero_point, hn::Set(d, kSteps))};
}

template <int kUnits>
void QuantiseUnits(const float* from, int64_t stride, int64_t rows, uint8_t* to, float* scales, float* offsets) {
  constexpr int kVectors = kUnits * kUnitVectors;
  const Tag d;
  const hn::Rebind<uint8_t, Tag> bytes;
  Floats low[kVectors], high[kVectors];
  for (int j = 0; j < kVectors; ++j) low[j] = high[j] = hn::Zero(d);
  for (int64_t row = 0; row < rows; ++row) {
    HWY_DEFAULT_UNROLL for (int j = 0; j < kVectors; ++j) {
      const Floats x = hn::LoadU(d, from + row * stride + j * kLanes);
      low[j] = hn::Min(low[j], x);
      high[j] = hn::Max(high[j], x);
    }
  }
  Floats inverse[kVectors], zero_point[kVectors];
  for (int j = 0; j < kVectors; ++j) {
    const Steps steps = StepsOf(low[j], high[j]);
    inverse[j] = steps.inverse;
    zero_point[j] = steps.zero_point;
    hn::StoreU(steps.scale, d, scales + j * kLanes);
    hn::StoreU(hn::Mul(steps.scale, steps.zero_point), d, offsets + j * kLanes);
  }
  const Floats zero = hn::Zero(d), most = hn::Set(d, 255.0f);
  for (int64_t row = 0; row < rows; ++row) {
    HWY_DEFAULT_UNROLL for (int j = 0; j < kVectors; ++j) {
      const Floats step = hn::MulAdd(hn::LoadU(d, from + row * stride + j * kLanes), inverse[j], zero_point[j]);
      const auto whole = hn::NearestInt(hn::Min(hn::Max(step, zero), most));
      hn::StoreU(hn::DemoteTo(bytes, whole), bytes, to + row * kMaxPanelWidth + j * kLanes);
    }
  }
}

// Units from `unit` on that lie beside each other.
template <typename Units>
int Neighbours(const Units& units, int unit) {
  int count = 1;
  while (unit + count < RealUnits::kUnits && units.stride[unit + count] == units.stride[unit] &&
         units.first[unit + count] == units.first[unit] + count * kPositionUnit) {
    ++count;
  }
  return count;
}

int UnitsOf(const RealUnits& units) {
  int count = 0;
  while (count < RealUnits::kUnits && units.first[count] != nullptr) ++count;
  return count;
}

using QuantiseFunction = void (*)(const float*, int64_t, int64_t, uint8_t*, float*, float*);

void Quantise(const ReadUnits& from, int begin, int end, int64_t rows, uint8_t* bytes, PositionSteps& steps) {
  constexpr QuantiseFunction kUnits[] = {QuantiseUnits<1>, QuantiseUnits < kMostUnits < 2 ? 1 : 2 >,
                                         QuantiseUnits < kMostUnits < 3 ? 1 : 3 >, QuantiseUnits<kMostUnits>};
  for (int unit = begin; unit < end && from.first[unit] != nullptr;) {
    const int count = kMostUnits == 1 ? 1 : std::min(Neighbours(from, unit), end - unit);
    const int64_t at = unit * kPositionUnit;
    kUnits[count - 1](from.first[unit], from.stride[unit], rows, bytes + at, steps.scale + at, steps.offset + at);
    unit += count;
  }
}

// kStores: into the output, else in place.
template <bool kSteps, bool kStores>
void ToReals(float* products, std::span<const uint32_t> rows, const RealUnits& output, const RowEnds& ends) {
  const Tag d;
  const Epilogue& epilogue = *ends.epilogue;
  const Floats low = hn::Set(d, epilogue.low), high = hn::Set(d, epilogue.high);
  for (size_t r = 0; r < rows.size(); ++r, products += kMaxPanelWidth) {
    const uint32_t row = rows[r];
    if (row == QuadRows::kNoRow) continue;
    const Floats bias = hn::Set(d, kSteps ? ends.bias[row] : 0.0f), sum = hn::Set(d, kSteps ? ends.sums[row] : 0.0f);
    HWY_DEFAULT_UNROLL for (int unit = 0; unit < RealUnits::kUnits; ++unit) {
      HWY_DEFAULT_UNROLL for (int64_t i = 0; i < kPositionUnit; i += kLanes) {
        const int64_t at = unit * kPositionUnit + i;
        Floats value = hn::Load(d, products + at);
        if constexpr (kSteps) {
          const Floats start = hn::NegMulAdd(sum, hn::Load(d, ends.steps->offset + at), bias);
          value = hn::MulAdd(value, hn::Load(d, ends.steps->scale + at), start);
        }
        float* const to = output.first[unit] == nullptr ? nullptr : output.first[unit] + row * output.stride[unit] + i;
        if (epilogue.residual && to != nullptr) value = hn::Add(value, hn::LoadU(d, to + ends.residual));
        value = Clamp(value, low, high);
        if constexpr (!kStores) hn::Store(value, d, products + at);
        if (kStores && to != nullptr) hn::StoreU(value, d, to);
      }
    }
  }
}

void StoreBytes(const float* products, std::span<const uint32_t> rows, const Quantised& as, uint8_t* bytes) {
  for (size_t r = 0; r < rows.size(); ++r, products += kMaxPanelWidth) {
    if (rows[r] == QuadRows::kNoRow) continue;
    QuantiseRun(products, kMaxPanelWidth, as, bytes + int64_t{rows[r]} * kMaxPanelWidth);
  }
}

void StoreReals(const float* products, std::span<const uint32_t> rows, const RealUnits& output) {
  const Tag d;
  const int units = UnitsOf(output);
  for (size_t r = 0; r < rows.size(); ++r, products += kMaxPanelWidth) {
    const uint32_t row = rows[r];
    if (row == QuadRows::kNoRow) continue;
    for (int unit = 0; unit < units; ++unit) {
      float* const to = output.first[unit] + row * output.stride[unit];
      const float* const from = products + unit * kPositionUnit;
      for (int64_t i = 0; i < kPositionUnit; i += kLanes) hn::StoreU(hn::Load(d, from + i), d, to + i);
    }
  }
}

template <bool kSteps>
void FinishRows(float* products, std::span<const uint32_t> rows, const PanelBytes& output, const RowEnds& ends) {
  static constexpr RealUnits kNone;
  const RealUnits& reals = output.reals == nullptr ? kNone : *output.reals;
  const auto& function = ends.epilogue->function;
  if (!function && output.bytes == nullptr) return ToReals<kSteps, true>(products, rows, reals, ends);
  ToReals<kSteps, false>(products, rows, reals, ends);
  if (function) ApplyFunction(*function, products, static_cast<int64_t>(rows.size()) * kMaxPanelWidth);
  if (output.bytes != nullptr) return StoreBytes(products, rows, *ends.epilogue->requantise, output.bytes);
  StoreReals(products, rows, reals);
}

void Finish(float* products, std::span<const uint32_t> rows, const PanelBytes& output, const RowEnds& ends) {
  const auto finish = ends.steps != nullptr ? FinishRows<true> : FinishRows<false>;
  finish(products, rows, output, ends);
}

}  // namespace

const PositionCells kPositionCells = {.quantise = Quantise, .finish = Finish};

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

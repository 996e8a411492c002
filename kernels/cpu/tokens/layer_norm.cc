#include "kernels/cpu/tokens/layer_norm.h"

#include "kernels/cpu/tokens/scale_and_bias.h"
#include "kernels/whole_numbers/steps.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/tokens/layer_norm.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "kernels/cpu/runtime/cpu_stream.h"
#include "kernels/cpu/simd/elements-inl.h"

HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {
namespace {

constexpr int kUnitVectors = static_cast<int>(kPositionUnit / kLanes);
// The most units of positions that are summed side by side in registers.
constexpr int kMaxUnits = HWY_TARGET == HWY_EMU128 ? 1 : static_cast<int>(kMaxPanelWidth / kPositionUnit);

// What is common to all positions.
struct Normalisation {
  explicit Normalisation(const KernelArgs& args)
      : scale(static_cast<const ScaleAndBias&>(*args.weight).scale()),
        bias(static_cast<const ScaleAndBias&>(*args.weight).bias()),
        groups(args.problem->normalisation().groups),
        channels(args.problem->input.channels / groups),
        epsilon(args.problem->normalisation().epsilon),
        centred(args.problem->normalisation().centred) {}

  // That of a group's channels, which begin at FirstChannel(group).
  Normalisation Of(int64_t group) const {
    Normalisation own = *this;
    own.scale += FirstChannel(group);
    own.bias += FirstChannel(group);
    return own;
  }
  int64_t FirstChannel(int64_t group) const { return group * channels; }

  // What sums are multiplied by to get means: all of them are 0 without centring.
  HWY_INLINE FloatVector ToMean() const {
    return hn::Set(FloatTag(), centred ? 1.0f / static_cast<float>(channels) : 0.0f);
  }

  const float* scale;
  const float* bias;
  int64_t groups;
  int64_t channels;  // of a group
  float epsilon;
  bool centred;
};

// From the sums of the differences from a rounded mean and of their squares: the mean's correction, and what the
// differences are multiplied by.
struct Moments {
  HWY_INLINE Moments(FloatVector differences, FloatVector squares, const Normalisation& norm) {
    const FloatTag d;
    const FloatVector inverse = hn::Set(d, 1.0f / static_cast<float>(norm.channels));
    correction = hn::Mul(differences, norm.ToMean());
    const FloatVector variance = hn::Mul(hn::NegMulAdd(correction, differences, squares), inverse);
    factor = hn::Div(hn::Set(d, 1.0f), hn::Sqrt(hn::Add(hn::Max(variance, hn::Zero(d)), hn::Set(d, norm.epsilon))));
  }

  FloatVector correction;
  FloatVector factor;
};

// Where results go: rows of channels as they are read.
template <typename T>
struct StoredRows {
  T* first;
  int64_t width;

  HWY_INLINE void Store(FloatVector result, int64_t channel, int64_t position) const {
    StoreAll(result, first + channel * width + position);
  }
  void Skip(int64_t positions) { first += positions; }
};

// Or of kFullPanels, as QuantizeLinear makes bytes.
struct StoredBytes {
  uint8_t* first;
  Quantised as;

  HWY_INLINE void Store(FloatVector result, int64_t channel, int64_t position) const {
    constexpr float kMost = 65536.0f;  // what is beyond 32 bits has no nearest
    const FloatTag d;
    const hn::Rebind<int32_t, FloatTag> words;
    const hn::Rebind<uint8_t, FloatTag> bytes;
    const FloatVector steps = hn::Div(result, hn::Set(d, as.scale));
    const auto whole = hn::NearestInt(hn::Min(hn::Max(steps, hn::Set(d, -kMost)), hn::Set(d, kMost)));
    const auto held = hn::DemoteTo(bytes, hn::Add(whole, hn::Set(words, as.zero_point)));
    hn::StoreU(held, bytes, first + channel * kMaxPanelWidth + position);
  }
  void Skip(int64_t positions) { first += positions; }
};

// kUnits units of positions of one panel; rows of channels lie `width` elements apart.
template <int kUnits, typename T, typename Output>
void NormaliseUnits(const Normalisation& norm, const T* input, int64_t width, const Output& output) {
  constexpr int kVectors = kUnits * kUnitVectors;
  const FloatTag d;
  FloatVector sums[kVectors], means[kVectors], differences[kVectors], squares[kVectors];
  SWIZZLE_UNROLL for (int j = 0; j < kVectors; ++j) sums[j] = differences[j] = squares[j] = hn::Zero(d);
  for (int64_t c = 0; c < norm.channels; ++c) {
    const T* row = input + c * width;
    SWIZZLE_UNROLL for (int j = 0; j < kVectors; ++j) sums[j] = hn::Add(sums[j], LoadAll(row + j * kLanes));
  }
  const FloatVector to_mean = norm.ToMean();
  SWIZZLE_UNROLL for (int j = 0; j < kVectors; ++j) means[j] = hn::Mul(sums[j], to_mean);
  for (int64_t c = 0; c < norm.channels; ++c) {
    const T* row = input + c * width;
    SWIZZLE_UNROLL for (int j = 0; j < kVectors; ++j) {
      const FloatVector difference = hn::Sub(LoadAll(row + j * kLanes), means[j]);
      differences[j] = hn::Add(differences[j], difference);
      squares[j] = hn::MulAdd(difference, difference, squares[j]);
    }
  }
  FloatVector corrections[kVectors], factors[kVectors];
  SWIZZLE_UNROLL for (int j = 0; j < kVectors; ++j) {
    const Moments moments(differences[j], squares[j], norm);
    corrections[j] = moments.correction;
    factors[j] = moments.factor;
  }
  for (int64_t c = 0; c < norm.channels; ++c) {
    const FloatVector scale = hn::Set(d, norm.scale[c]), bias = hn::Set(d, norm.bias[c]);
    SWIZZLE_UNROLL for (int j = 0; j < kVectors; ++j) {
      const FloatVector values = LoadAll(input + c * width + j * kLanes);
      const FloatVector difference = hn::Sub(hn::Sub(values, means[j]), corrections[j]);
      output.Store(hn::MulAdd(hn::Mul(difference, factors[j]), scale, bias), c, j * kLanes);
    }
  }
}

// `units` units of positions, as many at once as registers hold.
template <int kUnits = kMaxUnits, typename T, typename Output>
void NormaliseRun(const Normalisation& norm, const T* input, int64_t width, int64_t units, Output output) {
  for (; units >= kUnits; units -= kUnits) {
    NormaliseUnits<kUnits>(norm, input, width, output);
    input += kUnits * kPositionUnit;
    output.Skip(kUnits * kPositionUnit);
  }
  if constexpr (kUnits > 1) {
    if (units > 0) NormaliseRun<kUnits - 1>(norm, input, width, units, output);
  }
}

// kRows neighbouring tokens side by side, each with its channels in a row, `stride` behind the one before. Lanes beyond
// the last channel are kept at the mean.
template <int kRows>
void NormaliseRows(const Normalisation& norm, const float* input, float* output, int64_t stride) {
  const FloatTag d;
  const int64_t channels = norm.channels;
  FloatVector sums[kRows], differences[kRows], squares[kRows];
  SWIZZLE_UNROLL for (int r = 0; r < kRows; ++r) sums[r] = differences[r] = squares[r] = hn::Zero(d);
  for (int64_t c = 0; c < channels; c += kLanes) {
    SWIZZLE_UNROLL for (int r = 0; r < kRows; ++r) {
      sums[r] = hn::Add(sums[r], LoadSome(input + r * stride + c, channels - c));
    }
  }
  FloatVector means[kRows], corrections[kRows], factors[kRows];
  const FloatVector to_mean = norm.ToMean();
  SWIZZLE_UNROLL for (int r = 0; r < kRows; ++r) means[r] = hn::Mul(hn::SumOfLanes(d, sums[r]), to_mean);
  for (int64_t c = 0; c < channels; c += kLanes) {
    SWIZZLE_UNROLL for (int r = 0; r < kRows; ++r) {
      const FloatVector values = LoadSome(input + r * stride + c, channels - c, means[r]);
      const FloatVector difference = hn::Sub(values, means[r]);
      differences[r] = hn::Add(differences[r], difference);
      squares[r] = hn::MulAdd(difference, difference, squares[r]);
    }
  }
  SWIZZLE_UNROLL for (int r = 0; r < kRows; ++r) {
    const Moments moments(hn::SumOfLanes(d, differences[r]), hn::SumOfLanes(d, squares[r]), norm);
    corrections[r] = moments.correction;
    factors[r] = moments.factor;
  }
  for (int64_t c = 0; c < channels; c += kLanes) {
    const int64_t left = channels - c;
    const FloatVector scale = LoadSome(norm.scale + c, left, to_mean), bias = LoadSome(norm.bias + c, left, to_mean);
    SWIZZLE_UNROLL for (int r = 0; r < kRows; ++r) {
      const FloatVector values = LoadSome(input + r * stride + c, left, means[r]);
      const FloatVector difference = hn::Sub(hn::Sub(values, means[r]), corrections[r]);
      const FloatVector result = hn::MulAdd(hn::Mul(difference, factors[r]), scale, bias);
      StoreSome(result, output + r * stride + c, left);
    }
  }
}

// normalise(offset, width, units, position) for runs of units of one panel, which begin at an offset and a position.
// kFull: of one full panel, too.
template <bool kFull, typename Normalise>
void ForEachRun(const KernelArgs& args, Stream& stream, const Normalise& normalise) {
  const PanelGrid grid(args.problem->input.positions());
  const int64_t units = grid.padded_positions() / kPositionUnit, channels = args.problem->input.channels;
  // In FP32 128 bytes of each channel, since processors fetch lines by pairs. In runs of one unit, on twice as many
  // threads, MiniLM took 12 % longer at 128 tokens, 3 % at 512 (16 Sapphire Rapids cores).
  constexpr int64_t kGrain = 2;
  CpuStream::From(stream).ParallelRanges(
      units,
      [&](int64_t, int64_t first, int64_t last) {
        for (int64_t unit = first; unit < last;) {
          const int64_t position = unit * kPositionUnit;
          const int64_t panel = grid.PanelOf(position);
          const int64_t begin = grid.Begin(panel), width = grid.Width(panel);
          int64_t count = std::min((begin + width) / kPositionUnit, last) - unit;
          if (kFull) count = std::min(count, (kMaxPanelWidth - position % kMaxPanelWidth) / kPositionUnit);
          normalise(begin * channels + position - begin, width, count, position);
          unit += count;
        }
      },
      kGrain);
}

template <typename T>
void LayerNormPanels(const KernelArgs& args, Stream& stream) {
  const Normalisation norm(args);
  const T* const input = args.Input<T>(0);
  T* const output = args.Output<T>();
  ForEachRun<false>(args, stream, [&](int64_t offset, int64_t width, int64_t units, int64_t) {
    for (int64_t group = 0; group < norm.groups; ++group) {
      const int64_t first = offset + norm.FirstChannel(group) * width;
      NormaliseRun(norm.Of(group), input + first, width, units, StoredRows<T>{output + first, width});
    }
  });
}

void LayerNormToFullPanels(const KernelArgs& args, Stream& stream) {
  const Normalisation norm(args);
  const auto* const input = args.Input<float>(0);
  auto* const output = args.Output<uint8_t>();
  ForEachRun<true>(args, stream, [&](int64_t offset, int64_t width, int64_t units, int64_t position) {
    const int64_t panel = position / kMaxPanelWidth;
    uint8_t* const rows = output + panel * norm.channels * kMaxPanelWidth + position % kMaxPanelWidth;
    NormaliseRun(norm, input + offset, width, units, StoredBytes{rows, *args.problem->epilogue.requantise});
  });
}

void LayerNormNchw(const KernelArgs& args, Stream& stream) {
  const Normalisation norm(args);
  const float* const input = args.Input<float>(0);
  float* const output = args.Output<float>();
  const int64_t channels = args.problem->input.channels;
  const auto normalise_group = [&](int64_t group, int64_t first, int64_t last) {
    constexpr int kRows = 4;
    const Normalisation own = norm.Of(group);
    const auto at = [&](int64_t token) { return token * channels + norm.FirstChannel(group); };
    int64_t token = first;
    for (; token + kRows <= last; token += kRows) {
      NormaliseRows<kRows>(own, input + at(token), output + at(token), channels);
    }
    for (; token < last; ++token) NormaliseRows<1>(own, input + at(token), output + at(token), channels);
  };
  CpuStream::From(stream).ParallelRanges(args.problem->input.batch, [&](int64_t, int64_t first, int64_t last) {
    for (int64_t group = 0; group < norm.groups; ++group) normalise_group(group, first, last);
  });
}

}  // namespace

void LayerNorm(const KernelArgs& args, Stream& stream) {
  if (args.problem->to.layout == Layout::kNchw) return LayerNormNchw(args, stream);
  if (args.problem->to.layout == Layout::kFullPanels) return LayerNormToFullPanels(args, stream);
  IsBfloat16(args.problem->to) ? LayerNormPanels<Bfloat16>(args, stream) : LayerNormPanels<float>(args, stream);
}

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace swizzle::cpu {

bool AcceptsLayerNorm(const Problem& problem) { return !problem.epilogue.residual; }

bool AcceptsLayerNormToBytes(const Problem& problem) {
  return AcceptsLayerNorm(problem) && problem.normalisation().groups == 1 && WritesBytes(problem, Layout::kFullPanels);
}

bool AcceptsLayerNormOfRows(const Problem& problem) { return AcceptsLayerNorm(problem) && problem.input.plane() == 1; }

StatusOr<std::unique_ptr<PackedWeight>> PrepareLayerNorm(const Weight& weight, const Problem&) {
  return std::make_unique<ScaleAndBias>(weight);
}

}  // namespace swizzle::cpu
#endif  // HWY_ONCE

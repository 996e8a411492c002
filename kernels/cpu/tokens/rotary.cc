#include "kernels/cpu/tokens/rotary.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/tokens/rotary_table.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/tokens/rotary.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "kernels/cpu/runtime/cpu_stream.h"
#include "kernels/cpu/simd/elements-inl.h"

HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {
namespace {

// Calls visit(first, count) for the runs of channels that keep their values.
template <typename Visit>
void ForEachKept(const Rotation& rotation, int64_t channels, const Visit& visit) {
  const auto& [heads, size, pairs] = rotation;
  const int64_t turned = 2 * int64_t{pairs}, all = int64_t{heads} * size;
  for (int64_t head = 0; head < heads && turned < size; ++head) visit(head * size + turned, size - turned);
  if (all < channels) visit(all, channels - all);
}

HWY_INLINE void Turn(FloatVector& a, FloatVector& b, FloatVector cosines, FloatVector sines) {
  const FloatVector turned = hn::NegMulAdd(b, sines, hn::Mul(a, cosines));
  b = hn::MulAdd(a, sines, hn::Mul(b, cosines));
  a = turned;
}

// What some pairs of a unit of positions are multiplied by.
class UnitFactors {
 public:
  static constexpr int64_t kMostPairs = 32;

  // Tokens behind the last have the last one's.
  void Load(const KernelArgs& args, int64_t first_token, int64_t first_pair, int64_t count) {
    const auto& table = static_cast<const RotaryTable&>(*args.weight);
    const std::span<const int32_t> positions = args.sequences->positions;
    const int64_t pairs = args.problem->rotation().pairs;
    for (int64_t i = 0; i < kPositionUnit; ++i) {
      const int64_t token = std::min(first_token + i, args.sequences->tokens() - 1);
      const float* const row = table.Row(positions[static_cast<size_t>(token)]) + first_pair;
      for (int64_t j = 0; j < count; ++j) cosines_[j][i] = row[j];
      for (int64_t j = 0; j < count; ++j) sines_[j][i] = row[pairs + j];
    }
  }

  HWY_INLINE FloatVector Cosines(int64_t pair, int64_t lane) const { return LoadAll(&cosines_[pair][lane]); }
  HWY_INLINE FloatVector Sines(int64_t pair, int64_t lane) const { return LoadAll(&sines_[pair][lane]); }

 private:
  float cosines_[kMostPairs][kPositionUnit], sines_[kMostPairs][kPositionUnit];
};

// A unit of positions of a panel, whose rows of channels lie `width` elements apart.
template <typename T>
void TurnUnit(const KernelArgs& args, int64_t token, const T* input, T* output, int64_t width) {
  const auto& [heads, size, pairs] = args.problem->rotation();
  if (input != output) {
    ForEachKept(args.problem->rotation(), args.problem->output.channels, [&](int64_t first, int64_t count) {
      for (int64_t c = first; c < first + count; ++c) {
        std::memcpy(output + c * width, input + c * width, kPositionUnit * sizeof(T));
      }
    });
  }
  UnitFactors factors;
  for (int64_t first = 0; first < pairs; first += UnitFactors::kMostPairs) {
    const int64_t count = std::min(UnitFactors::kMostPairs, pairs - first);
    factors.Load(args, token, first, count);
    for (int64_t head = 0; head < heads; ++head) {
      for (int64_t j = 0; j < count; ++j) {
        const int64_t at = (head * size + first + j) * width, other = at + pairs * width;
        for (int64_t lane = 0; lane < kPositionUnit; lane += kLanes) {
          FloatVector a = LoadAll(input + at + lane), b = LoadAll(input + other + lane);
          Turn(a, b, factors.Cosines(j, lane), factors.Sines(j, lane));
          StoreAll(a, output + at + lane);
          StoreAll(b, output + other + lane);
        }
      }
    }
  }
}

template <typename T>
void RotaryPanels(const KernelArgs& args, Stream& stream) {
  const T* const input = args.Input<T>(0);
  T* const output = args.Output<T>();
  const PanelGrid grid(args.problem->input.positions());
  const int64_t channels = args.problem->input.channels;
  CpuStream::From(stream).ParallelRanges(
      grid.padded_positions() / kPositionUnit, [&](int64_t, int64_t first, int64_t last) {
        for (int64_t unit = first; unit < last; ++unit) {
          const int64_t token = unit * kPositionUnit, panel = grid.PanelOf(token), begin = grid.Begin(panel);
          const int64_t offset = begin * channels + token - begin;
          TurnUnit(args, token, input + offset, output + offset, grid.Width(panel));
        }
      });
}

void RotaryNchw(const KernelArgs& args, Stream& stream) {
  const auto& table = static_cast<const RotaryTable&>(*args.weight);
  const auto& [heads, size, pairs] = args.problem->rotation();
  const int64_t channels = args.problem->input.channels;
  const auto turn_token = [&](int64_t token) {
    const float* const from = args.Input<float>(0) + token * channels;
    float* const to = args.Output<float>() + token * channels;
    const float* const row = table.Row(args.sequences->positions[static_cast<size_t>(token)]);
    if (from != to) {
      ForEachKept(args.problem->rotation(), channels, [&](int64_t first, int64_t count) {
        std::memcpy(to + first, from + first, static_cast<size_t>(count) * sizeof(float));
      });
    }
    for (int64_t head = 0; head < heads; ++head) {
      for (int64_t j = 0; j < pairs; j += kLanes) {
        const int64_t left = pairs - j, at = head * size + j, other = at + pairs;
        FloatVector a = LoadSome(from + at, left), b = LoadSome(from + other, left);
        Turn(a, b, LoadSome(row + j, left), LoadSome(row + pairs + j, left));
        StoreSome(a, to + at, left);
        StoreSome(b, to + other, left);
      }
    }
  };
  CpuStream::From(stream).ParallelRanges(args.problem->input.batch, [&](int64_t, int64_t first, int64_t last) {
    for (int64_t token = first; token < last; ++token) turn_token(token);
  });
}

}  // namespace

void Rotary(const KernelArgs& args, Stream& stream) {
  if (args.problem->to.layout == Layout::kNchw) return RotaryNchw(args, stream);
  IsBfloat16(args.problem->to) ? RotaryPanels<Bfloat16>(args, stream) : RotaryPanels<float>(args, stream);
}

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace swizzle::cpu {

StatusOr<std::unique_ptr<PackedWeight>> PrepareRotary(const Weight& weight, const Problem&) {
  return std::make_unique<RotaryTable>(weight);
}

}  // namespace swizzle::cpu
#endif  // HWY_ONCE

#include "kernels/cpu/tokens/token_reduction.h"

#include "kernels/base/integers.h"
#include "kernels/cpu/tokens/token_layout.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/tokens/token_reduction.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "kernels/cpu/runtime/cpu_stream.h"
#include "kernels/cpu/simd/elements-inl.h"

HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {
namespace {

// The sum of `count` neighbours whose bias, where there is one, is 0.
template <typename T>
float SumRun(const T* values, const float* bias, int64_t count) {
  const FloatTag d;
  FloatVector sum = hn::Zero(d);
  for (int64_t i = 0; i < count; i += kLanes) {
    const FloatVector some = LoadSome(values + i, count - i);
    if (bias == nullptr) {
      sum = hn::Add(sum, some);
    } else {
      sum = hn::Add(sum, hn::IfThenElseZero(hn::Eq(LoadSome(bias + i, count - i), hn::Zero(d)), some));
    }
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

// The means of up to kLanes neighbouring channels of `tokens` tokens, `stride` floats apart.
void MeanChannels(const float* values, const float* bias, int64_t stride, int64_t tokens, int64_t channels, float scale,
                  float* means) {
  const FloatTag d;
  FloatVector sum = hn::Zero(d);
  for (int64_t i = 0; i < tokens; ++i) {
    if (bias == nullptr || bias[i] == 0.0f) sum = hn::Add(sum, LoadSome(values + i * stride, channels));
  }
  StoreSome(hn::Mul(sum, hn::Set(d, scale)), means, channels);
}

template <typename T>
void MeanTokensPanels(const KernelArgs& args, Stream& stream) {
  const Problem& problem = *args.problem;
  const int64_t channels = problem.input.channels;
  const TokenMatrix from(problem.input.batch, channels, Layout::kPanels);
  const TokenMatrix to(problem.output.batch, channels, Layout::kPanels);
  const T* const input = args.Input<T>(0);
  T* const output = args.Output<T>();
  CpuStream::From(stream).ParallelRanges(problem.output.batch * channels, [&](int64_t, int64_t first, int64_t last) {
    for (int64_t item = first; item < last; ++item) {
      const int64_t sequence = item / channels, channel = item % channels;
      const int64_t begin = args.sequences->begins[sequence], end = args.sequences->begins[sequence + 1];
      float sum = 0;
      for (int64_t token = begin; token < end;) {
        const TokenRun run = from.RunAt(token);
        const int64_t count = std::min(run.tokens, end - token);
        sum += SumRun(input + run.offset + channel * run.channel_stride, BiasFrom(args, token), count);
        token += count;
      }
      const TokenRun mean = to.RunAt(sequence);
      StoreFloat(sum * MeanScale(args, begin, end), output + mean.offset + channel * mean.channel_stride);
    }
  });
}

void MeanTokensNchw(const KernelArgs& args, Stream& stream) {
  const int64_t channels = args.problem->input.channels;
  const int64_t vectors = CeilDiv(channels, kLanes);
  const int64_t items = args.problem->output.batch * vectors;
  const float* const input = args.Input<float>(0);
  float* const output = args.Output<float>();
  CpuStream::From(stream).ParallelRanges(items, [&](int64_t, int64_t first, int64_t last) {
    for (int64_t item = first; item < last; ++item) {
      const int64_t sequence = item / vectors, channel = item % vectors * kLanes;
      const int64_t begin = args.sequences->begins[sequence], end = args.sequences->begins[sequence + 1];
      MeanChannels(input + begin * channels + channel, BiasFrom(args, begin), channels, end - begin, channels - channel,
                   MeanScale(args, begin, end), output + sequence * channels + channel);
    }
  });
}

}  // namespace

void MeanTokens(const KernelArgs& args, Stream& stream) {
  if (args.problem->to.layout == Layout::kNchw) return MeanTokensNchw(args, stream);
  IsBfloat16(args.problem->to) ? MeanTokensPanels<Bfloat16>(args, stream) : MeanTokensPanels<float>(args, stream);
}

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace swizzle::cpu {
namespace {

// The token that TokenChoice means, among those of the batch.
int64_t SelectedToken(const KernelArgs& args, int64_t sequence) {
  const int64_t begin = args.sequences->begins[sequence], end = args.sequences->begins[sequence + 1];
  const int64_t chosen = args.problem->token_choice().token;
  const int64_t token = chosen + (chosen < 0 ? end : begin);
  return token < begin || token >= end ? end - 1 : token;
}

template <typename T>
void SelectTokenOf(const KernelArgs& args, Stream& stream) {
  const Problem& problem = *args.problem;
  const int64_t channels = problem.input.channels;
  const TokenMatrix from(problem.input.batch, channels, problem.from.layout);
  const TokenMatrix to(problem.output.batch, channels, problem.to.layout);
  const T* const input = args.Input<T>(0);
  T* const output = args.Output<T>();
  CpuStream::From(stream).ParallelRanges(problem.output.batch, [&](int64_t, int64_t first, int64_t last) {
    for (int64_t sequence = first; sequence < last; ++sequence) {
      const TokenRun source = from.RunAt(SelectedToken(args, sequence)), target = to.RunAt(sequence);
      const T* values = input + source.offset;
      T* selected = output + target.offset;
      for (int64_t c = 0; c < channels; ++c) selected[c * target.channel_stride] = values[c * source.channel_stride];
    }
  });
}

}  // namespace

void SelectToken(const KernelArgs& args, Stream& stream) {
  IsBfloat16(args.problem->to) ? SelectTokenOf<Bfloat16>(args, stream) : SelectTokenOf<float>(args, stream);
}

}  // namespace swizzle::cpu
#endif  // HWY_ONCE

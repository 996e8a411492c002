#include "kernels/cpu/tokens/permute_tokens.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/cpu/runtime/cpu_stream.h"
#include "kernels/cpu/simd/bfloat16.h"
#include "kernels/cpu/tokens/token_layout.h"

namespace swizzle::cpu {
namespace {

// The place in its sequence that a token's values come from, by its own. Immutable.
class PlaceTable final : public PackedWeight {
 public:
  explicit PlaceTable(const Weight& weight) {
    for (const float place : weight.ToDense().values) places_.push_back(static_cast<int32_t>(place));
  }
  size_t bytes() const override { return places_.size() * sizeof(int32_t); }

  // The token, of the batch's, that `token` takes its values from; where kernels are measured, sequences have none that
  // is so far.
  int64_t SourceOf(const Sequences& sequences, int64_t token) const {
    const int32_t position = sequences.positions[static_cast<size_t>(token)];
    const int64_t source = token - position + places_[static_cast<size_t>(position)];
    return std::clamp<int64_t>(source, 0, sequences.tokens() - 1);
  }

 private:
  std::vector<int32_t> places_;
};

// Sixteen tokens of a panel at a time; those behind the last have the last one's values.
template <typename T>
void PermutePanels(const KernelArgs& args, Stream& stream) {
  const auto& table = static_cast<const PlaceTable&>(*args.weight);
  const int64_t tokens = args.problem->input.batch, channels = args.problem->input.channels;
  const TokenMatrix matrix(tokens, channels, Layout::kPanels);
  const PanelGrid grid(tokens);
  const T* const input = args.Input<T>(0);
  T* const output = args.Output<T>();
  const auto permute_unit = [&](int64_t first) {
    const T* from[kPositionUnit];
    int64_t strides[kPositionUnit];
    for (int64_t i = 0; i < kPositionUnit; ++i) {
      const TokenRun run = matrix.RunAt(table.SourceOf(*args.sequences, std::min(first + i, tokens - 1)));
      from[i] = input + run.offset;
      strides[i] = run.channel_stride;
    }
    const TokenRun run = matrix.RunAt(first);
    T* to = output + run.offset;
    for (int64_t c = 0; c < channels; ++c, to += run.channel_stride) {
      for (int64_t i = 0; i < kPositionUnit; ++i) to[i] = from[i][c * strides[i]];
    }
  };
  CpuStream::From(stream).ParallelRanges(grid.padded_positions() / kPositionUnit,
                                         [&](int64_t, int64_t first, int64_t last) {
                                           for (; first < last; ++first) permute_unit(first * kPositionUnit);
                                         });
}

void PermuteNchw(const KernelArgs& args, Stream& stream) {
  const auto& table = static_cast<const PlaceTable&>(*args.weight);
  const int64_t channels = args.problem->input.channels;
  CpuStream::From(stream).ParallelRanges(args.problem->input.batch, [&](int64_t, int64_t first, int64_t last) {
    for (int64_t token = first; token < last; ++token) {
      const int64_t source = table.SourceOf(*args.sequences, token);
      std::memcpy(args.Output<float>() + token * channels, args.Input<float>(0) + source * channels,
                  static_cast<size_t>(channels) * sizeof(float));
    }
  });
}

}  // namespace

StatusOr<std::unique_ptr<PackedWeight>> PreparePermuteTokens(const Weight& weight, const Problem&) {
  return std::make_unique<PlaceTable>(weight);
}

void PermuteTokens(const KernelArgs& args, Stream& stream) {
  if (args.problem->to.layout == Layout::kNchw) return PermuteNchw(args, stream);
  IsBfloat16(args.problem->to) ? PermutePanels<Bfloat16>(args, stream) : PermutePanels<float>(args, stream);
}

}  // namespace swizzle::cpu

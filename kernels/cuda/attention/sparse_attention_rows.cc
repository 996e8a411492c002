#include "kernels/cuda/attention/sparse_attention_rows.h"

#include <cuda_runtime.h>

#include <utility>

#include "kernels/cuda/attention/block_attention.h"
#include "kernels/cuda/attention/sparse_attention.h"
#include "kernels/cuda/int8/attention_bytes.h"
#include "kernels/cuda/runtime/launch_grid.h"
#include "kernels/cuda/runtime/queue.h"
#include "kernels/format/attention_pattern.h"

namespace swizzle::cuda {
namespace {

template <typename Held>
class HeldWeight final : public PackedWeight {
 public:
  explicit HeldWeight(Held held) : held_(std::move(held)) {}
  static const Held& From(const KernelArgs& args) { return static_cast<const HeldWeight*>(args.weight)->held_; }
  size_t bytes() const override { return held_.bytes(); }

 private:
  Held held_;
};
using TilesWeight = HeldWeight<DeviceAttentionTiles>;
struct PatternInParts {
  DeviceAttentionPattern pattern;
  DeviceSddmmTiles tiles;
  size_t bytes() const { return pattern.bytes() + tiles.bytes(); }
};
using PatternWeight = HeldWeight<PatternInParts>;
using BlocksWeight = HeldWeight<AttentionBlocks>;

class PanelsWeight final : public PackedWeight {
 public:
  explicit PanelsWeight(std::unique_ptr<KeyPanels> panels) : panels_(std::move(panels)) {}
  static const KeyPanels& From(const KernelArgs& args) {
    return *static_cast<const PanelsWeight*>(args.weight)->panels_;
  }
  size_t bytes() const override { return panels_->bytes(); }

 private:
  const std::unique_ptr<KeyPanels> panels_;
};

int HeadDim(const Problem& problem) { return static_cast<int>(problem.input.channels / problem.attention().heads); }

bool HasUsualHeads(const Problem& problem) {
  const int size = HeadDim(problem);
  return problem.attention().heads <= LaunchGrid::kMostDown && problem.attention().group_size == 1 &&
         problem.input.channels == problem.output.channels && (size == 32 || size == 64 || size == 128);
}

// The operands of one sequence, which begins `offset` tokens after the first.
SparseAttentionArgs ArgsOf(const KernelArgs& args, int64_t offset) {
  const Problem& problem = *args.problem;
  const int64_t channels = problem.input.channels;
  const auto bytes =
      static_cast<std::ptrdiff_t>(offset * channels * static_cast<int64_t>(ElementBytes(problem.to.dtype)));
  const auto input = [&](size_t i) {
    return HeadMatrices{static_cast<const std::byte*>(args.inputs[i].data) + bytes, channels, HeadDim(problem)};
  };
  return {.dtype = problem.to.dtype,
          .queries = input(0),
          .keys = input(1),
          .values = input(2),
          .output = {static_cast<std::byte*>(args.output.data) + bytes, channels, HeadDim(problem)},
          .heads = problem.attention().heads,
          .head_dim = HeadDim(problem),
          .scale = problem.attention().scale};
}

// What the workspace's size depends on: that there are values is part of it.
SparseAttentionArgs ArgsOf(const Problem& problem) {
  SparseAttentionArgs args;
  args.values.data = &problem;
  args.dtype = problem.to.dtype;
  args.heads = problem.attention().heads;
  args.head_dim = HeadDim(problem);
  return args;
}

// Of the whole sequences of a batch.
HeadCounts CountsOf(const Problem& problem) {
  return {.sequences = static_cast<int>(problem.input.batch / problem.attention().length),
          .heads = problem.attention().heads,
          .head_dim = HeadDim(problem)};
}

// Tokens from this one on get zeros.
void ClearFrom(int64_t token, const KernelArgs& args, Stream& stream) {
  const Problem& problem = *args.problem;
  const int64_t tokens = problem.input.batch;
  if (token == tokens) return;
  const size_t row = static_cast<size_t>(problem.output.channels) * ElementBytes(problem.to.dtype);
  cudaMemsetAsync(static_cast<std::byte*>(args.output.data) + static_cast<size_t>(token) * row, 0,
                  static_cast<size_t>(tokens - token) * row, QueueOf(stream));
}

// Calls run(args of a sequence) for each whole one, and clears what is left.
template <typename Run>
void ForEachSequence(const KernelArgs& args, Stream& stream, const Run& run) {
  const int64_t length = args.problem->attention().length, tokens = args.problem->input.batch;
  int64_t token = 0;
  for (; token + length <= tokens; token += length) run(ArgsOf(args, token));
  ClearFrom(token, args, stream);
}

}  // namespace

bool AcceptsFusedAttention(const Problem& problem) {
  constexpr int kMostHeads = 341;
  return HasUsualHeads(problem) && problem.attention().heads <= kMostHeads;
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareFusedAttention(const Weight& weight, const Problem& problem) {
  SWIZZLE_ASSIGN_OR_RETURN(const auto pattern, weight.matrix.In<AttentionPattern>());
  const AttentionTileShape shape =
      FusedTileShape(problem.to.dtype, HeadDim(problem), DetectAttentionStructure(*pattern));
  SWIZZLE_ASSIGN_OR_RETURN(auto tiles, DeviceAttentionTiles::Make(AttentionTiles::Cut(*pattern, shape)));
  return std::make_unique<TilesWeight>(std::move(tiles));
}

size_t FusedAttentionWorkspaceBytes(const Problem& problem) {
  return FusedWorkspaceBytes(ArgsOf(problem), problem.attention().length);
}

void RunFusedAttention(const KernelArgs& args, Stream& stream) {
  ForEachSequence(args, stream, [&](const SparseAttentionArgs& sequence) {
    FusedSparseAttention(sequence, TilesWeight::From(args), args.workspace, QueueOf(stream));
  });
}

bool AcceptsBlockAttention(const Problem& problem) { return HasUsualHeads(problem) && HeadDim(problem) >= 64; }

bool HoldsFullBlocks(const Weight& weight, const Problem&) {
  const auto pattern = weight.matrix.In<AttentionPattern>();
  return pattern.ok() && AttentionBlocks::Fit(**pattern);
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareBlockAttention(const Weight& weight, const Problem&) {
  SWIZZLE_ASSIGN_OR_RETURN(const auto pattern, weight.matrix.In<AttentionPattern>());
  SWIZZLE_ASSIGN_OR_RETURN(auto blocks, AttentionBlocks::Make(*pattern));
  return std::make_unique<BlocksWeight>(std::move(blocks));
}

void RunBlockAttention(const KernelArgs& args, Stream& stream) {
  const Problem& problem = *args.problem;
  const int sequences = CountsOf(problem).sequences;
  QueueBlockAttention(ArgsOf(args, 0), BlocksWeight::From(args), sequences, MultiprocessorsOf(stream), QueueOf(stream));
  ClearFrom(sequences * problem.attention().length, args, stream);
}

bool AcceptsAttentionInParts(const Problem& problem) { return HasUsualHeads(problem); }

StatusOr<std::unique_ptr<PackedWeight>> PrepareAttentionInParts(const Weight& weight, const Problem& problem) {
  SWIZZLE_ASSIGN_OR_RETURN(const auto pattern, weight.matrix.In<AttentionPattern>());
  PatternInParts parts;
  SWIZZLE_ASSIGN_OR_RETURN(parts.pattern, DeviceAttentionPattern::Make(*pattern));
  SWIZZLE_ASSIGN_OR_RETURN(parts.tiles,
                           DeviceSddmmTiles::MakeBest(*pattern, problem.to.dtype, problem.attention().heads));
  return std::make_unique<PatternWeight>(std::move(parts));
}

size_t AttentionInPartsWorkspaceBytes(const Problem& problem) {
  return SparseAttentionWorkspaceBytes(ArgsOf(problem), problem.attention().length, problem.attention().nonzeros);
}

void RunAttentionInParts(const KernelArgs& args, Stream& stream) {
  const PatternInParts& parts = PatternWeight::From(args);
  ForEachSequence(args, stream, [&](const SparseAttentionArgs& sequence) {
    SparseAttentionInParts(sequence, parts.pattern, parts.tiles, args.workspace, QueueOf(stream));
  });
}

bool AcceptsByteAttention(const Problem& problem) {
  constexpr int kLeastHeads = 64;
  const HeadCounts counts = CountsOf(problem);
  return HasUsualHeads(problem) && counts.head_dim >= kLeastHeads &&
         problem.attention().length <= BytePanels::kMostColumns &&
         int64_t{counts.sequences} * counts.heads <= LaunchGrid::kMostDown;
}

bool HoldsSharedKeys(const Weight& weight, const Problem&) {
  const auto pattern = weight.matrix.In<AttentionPattern>();
  return pattern.ok() && KeyPanels::AreShared(**pattern);
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareByteAttention(const Weight& weight, const Problem&) {
  SWIZZLE_ASSIGN_OR_RETURN(const auto pattern, weight.matrix.In<AttentionPattern>());
  SWIZZLE_ASSIGN_OR_RETURN(auto panels, KeyPanels::Make(*pattern));
  return std::make_unique<PanelsWeight>(std::move(panels));
}

size_t ByteAttentionRowWorkspaceBytes(const Problem& problem) {
  const auto& attention = problem.attention();
  return ByteAttentionWorkspaceBytes(attention.length, KeyPanels::MostSlots(attention.length, attention.nonzeros),
                                     CountsOf(problem));
}

void RunByteAttention(const KernelArgs& args, Stream& stream) {
  const Problem& problem = *args.problem;
  const HeadCounts counts = CountsOf(problem);
  const auto input = [&](size_t i) { return static_cast<const __half*>(args.inputs[i].data); };
  if (counts.sequences > 0) {
    QueueByteAttention(PanelsWeight::From(args),
                       {.counts = counts,
                        .q = input(0),
                        .k = input(1),
                        .v = input(2),
                        .output = static_cast<__half*>(args.output.data),
                        .scale = problem.attention().scale,
                        .workspace = args.workspace.data()},
                       QueueOf(stream));
  }
  ClearFrom(counts.sequences * problem.attention().length, args, stream);
}

}  // namespace swizzle::cuda

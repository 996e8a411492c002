#include "kernels/cpu/tokens/view_attention.h"

#include <algorithm>
#include <limits>

#include "kernels/base/integers.h"
#include "kernels/cpu/simd/transpose.h"
#include "kernels/cpu/tokens/attention_work.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/tokens/view_attention.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "kernels/cpu/runtime/cpu_stream.h"
#include "kernels/cpu/simd/elements-inl.h"
#include "kernels/cpu/tokens/attention_tiles-inl.h"

#ifndef SWIZZLE_CPU_VIEW_SCRATCH
#define SWIZZLE_CPU_VIEW_SCRATCH
namespace swizzle::cpu {
namespace {

// A thread's part of the workspace, in floats: that of a block of queries, biases of pairs, and the keys and values of
// one head as neighbours, which strides of a power of two would put into few lines of the caches.
struct ViewScratch {
  explicit ViewScratch(const ViewAttention& call)
      : block(call.channels, call.value_channels),
        keys(block.floats() + kKeyBlock * kQueryBlock),
        values(keys + call.key_count * call.channels),
        floats(RoundUp(values + call.key_count * call.value_channels, kQueryBlock)) {}

  AttentionScratch block;
  int64_t biases() const { return block.floats(); }
  int64_t keys, values, floats;  // the latter: of all
};

// Some queries of one sequence and head.
struct ViewBlock {
  int64_t sequence, head;
  int64_t first, last;  // queries [first, last)
};

int64_t QueryBlocks(const ViewAttention& call, int64_t width) { return CeilDiv(call.query_count, width); }

template <typename Float>
Float* At(const TokenView<Float>& view, const ViewBlock& block, int64_t token) {
  return view.data + block.sequence * view.sequence_stride + block.head * view.head_stride + token * view.token_stride;
}

}  // namespace
}  // namespace swizzle::cpu
#endif  // SWIZZLE_CPU_VIEW_SCRATCH

HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {
namespace {

// What a thread goes on with from block to block.
struct ViewWork {
  const ViewAttention& call;
  const ViewScratch& sizes;
  float* scratch;
  TokenView<const float> keys, values;  // of the block's sequence and head: token 0 at data
};

void CopyRows(const float* from, int64_t stride, int64_t rows, int64_t count, float* to) {
  for (int64_t row = 0; row < rows; ++row) std::copy_n(from + row * stride, count, to + row * count);
}

// Finds the keys and values of a head that is new to the thread.
void TakeHead(ViewWork& work, const ViewBlock& block, bool copies) {
  const ViewAttention& call = work.call;
  work.keys = {At(call.keys, block, 0), 0, 0, call.keys.token_stride};
  work.values = {At(call.values, block, 0), 0, 0, call.values.token_stride};
  if (!copies) return;
  float* const keys = work.scratch + work.sizes.keys;
  float* const values = work.scratch + work.sizes.values;
  CopyRows(work.keys.data, call.keys.token_stride, call.key_count, call.channels, keys);
  CopyRows(work.values.data, call.values.token_stride, call.key_count, call.value_channels, values);
  work.keys = {keys, 0, 0, call.channels};
  work.values = {values, 0, 0, call.value_channels};
}

// packed[channel][query] = query * scale, in units of log(2).
template <int kVectors>
void PackViewQueries(const ViewAttention& call, const ViewBlock& block, float* packed) {
  constexpr int64_t kWidth = kVectors * kLanes;
  const FloatTag d;
  const int64_t queries = block.last - block.first;
  if (queries < kWidth) std::fill(packed, packed + call.channels * kWidth, 0.0f);
  Transpose(At(call.queries, block, block.first), call.queries.token_stride, packed, kWidth, queries, call.channels);
  const FloatVector scale = hn::Set(d, call.scale * kLog2E);
  for (int64_t i = 0; i < call.channels * kWidth; i += kLanes) {
    hn::Store(hn::Mul(hn::Load(d, packed + i), scale), d, packed + i);
  }
}

// packed[key][query] = bias, in units of log(2), of keys from `key` on; what is finite stays so.
template <int kVectors>
void PackBiases(const ViewAttention& call, const ViewBlock& block, int64_t key, int64_t keys, float* packed) {
  constexpr int64_t kWidth = kVectors * kLanes;
  constexpr float kLowest = -1e37f, kHighest = 2e38f;
  const FloatTag d;
  const int64_t queries = block.last - block.first;
  if (queries < kWidth) std::fill(packed, packed + keys * kWidth, 0.0f);
  ViewBlock turn = block;
  if (call.bias_turns > 0) turn.sequence %= call.bias_turns;
  Transpose(At(call.bias, turn, turn.first) + key, call.bias.token_stride, packed, kWidth, queries, keys);
  const FloatVector unit = hn::Set(d, kLog2E), lowest = hn::Set(d, kLowest), highest = hn::Set(d, kHighest);
  const FloatVector infinity = hn::Set(d, std::numeric_limits<float>::infinity());
  for (int64_t i = 0; i < keys * kWidth; i += kLanes) {
    const FloatVector bias = hn::Load(d, packed + i);
    const FloatVector finite = hn::Min(hn::Max(bias, lowest), highest);
    const FloatVector held = hn::IfThenElse(hn::Eq(hn::Abs(bias), infinity), bias, finite);
    hn::Store(hn::Mul(held, unit), d, packed + i);
  }
}

template <int kVectors>
void AttendViewBlock(const ViewWork& work, const ViewBlock& block) {
  constexpr int64_t kWidth = kVectors * kLanes;
  const ViewAttention& call = work.call;
  HWY_ALIGN float totals[kWidth], references[kWidth], growth[kWidth], inverse[kWidth];
  std::fill(totals, totals + kWidth, 0.0f);
  std::fill(references, references + kWidth, kLeast);
  const BlockState state{.queries = work.scratch,
                         .scale = 1.0f,
                         .powers = work.scratch + work.sizes.block.powers_offset(),
                         .sums = work.scratch + work.sizes.block.sums_offset(),
                         .totals = totals,
                         .references = references,
                         .growth = growth};
  PackViewQueries<kVectors>(call, block, work.scratch);
  const bool has_bias = call.bias.data != nullptr;
  float* const biases = work.scratch + work.sizes.biases();
  for (int64_t key = 0; key < call.key_count; key += kKeyBlock) {
    const int64_t keys = std::min(kKeyBlock, call.key_count - key);
    if (has_bias) PackBiases<kVectors>(call, block, key, keys, biases);
    const Piece piece = {{work.keys.data + key * work.keys.token_stride, work.keys.token_stride, 1, call.channels},
                         {work.values.data + key * work.values.token_stride, 1, work.values.token_stride, keys},
                         nullptr,
                         nullptr,
                         keys,
                         has_bias ? biases : nullptr};
    AttendKeys<kVectors>({&piece, 1}, work.sizes.block, state, {key == 0, nullptr, 0});
  }
  FloatVector inverses[kVectors];
  InvertTotals<kVectors>(state, inverses);
  const FloatTag d;
  SWIZZLE_UNROLL for (int j = 0; j < kVectors; ++j) hn::Store(inverses[j], d, inverse + j * kLanes);
  for (int64_t i = 0; i < call.value_channels * kWidth; i += kLanes) {
    hn::Store(hn::Mul(hn::Load(d, state.sums + i), hn::Load(d, inverse + i % kWidth)), d, state.sums + i);
  }
  Transpose(state.sums, kWidth, At(call.output, block, block.first), call.output.token_stride, call.value_channels,
            block.last - block.first);
}

// In as many vectors as the block's queries need.
template <int kVectors = kMaxVectors>
void AttendView(const ViewWork& work, const ViewBlock& block) {
  if constexpr (kVectors > 1) {
    if (block.last - block.first <= (kVectors - 1) * kLanes) return AttendView<kVectors - 1>(work, block);
  }
  AttendViewBlock<kVectors>(work, block);
}

}  // namespace

void AttendViews(const ViewAttention& attention, std::span<std::byte> workspace, Stream& stream) {
  const ViewScratch sizes(attention);
  const int64_t blocks = QueryBlocks(attention, kMaxVectors * kLanes);
  const int64_t items = attention.sequences * attention.heads * blocks;
  CpuStream::From(stream).ParallelRanges(items, [&](int64_t slot, int64_t begin, int64_t end) {
    ViewWork work{attention, sizes, reinterpret_cast<float*>(workspace.data()) + slot * sizes.floats, {}, {}};
    for (int64_t item = begin; item < end; ++item) {
      const int64_t matrix = item / blocks, index = item % blocks;
      const int64_t vectors = CeilDiv(attention.query_count, kLanes);
      const int64_t first = vectors * index / blocks * kLanes;
      const int64_t last = std::min(vectors * (index + 1) / blocks * kLanes, attention.query_count);
      const ViewBlock block = {matrix / attention.heads, matrix % attention.heads, first, last};
      if (item == begin || index == 0) TakeHead(work, block, end - item > 1 && blocks > 1);
      AttendView(work, block);
    }
  });
}

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace swizzle::cpu {

size_t ViewAttentionWorkspaceBytes(const ViewAttention& attention, int threads) {
  return static_cast<size_t>(ViewScratch(attention).floats) * static_cast<size_t>(threads) * sizeof(float);
}

void AttendViews(const ViewAttention& attention, std::span<std::byte> workspace, Stream& stream) {
  static const auto widest = Widest(N_AVX3::AttendViews, N_AVX2::AttendViews, N_EMU128::AttendViews);
  widest(attention, workspace, stream);
}

}  // namespace swizzle::cpu
#endif  // HWY_ONCE

#include "kernels/cpu/tokens/sparse_attention.h"

#include <algorithm>

#include "kernels/base/integers.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/tokens/sparse_attention.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h.
#include "hwy/contrib/math/math-inl.h"
#include "kernels/cpu/runtime/cpu_stream.h"
#include "kernels/cpu/simd/elements-inl.h"
#include "kernels/format/attention_pattern.h"

#ifndef SWIZZLE_CPU_PATTERN_WEIGHT
#define SWIZZLE_CPU_PATTERN_WEIGHT
namespace swizzle::cpu {
namespace {

class PatternWeight final : public PackedWeight {
 public:
  explicit PatternWeight(const AttentionPattern& pattern) : pattern_(pattern) {}
  const AttentionPattern& pattern() const { return pattern_; }
  size_t bytes() const override { return pattern_.bytes(); }

 private:
  AttentionPattern pattern_;
};

// Scores of a query are padded to whole cache lines, so that threads share none.
int64_t ScoresOf(const Problem& problem) { return RoundUp(problem.attention().length, 16); }

}  // namespace
}  // namespace swizzle::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {
namespace {

constexpr float kLeast = std::numeric_limits<float>::lowest();

// Keys whose dot products are summed at once, so that additions wait less for each other.
constexpr int kKeys = 4;

// One head of one query.
struct Row {
  const float* query;
  const float* keys;    // of the sequence's first token
  const float* values;  // likewise
  float* output;
  int64_t k_stride, v_stride;  // from token to token
  int64_t qk_size, vo_size;    // channels of the head
  float scale;
};

template <int kCount>
HWY_INLINE void ScoreKeys(const Row& row, const uint32_t* places, float* scores) {
  const FloatTag d;
  const float* keys[kCount];
  FloatVector sums[kCount];
  SWIZZLE_UNROLL for (int i = 0; i < kCount; ++i) {
    keys[i] = row.keys + static_cast<int64_t>(places[i]) * row.k_stride;
    sums[i] = hn::Zero(d);
  }
  for (int64_t c = 0; c < row.qk_size; c += kLanes) {
    const int64_t count = row.qk_size - c;
    const FloatVector query = LoadSome(row.query + c, count);
    SWIZZLE_UNROLL for (int i = 0; i < kCount; ++i) sums[i] = hn::MulAdd(query, LoadSome(keys[i] + c, count), sums[i]);
  }
  SWIZZLE_UNROLL for (int i = 0; i < kCount; ++i) scores[i] = hn::GetLane(hn::SumOfLanes(d, sums[i])) * row.scale;
}

// Scores become weights; returns the inverse of their sum.
float Normalise(float* scores, int64_t count) {
  const FloatTag d;
  FloatVector largest = hn::Set(d, kLeast);
  for (int64_t i = 0; i < count; i += kLanes) {
    const int64_t left = count - i;
    largest = hn::Max(largest, LoadSome(scores + i, left, largest));
  }
  largest = hn::MaxOfLanes(d, largest);
  const FloatVector nothing = hn::Set(d, kLeast);
  FloatVector total = hn::Zero(d);
  for (int64_t i = 0; i < count; i += kLanes) {
    const int64_t left = count - i;
    const FloatVector some = LoadSome(scores + i, left, nothing);
    const FloatVector weights = hn::Exp(d, hn::Max(hn::Set(d, -104.0f), hn::Sub(some, largest)));
    StoreSome(weights, scores + i, left);
    total = hn::Add(total, left >= kLanes ? weights : LoadSome(scores + i, left));
  }
  return 1.0f / hn::GetLane(hn::SumOfLanes(d, total));
}

// output[c ..] = sums of kVectors vectors of channels, or fewer channels where they end.
template <int kVectors>
HWY_INLINE void SumValues(const Row& row, const uint32_t* places, const float* weights, int64_t count, float inverse,
                          int64_t c) {
  const FloatTag d;
  FloatVector sums[kVectors];
  SWIZZLE_UNROLL for (int j = 0; j < kVectors; ++j) sums[j] = hn::Zero(d);
  for (int64_t i = 0; i < count; ++i) {
    const float* value = row.values + static_cast<int64_t>(places[i]) * row.v_stride + c;
    const FloatVector weight = hn::Set(d, weights[i]);
    SWIZZLE_UNROLL for (int j = 0; j < kVectors; ++j) {
      sums[j] = hn::MulAdd(weight, LoadSome(value + j * kLanes, row.vo_size - c - j * kLanes), sums[j]);
    }
  }
  const FloatVector scale = hn::Set(d, inverse);
  SWIZZLE_UNROLL for (int j = 0; j < kVectors; ++j) {
    StoreSome(hn::Mul(sums[j], scale), row.output + c + j * kLanes, row.vo_size - c - j * kLanes);
  }
}

void AttendRow(const Row& row, std::span<const uint32_t> keys, float* scores) {
  const int64_t count = static_cast<int64_t>(keys.size());
  if (count == 0) return std::fill(row.output, row.output + row.vo_size, 0.0f);
  int64_t i = 0;
  for (; i + kKeys <= count; i += kKeys) ScoreKeys<kKeys>(row, keys.data() + i, scores + i);
  for (; i < count; ++i) ScoreKeys<1>(row, keys.data() + i, scores + i);
  const float inverse = Normalise(scores, count);
  constexpr int kVectors = 4;
  int64_t c = 0;
  for (; c + (kVectors - 1) * kLanes < row.vo_size; c += kVectors * kLanes) {
    SumValues<kVectors>(row, keys.data(), scores, count, inverse, c);
  }
  for (; c < row.vo_size; c += kLanes) SumValues<1>(row, keys.data(), scores, count, inverse, c);
}

}  // namespace

void SparseAttention(const KernelArgs& args, Stream& stream) {
  const Problem& problem = *args.problem;
  const AttentionPattern& pattern = static_cast<const PatternWeight*>(args.weight)->pattern();
  const int64_t heads = problem.attention().heads, qk = problem.input.channels, vo = problem.output.channels;
  const int64_t k = KeyChannels(problem), v = ValueChannels(problem);
  const int64_t units = args.sequences->count() * heads;  // a head of a sequence each
  // Every query costs something even without keys.
  const auto cost_before = [&](int64_t query) { return int64_t{pattern.row_offsets[query]} + query; };
  const int64_t unit_cost = cost_before(pattern.tokens), slots = stream.threads();
  const auto place_of = [&](int64_t cost) {  // the unit and query that begin at this cost or after
    int64_t low = 0, high = pattern.tokens;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (cost_before(middle) < cost % unit_cost) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return cost / unit_cost * pattern.tokens + low;
  };
  const float *const queries = args.Input<float>(0), *const keys = args.Input<float>(1);
  const float* const values = args.Input<float>(2);
  float* const output = args.Output<float>();
  CpuStream::From(stream).ParallelFor(slots, [&](int64_t slot) {
    float* const scores = reinterpret_cast<float*>(args.workspace.data()) + slot * ScoresOf(problem);
    const int64_t total = units * unit_cost, end = place_of(total * (slot + 1) / slots);
    for (int64_t place = place_of(total * slot / slots); place < end; ++place) {
      const int64_t unit = place / pattern.tokens, query = place % pattern.tokens;
      const int64_t begin = args.sequences->begins[unit / heads], token = begin + query;
      const int64_t qk_size = qk / heads, vo_size = vo / heads, head = unit % heads;
      const int64_t shared = head / problem.attention().group_size;
      const Row row{.query = queries + token * qk + head * qk_size,
                    .keys = keys + begin * k + shared * qk_size,
                    .values = values + begin * v + shared * vo_size,
                    .output = output + token * vo + head * vo_size,
                    .k_stride = k,
                    .v_stride = v,
                    .qk_size = qk_size,
                    .vo_size = vo_size,
                    .scale = problem.attention().scale};
      AttendRow(row, pattern.Keys(query), scores);
    }
  });
}

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace swizzle::cpu {

StatusOr<std::unique_ptr<PackedWeight>> PrepareSparseAttention(const Weight& weight, const Problem&) {
  SWIZZLE_ASSIGN_OR_RETURN(const auto pattern, weight.matrix.In<AttentionPattern>());
  return std::make_unique<PatternWeight>(*pattern);
}

size_t SparseAttentionWorkspaceBytes(const Problem& problem) {
  return problem.threads * ScoresOf(problem) * sizeof(float);
}

}  // namespace swizzle::cpu
#endif  // HWY_ONCE

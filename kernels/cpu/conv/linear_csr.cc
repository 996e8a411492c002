#include "kernels/cpu/conv/linear_csr.h"

#include <algorithm>
#include <array>
#include <utility>

#include "kernels/cpu/conv/column_groups.h"
#include "kernels/cpu/conv/linear_ending.h"
#include "kernels/cpu/runtime/cpu_stream.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv/linear_csr.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/simd/elements-inl.h"

#if HWY_TARGET != HWY_EMU128

HWY_BEFORE_NAMESPACE();
namespace swizzle::cpu::HWY_NAMESPACE {
namespace {

constexpr int kTables = HWY_TARGET == HWY_AVX3 ? 2 : 1;      // registers that hold a group
constexpr int kMostAtOnce = HWY_TARGET == HWY_AVX3 ? 8 : 4;  // requests whose sums and tables fill the others
constexpr int64_t kGroupColumns = kTables * kLanes;

// A group's input features of one request.
struct Table {
  FloatVector vectors[kTables];

  HWY_INLINE void Load(const float* from, int64_t count) {
    SWIZZLE_UNROLL for (int i = 0; i < kTables; ++i, count -= kLanes) {
      vectors[i] = count > 0 ? LoadSome(from + i * kLanes, count) : hn::Zero(FloatTag());
    }
  }
  HWY_INLINE FloatVector Pick(hn::Vec<hn::RebindToSigned<FloatTag>> places) const {
#if HWY_TARGET == HWY_AVX3
    return FloatVector{_mm512_permutex2var_ps(vectors[0].raw, places.raw, vectors[1].raw)};
#else
    return FloatVector{_mm256_permutevar8x32_ps(vectors[0].raw, places.raw)};
#endif
  }
};

// sums[request][row of the part] of kBatch requests, whose inputs are weight.cols() apart.
template <int kBatch>
void MultiplyPart(const ColumnGroups& weight, int64_t part, const float* x, float* sums) {
  const FloatTag d;
  const hn::RebindToSigned<FloatTag> of_places;
  const hn::Rebind<uint8_t, FloatTag> of_bytes;
  constexpr int64_t kRows = ColumnGroups::kPartRows;
  const auto [ends, cells, first_values, first_places] = weight.At(part);
  const float* values = first_values;
  const uint8_t* places = first_places;
  std::fill_n(sums, kBatch * kRows, 0.0f);
  for (int64_t group = 0; group < weight.groups(); ++group) {
    const int64_t column = group * kGroupColumns;
    Table tables[kBatch];
    SWIZZLE_UNROLL for (int i = 0; i < kBatch; ++i) {
      tables[i].Load(x + i * weight.cols() + column, weight.cols() - column);
    }
    for (uint32_t c = ends[group]; c < ends[group + 1]; ++c) {
      float* const to = sums + cells[c].block * kLanes;
      FloatVector sum[kBatch];
      SWIZZLE_UNROLL for (int i = 0; i < kBatch; ++i) sum[i] = hn::LoadU(d, to + i * kRows);
      for (int step = cells[c].steps; step > 0; --step, values += kLanes, places += kLanes) {
        const auto at = hn::PromoteTo(of_places, hn::LoadU(of_bytes, places));
        const FloatVector factors = hn::LoadU(d, values);
        SWIZZLE_UNROLL for (int i = 0; i < kBatch; ++i) sum[i] = hn::MulAdd(factors, tables[i].Pick(at), sum[i]);
      }
      SWIZZLE_UNROLL for (int i = 0; i < kBatch; ++i) hn::StoreU(sum[i], d, to + i * kRows);
    }
  }
}

using PartFunction = void (*)(const ColumnGroups&, int64_t, const float*, float*);
constexpr auto kMultiplyPart = []<size_t... kBatch>(std::index_sequence<kBatch...>) {
  return std::array<PartFunction, sizeof...(kBatch)>{MultiplyPart<static_cast<int>(kBatch) + 1>...};
}
(std::make_index_sequence<kMostAtOnce>());

}  // namespace

void LinearCsr(const KernelArgs& args, Stream& stream) {
  constexpr int64_t kRows = ColumnGroups::kPartRows;
  const auto& weight = static_cast<const ColumnGroups&>(*args.weight);
  const int64_t batch = args.problem->input.batch, rows = weight.rows();
  const float *const input = args.Input<float>(0), *const residuals = args.Residual<float>();
  float* const output = args.Output<float>();
  const auto run = [&](int64_t, int64_t begin, int64_t end) {
    HWY_ALIGN float sums[kMostAtOnce * kRows];
    for (int64_t row = begin; row < end; row += kRows) {
      const int64_t last = std::min(row + kRows, end);
      for (int64_t first = 0; first < batch; first += kMostAtOnce) {
        const int64_t requests = std::min<int64_t>(kMostAtOnce, batch - first);
        kMultiplyPart[static_cast<size_t>(requests - 1)](weight, row / kRows, input + first * weight.cols(), sums);
        for (int64_t i = 0; i < requests; ++i) {
          const int64_t at = (first + i) * rows;
          std::copy_n(sums + i * kRows, last - row, output + at + row);
          FinishFeatures(args.problem->epilogue, weight.bias(), residuals == nullptr ? nullptr : residuals + at, row,
                         last, output + at);
        }
      }
    }
  };
  CpuStream::From(stream).ParallelRanges(rows, run, kRows);
}

}  // namespace swizzle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HWY_TARGET != HWY_EMU128

#if HWY_ONCE
namespace swizzle::cpu {
namespace {

StatusOr<std::unique_ptr<PackedWeight>> Prepare(const Weight& weight, int64_t lanes, int64_t group_columns) {
  SWIZZLE_ASSIGN_OR_RETURN(const auto matrix, weight.matrix.In<CsrMatrix>());
  return std::make_unique<ColumnGroups>(*matrix, weight.bias, lanes, group_columns);
}

}  // namespace

StatusOr<std::unique_ptr<PackedWeight>> PrepareLinearCsrAvx512(const Weight& weight, const Problem&) {
  return Prepare(weight, /*lanes=*/16, /*group_columns=*/32);
}

StatusOr<std::unique_ptr<PackedWeight>> PrepareLinearCsrAvx2(const Weight& weight, const Problem&) {
  return Prepare(weight, /*lanes=*/8, /*group_columns=*/8);
}

}  // namespace swizzle::cpu
#endif  // HWY_ONCE
